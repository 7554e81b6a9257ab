//! Setting a connection up, who uses which communicator, and taking it down.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use gofer_protocol::client::{Client, ErrorKind, Options};
use gofer_protocol::codec::decode;
use gofer_protocol::message::{ChannelReply, CloseRequest, Empty, FStatRequest};
use gofer_protocol::record::Statx;
use gofer_protocol::transport::channel::ServerChannel;
use gofer_protocol::transport::memory::WindowAllocator;
use gofer_protocol::{Errno, FdId, MAX_MESSAGE_SIZE, Mid};

use crate::copies::copies_of;
use crate::peer::{Line, OVER_CHANNEL, OVER_SOCKET, Peer, encode, receive, send, with_script};

const FOUR: Options = Options { channels: 4 };

fn refuse(peer: &mut Peer, errno: Errno) {
    assert_eq!(receive(&mut peer.socket).unwrap().0, Mid::CHANNEL);
    send(&peer.socket, Mid::ERROR, &errno.raw().to_le_bytes(), &[]);
}

#[test]
fn a_connection_starts_with_mount() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount_with(1 << 20, &[Mid::MOUNT]);
    });
    let client = client.unwrap();
    assert_eq!(client.root().control_fd, FdId(1));
    assert_eq!(client.max_message_size(), 1 << 20);
    assert!(format!("{client:?}").contains("fd 1"));
    server.join().unwrap();
}

#[test]
fn a_server_is_reached_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let missing = Client::connect(&path, &OVER_SOCKET).unwrap_err();
    assert_eq!(missing.errno(), Errno::ENOENT);

    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || Peer::new(listener.accept().unwrap().0).mount());
    assert_eq!(Client::connect(&path, &OVER_SOCKET).unwrap().root().control_fd, FdId(1));
    server.join().unwrap();
}

#[test]
fn what_is_no_server_is_no_connection() {
    let attempt = |script: fn(Peer)| {
        let (client, server) = with_script(&FOUR, script);
        let error = client.unwrap_err();
        server.join().unwrap();
        (error.errno(), error.kind().clone())
    };
    assert!(matches!(attempt(|_| ()), (Errno::EIO, ErrorKind::Connection(_))));
    let refusing = |mut peer: Peer| {
        receive(&mut peer.socket).unwrap();
        send(&peer.socket, Mid::ERROR, &13u32.to_le_bytes(), &[]);
    };
    assert_eq!(attempt(refusing), (Errno::EACCES, ErrorKind::Server));
    let foreign = |mut peer: Peer| {
        receive(&mut peer.socket).unwrap();
        send(&peer.socket, Mid(0x5448), b"HTTP/1.1 400 Bad Request", &[]);
    };
    assert_eq!(attempt(foreign).0, Errno::EINVAL);
    assert!(matches!(attempt(|mut peer| peer.mount_with(0, Mid::ALL)), (Errno::EIO, ErrorKind::Reply(_))));
    // Longer than a client may expect before it knows the limit.
    let long = |mut peer: Peer| {
        receive(&mut peer.socket).unwrap();
        send(&peer.socket, Mid::MOUNT, &vec![0; (1 << 20) + 1], &[]);
    };
    assert!(matches!(attempt(long), (Errno::EIO, ErrorKind::Reply(_))));
}

#[test]
fn the_limit_of_channels_is_no_failure() {
    let (client, server) = with_script(&FOUR, |mut peer| {
        peer.mount();
        let first = peer.channel();
        let second = peer.next_channel(&first);
        assert_eq!(Mid(second.receive().unwrap().mid), Mid::CHANNEL);
        second.reply(Mid::ERROR.0, &Errno::ENOMEM.raw().to_le_bytes(), []).unwrap();
        assert_eq!(receive(&mut peer.socket), None);
    });
    assert_eq!(client.unwrap().channels(), 2);
    server.join().unwrap();
}

#[test]
fn a_client_gets_along_without_channels() {
    for errno in [Errno::ENOMEM, Errno::ENOSYS, Errno::EMFILE] {
        let (client, server) = with_script(&FOUR, move |mut peer| {
            peer.mount();
            refuse(&mut peer, errno);
            peer.answer(Mid::FSTAT, &Statx::default());
        });
        let client = client.unwrap();
        assert_eq!(client.channels(), 0);
        client.fstat(FdId(1)).unwrap();
        server.join().unwrap();
    }
}

#[test]
fn a_server_without_channels_is_not_asked_for_one() {
    let (client, server) = with_script(&FOUR, |mut peer| {
        peer.mount_with(MAX_MESSAGE_SIZE, &[Mid::MOUNT, Mid::FSTAT]);
        peer.answer(Mid::FSTAT, &Statx::default());
    });
    client.unwrap().fstat(FdId(1)).unwrap();
    server.join().unwrap();
}

#[test]
fn a_channel_that_cannot_be_used_is_left_alone() {
    let offers: [fn(&mut Peer); 4] = [
        // Its descriptors are missing, all or one.
        |peer| send_offer(peer, 0, 2 << 20, 0),
        |peer| send_offer(peer, 0, 2 << 20, 1),
        // It is not where it is said to be, or not that long.
        |peer| send_offer(peer, 4096 << 20, 2 << 20, 2),
        |peer| send_offer(peer, 0, u64::MAX, 2),
    ];
    for offer in offers {
        let (client, server) = with_script(&OVER_CHANNEL, move |mut peer| {
            peer.mount();
            offer(&mut peer);
            peer.answer(Mid::FSTAT, &Statx::default());
        });
        let client = client.unwrap();
        assert_eq!(client.channels(), 0);
        client.fstat(FdId(1)).unwrap();
        server.join().unwrap();
    }
}

fn send_offer(peer: &mut Peer, data_offset: i64, data_length: u64, donated: usize) {
    let (_channel, offer) = ServerChannel::open(&mut WindowAllocator::new(MAX_MESSAGE_SIZE)).unwrap();
    assert_eq!(receive(&mut peer.socket).unwrap().0, Mid::CHANNEL);
    let fds = [offer.donated[0].as_fd(), offer.donated[1].as_fd()];
    send(&peer.socket, Mid::CHANNEL, &encode(&ChannelReply { data_offset, data_length }), &fds[..donated]);
}

#[test]
fn memory_that_the_server_could_take_away_is_not_mapped() {
    let (client, server) = with_script(&OVER_CHANNEL, |mut peer| {
        peer.mount();
        let (_channel, offer) = ServerChannel::open(&mut WindowAllocator::new(MAX_MESSAGE_SIZE)).unwrap();
        let unsealed = tempfile::tempfile().unwrap();
        unsealed.set_len(2 << 20).unwrap();
        assert_eq!(receive(&mut peer.socket).unwrap().0, Mid::CHANNEL);
        let reply = ChannelReply { data_offset: 0, data_length: 2 << 20 };
        send(&peer.socket, Mid::CHANNEL, &encode(&reply), &[unsealed.as_fd(), offer.donated[1].as_fd()]);
        peer.answer(Mid::FSTAT, &Statx::default());
    });
    let client = client.unwrap();
    assert_eq!(client.channels(), 0);
    client.fstat(FdId(1)).unwrap();
    server.join().unwrap();
}

#[test]
fn an_idle_channel_is_preferred_to_the_socket() {
    let (client, server) = with_script(&OVER_CHANNEL, |mut peer| {
        peer.mount();
        let channel = peer.channel();
        let mut line = Line::channel(channel, peer.socket.try_clone().unwrap());
        for _ in 0..100 {
            line.answer(Mid::FSTAT, &Statx::default());
        }
        line.end();
        assert_eq!(receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    for _ in 0..100 {
        client.fstat(FdId(1)).unwrap();
    }
    drop(client);
    server.join().unwrap();
}

/// Two calls are in flight at once; neither is answered before both have arrived.
#[test]
fn where_all_channels_are_busy_the_socket_serves() {
    let (client, server) = with_script(&OVER_CHANNEL, |mut peer| {
        peer.mount();
        let channel = peer.channel();
        let on_channel = channel.receive().unwrap();
        let (on_socket, _) = receive(&mut peer.socket).unwrap();
        assert_eq!((Mid(on_channel.mid), on_socket), (Mid::FSTAT, Mid::FSTAT));
        send(&peer.socket, Mid::FSTAT, &[0; 144], &[]);
        channel.reply(Mid::FSTAT.0, &[0; 144], []).unwrap();
        assert_eq!(receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    let other = client.clone();
    let caller = thread::spawn(move || other.fstat(FdId(1)).map(drop));
    client.fstat(FdId(1)).unwrap();
    caller.join().unwrap().unwrap();
    drop(client);
    server.join().unwrap();
}

#[test]
fn every_thread_gets_its_own_reply() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 500;
    fn serve(mut line: Line) {
        while let Some((mid, request)) = line.receive() {
            assert_eq!(mid, Mid::FSTAT);
            let mut stat = Statx::default();
            stat.ino = decode::<FStatRequest>(&request).unwrap().fd.0;
            line.send(mid, &encode(&stat), &[]);
        }
    }
    let (client, server) = with_script(&Options { channels: 2 }, |mut peer| {
        peer.mount();
        let first = peer.channel();
        let second = peer.next_channel(&first);
        let mut lines: Vec<_> =
            [first, second].map(|channel| Line::channel(channel, peer.socket.try_clone().unwrap())).into();
        lines.push(Line::socket(peer.socket));
        let threads: Vec<_> = lines.into_iter().map(|line| thread::spawn(|| serve(line))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let client = client.unwrap();
    assert_eq!(client.channels(), 2);
    let start = Arc::new(Barrier::new(THREADS.try_into().unwrap()));
    let callers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (client, start) = (client.clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                for call in 0..CALLS {
                    let number = thread * CALLS + call;
                    assert_eq!(client.fstat(FdId(number)).unwrap().ino, number);
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    drop(client);
    server.join().unwrap();
}

#[test]
fn the_connection_ends_with_the_last_of_its_users() {
    let (told, tell) = channel();
    let (client, server) = with_script(&OVER_CHANNEL, move |mut peer| {
        peer.mount();
        let mut line = Line::channel(peer.channel(), peer.socket.try_clone().unwrap());
        assert_eq!(line.receive(), None);
        told.send(()).unwrap();
        assert_eq!(receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    let fd = client.own(FdId(5));
    let clone = client.clone();
    drop((client, clone));
    assert!(tell.recv_timeout(Duration::from_millis(50)).is_err(), "a descriptor is a user too");
    drop(fd);
    tell.recv().unwrap();
    server.join().unwrap();
}

#[test]
fn nothing_is_left_of_a_client_that_was_dropped() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let socket = ours.try_clone().unwrap();
    let server = thread::spawn(move || {
        let mut peer = Peer::new(theirs);
        peer.mount();
        let _channel = peer.channel();
        assert_eq!(receive(&mut peer.socket), None);
    });
    let client = Client::over(ours, &OVER_CHANNEL).unwrap();
    drop(client);
    server.join().unwrap();
    // The watching thread had its hands on the socket too.
    assert_eq!(copies_of(&socket), 1);
}

#[test]
fn dropped_descriptors_are_closed_a_hundred_at_a_time() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount();
        let mut closed = Vec::new();
        let mut batches = Vec::new();
        while let Some((mid, request)) = receive(&mut peer.socket) {
            assert_eq!(mid, Mid::CLOSE);
            let batch: Vec<FdId> = decode::<CloseRequest<'_>>(&request).unwrap().fds.iter().collect();
            batches.push(batch.len());
            closed.extend(batch);
            send(&peer.socket, Mid::CLOSE, &encode(&Empty {}), &[]);
        }
        // Slow machines close earlier; never later.
        assert!(batches.iter().all(|len| *len <= 100), "{batches:?}");
        assert_eq!(closed, (1..=250).map(FdId).collect::<Vec<_>>());
    });
    let client = client.unwrap();
    for number in 1..=250 {
        drop(client.own(FdId(number)));
    }
    client.flush_closes().unwrap();
    client.flush_closes().unwrap();
    assert_eq!(client.own(FdId(300)).into_id(), FdId(300));
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_dropped_descriptor_is_closed_with_a_later_call_at_the_latest() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount();
        peer.answer(Mid::CLOSE, &Empty {});
        peer.answer(Mid::FSTAT, &Statx::default());
    });
    let client = client.unwrap();
    drop(client.own(FdId(5)));
    thread::sleep(Duration::from_millis(150));
    client.fstat(FdId(1)).unwrap();
    server.join().unwrap();
}

#[test]
fn a_descriptor_that_is_closed_by_hand_is_closed_once_and_now() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount();
        peer.answer(Mid::CLOSE, &Empty {});
        assert_eq!(receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    client.own(FdId(5)).close().unwrap();
    client.flush_closes().unwrap();
    drop(client);
    server.join().unwrap();
}
