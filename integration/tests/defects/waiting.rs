//! D4, D5: nothing that a client can make the server wait for runs with a lock held.

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use gofer_integration::{Actor, Ask, Exchange, Listening, eventually, fifo, nothing};
use gofer_protocol::Errno;
use gofer_protocol::{Gid, Uid};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

/// More than any request takes here, and less than the patience of the client.
const PROMPT: Duration = Duration::from_secs(10);

/// A client of its own that renames a file back and forth.
fn renames(listening: &Listening) -> Actor {
    let (client, root) = listening.client();
    client.create(root, "a").expect("create");
    Actor::repeat(move || {
        client.rename((root, "a"), (root, "b")).expect("rename");
        client.rename((root, "b"), (root, "a")).expect("rename");
    })
}

/// Defect D4: opening a FIFO without a writer returns, and renames go on.
#[test]
fn opening_a_fifo_neither_waits_nor_keeps_renames_waiting() {
    let listening = Listening::with(&["--host-fifo", "open"], |dir| {
        fifo(&dir.join("p"));
    });
    let renaming = renames(&listening);
    let (client, root) = listening.client();
    let fifo = client.walk_to(root, "p");
    let before = renaming.rounds();
    for client in [&client as &dyn Exchange, &client.on_channel()] {
        for _ in 0..50 {
            let start = Instant::now();
            let (reader, mut fds) = client.open(fifo, 0).expect("a reader");
            // Now there is one, which the donated descriptor is as well.
            let (writer, more) = client.open(fifo, 1).expect("a writer");
            fds.extend(more);
            assert_eq!(fds.len(), 2, "mandatory donations");
            for fd in &fds {
                assert!(fcntl_getfl(fd).expect("flags").contains(OFlags::NONBLOCK));
            }
            client.close(&[reader, writer]);
            drop(fds);
            // A control descriptor is no reader.
            assert_eq!(client.open(fifo, 1).err(), Some(Errno::ENXIO));
            assert!(start.elapsed() < PROMPT);
        }
    }
    assert!(eventually(|| renaming.rounds() > before) && !renaming.has_failed());
}

/// Defect D4: a FIFO with both ends works through what was donated.
#[test]
fn what_one_writes_into_a_fifo_another_reads() {
    use std::io::{Read, Write};
    let listening = Listening::with(&["--host-fifo", "open"], |dir| {
        fifo(&dir.join("p"));
    });
    let ((one, one_root), (other, other_root)) = (listening.client(), listening.client());
    let (_, fds) = one.open(one.walk_to(one_root, "p"), 0).expect("a reader");
    let mut reader = File::from(fds.into_iter().next().expect("a descriptor"));
    let (_, fds) = other.open(other.walk_to(other_root, "p"), 1).expect("a writer");
    let mut writer = File::from(fds.into_iter().next().expect("a descriptor"));
    writer.write_all(b"hello").expect("written");
    let mut text = [0; 5];
    reader.read_exact(&mut text).expect("read");
    assert_eq!(&text, b"hello");
}

/// Defect D5: a full backlog is EAGAIN at once, and renames go on.
#[test]
fn connecting_to_a_full_backlog_is_eagain_at_once_while_another_renames() {
    let listening = Listening::with(&["--host-uds", "all"], nothing);
    let _listener = listen_for_one(&listening);
    let renaming = renames(&listening);
    let (client, root) = listening.client();
    let file = client.walk_to(root, "s");
    // As many as it takes.
    let mut waiting = Vec::new();
    while let Ok(connected) = client.connect(file, 1) {
        waiting.push(connected);
        assert!(waiting.len() < 10, "the backlog has no end");
    }
    let before = renaming.rounds();
    for client in [&client as &dyn Exchange, &client.on_channel()] {
        for _ in 0..50 {
            let start = Instant::now();
            assert_eq!(client.connect(file, 1).err(), Some(Errno::EAGAIN));
            assert_eq!(client.connect_as(file, 1, (Uid::NONE, Gid::NONE)).err(), Some(Errno::EAGAIN));
            assert!(start.elapsed() < PROMPT);
        }
    }
    assert!(eventually(|| renaming.rounds() > before), "renames wait");
}

/// A socket `s` whose backlog is as short as it can be.
fn listen_for_one(listening: &Listening) -> UnixListener {
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(listening.path().join("s")).expect("a path")).expect("bound");
    listen(&listener, 0).expect("listening");
    listener.into()
}
