//! A client that does not take what it asked for.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use gofer_integration::{Ask, HostileChannel, Listening, Raw, encoded, eventually};
use gofer_protocol::message::{OpenAtRequest, PReadRequest};
use gofer_protocol::{FdId, Mid, Request};

const PROMPT: Duration = Duration::from_secs(10);

fn files() -> Listening {
    Listening::with(&[], |dir| {
        fs::write(dir.join("big"), vec![7; 4 << 20]).expect("a file");
        fs::write(dir.join("small"), "hello").expect("a file");
    })
}

/// A client is served, in everything, as if it were alone.
fn is_served((client, root): &(Raw, FdId)) {
    let start = Instant::now();
    client.rename((*root, "small"), (*root, "s")).expect("rename");
    client.rename((*root, "s"), (*root, "small")).expect("rename");
    let file = client.walk_to(*root, "small");
    let (open, fds) = client.open(file, 2).expect("open");
    assert_eq!((fds.len(), client.pread(open, 0, 5).as_deref()), (1, Ok(&b"hello"[..])));
    client.close(&[file, open]);
    let channel = client.on_channel();
    assert!(channel.fstat(*root).is_ok());
    assert!(start.elapsed() < PROMPT);
}

/// Threat: stall the server by not reading replies.
#[test]
fn a_client_that_never_reads_its_replies_stalls_no_one_but_itself() {
    let listening = files();
    let (staller, root) = listening.client();
    let file = staller.walk_to(root, "big");
    let (open, _) = staller.open(file, 0).expect("open");
    let request = encoded(&PReadRequest { offset: 0, fd: open, count: 2_000_000 });
    let frame = [&24_u32.to_le_bytes()[..], &PReadRequest::MID.0.to_le_bytes(), &[0; 2], &request].concat();
    staller.stream.set_nonblocking(true).expect("a non-blocking socket");
    let mut sent = 0;
    while (&staller.stream).write_all(&frame).is_ok() && sent < 10_000 {
        sent += 1;
    }
    assert!(sent > 0);
    let others: Vec<_> = (0..2).map(|_| listening.client()).collect();
    others.iter().for_each(is_served);
    // Its other ways to ask go on as well.
    drop(staller);
    others.iter().for_each(|(client, root)| assert!(client.fstat(*root).is_ok()));
    assert!(eventually(|| !is_held(&listening, "big")), "what the staller held is released when it leaves");
}

/// Threat: stall the server by not reading FDs. Abnormal input: a client that never reads its FD socket.
#[test]
fn a_client_that_never_reads_its_descriptors_stalls_no_one_not_even_itself() {
    let listening = files();
    let baseline = listening.gofer.descriptors().len();
    let (staller, root) = listening.client();
    let file = staller.walk_to(root, "small");
    let channel = HostileChannel::greeted(staller.channel().expect("a channel"));
    let request = encoded(&OpenAtRequest { fd: file, flags: 0 });
    let mut announced = 0;
    for _ in 0..2000 {
        let (mid, reply) = channel.exchange(Mid::OPEN_AT.0, &request).expect("an answer");
        assert_eq!(mid, Mid::OPEN_AT.0, "an open that cannot donate is an open all the same");
        announced += usize::from(channel.header()[2]);
        let open = reply.first_chunk().map(|id| FdId(u64::from_le_bytes(*id))).expect("a number");
        staller.close(&[open]);
    }
    assert!(announced < 2000, "the queue has no end");
    is_served(&listening.client());
    drop((channel, staller));
    listening.gofer.assert_descriptors(baseline, "the queued descriptors are closed");
}

/// Threat: stall the server: half a request, for ever, on as many connections as there may be.
#[test]
fn clients_that_never_finish_a_request_stall_no_one() {
    let listening = files();
    let baseline = listening.gofer.descriptors().len();
    let slow: Vec<_> = (0..100)
        .map(|_| {
            let (client, root) = listening.client();
            (&client.stream).write_all(&[8, 0, 0, 0, 3, 0, 0, 0, 1]).expect("half a request");
            (client, root)
        })
        .collect();
    is_served(&listening.client());
    drop(slow);
    listening.gofer.assert_descriptors(baseline, "they are gone");
}

/// Threat: stall the server: a channel whose turn never comes back.
#[test]
fn a_channel_that_is_left_in_the_middle_of_a_request_stalls_no_one() {
    let listening = files();
    let baseline = listening.gofer.descriptors().len();
    let (staller, root) = listening.client();
    let channels: Vec<_> = (0..4).map(|_| HostileChannel::greeted(staller.channel().expect("a channel"))).collect();
    for channel in &channels {
        channel.send(Mid::FSTAT.0, &root.0.to_le_bytes());
    }
    is_served(&listening.client());
    drop((channels, staller));
    listening.gofer.assert_descriptors(baseline, "it is gone");
}

fn is_held(listening: &Listening, name: &str) -> bool {
    let path = listening.path().join(name);
    listening.gofer.descriptors().contains(&path)
}
