//! BindAt, Listen, Accept, Connect, ConnectWithCreds.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use gofer_integration::{Ask, Trial, change, new_in, nothing, over_both};
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{CreateCommon, FileMode, FileType, StatxMask};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketType;

use super::{files, never_waits, socket_file};

const ALL: &[&str] = &["--host-uds=all"];

const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const SEQPACKET: u32 = 5;

const ANYONE: (Uid, Gid) = (Uid::NONE, Gid::NONE);

fn bind(t: &Trial<'_>, sock_type: u32, name: &str) -> Result<FdId, Errno> {
    t.client.bind(new_in(t.root, FileType::Socket, 0o700), sock_type, name).map(|(_, bound, _)| bound)
}

fn readable(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
}

#[test]
fn a_bound_socket_has_a_file_a_descriptor_and_is_donated_for_polling() {
    over_both(ALL, nothing, |t| {
        for (sock_type, host_type, name) in [
            (STREAM, SocketType::STREAM, "stream"),
            (DATAGRAM, SocketType::DGRAM, "datagram"),
            (SEQPACKET, SocketType::SEQPACKET, "packets"),
        ] {
            let create = CreateCommon::new(t.root, Uid(3), Gid(4), FileMode::new(FileType::Socket, 0o751));
            let (child, bound, donated) = t.client.bind(create, sock_type, name).expect("bind");
            assert!(t.metadata(name).file_type().is_socket());
            assert_eq!((t.permissions(name), t.owner(name)), (0o751, (3, 4)));
            assert_eq!((child.stat.ino, child.stat.uid, child.stat.gid), (t.metadata(name).ino(), 3, 4));
            assert_eq!(child.stat.mode, FileMode::new(FileType::Socket, 0o751));
            assert_eq!(t.client.fstat(child.control_fd), Ok(child.stat));
            assert_ne!(child.control_fd, bound);
            assert_eq!(rustix::net::sockopt::socket_type(&donated), Ok(host_type));
            assert!(never_waits(&donated));
        }
    });
}

/// Defect D2.
#[test]
fn the_file_of_a_bound_socket_is_the_file_and_outlives_the_socket() {
    over_both(ALL, nothing, |t| {
        let (child, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o700), STREAM, "s").expect("bind");
        let request =
            SetStatRequest { uid: Uid(9), mode: 0o640, ..change(child.control_fd, StatxMask::UID.or(StatxMask::MODE)) };
        assert_eq!(t.client.set_stat(&request).map(|reply| reply.failure_mask.0), Ok(0));
        assert_eq!((t.owner("s").0, t.permissions("s")), (9, 0o640));
        assert_eq!(t.client.fstat(bound), Err(Errno::EINVAL));
        t.client.close(&[bound]);
        let stat = t.client.fstat(child.control_fd).expect("stat");
        assert_eq!((stat.ino, stat.uid), (t.metadata("s").ino(), 9));
        t.client.close(&[child.control_fd]);
        assert!(t.exists("s"), "its name is the client's to remove");
    });
}

#[test]
fn a_sockets_name_may_have_100_bytes_however_long_the_path_is() {
    over_both(
        ALL,
        |dir| std::fs::create_dir_all(dir.join("d".repeat(200))).expect("a directory"),
        |t| {
            for dir in [t.root, t.client.walk_to(t.root, &"d".repeat(200))] {
                let bind = |length| t.client.bind(new_in(dir, FileType::Socket, 0o700), STREAM, &"n".repeat(length));
                assert_eq!(bind(107).map(drop), Err(Errno::EINVAL));
                assert_eq!(bind(255).map(drop), Err(Errno::EINVAL));
                assert_eq!(bind(4096).map(drop), Err(Errno::EINVAL));
                let (child, bound, _) = bind(100).expect("bind");
                t.client.listen(bound, 1).expect("listen");
                assert!(t.client.connect(child.control_fd, STREAM).is_ok());
            }
        },
    );
}

#[test]
fn what_exists_is_not_bound_again() {
    over_both(
        ALL,
        |dir| {
            files(dir, &["f"]);
            socket_file(&dir.join("s"));
            symlink("nowhere", dir.join("l")).expect("a link");
            std::fs::create_dir(dir.join("d")).expect("a directory");
        },
        |t| {
            for name in ["f", "s", "l", "d"] {
                assert_eq!(bind(t, STREAM, name), Err(Errno::EADDRINUSE), "{name}");
                assert!(t.exists(name));
            }
            assert!(!t.exists("nowhere"));
        },
    );
}

#[test]
fn unknown_socket_types_are_enxio() {
    over_both(
        ALL,
        |dir| socket_file(&dir.join("s")),
        |t| {
            let socket = t.client.walk_to(t.root, "s");
            // Flags of socket(2) are no type.
            for sock_type in [0, 3, 4, 6, 10, 0o4001, 0x8_0001, u32::MAX] {
                assert_eq!(bind(t, sock_type, "new"), Err(Errno::ENXIO), "{sock_type}");
                assert_eq!(t.client.connect(socket, sock_type).map(drop), Err(Errno::ENXIO), "{sock_type}");
                assert_eq!(t.client.connect_as(socket, sock_type, ANYONE).map(drop), Err(Errno::ENXIO), "{sock_type}");
            }
            assert_eq!(bind(t, 99, &"n".repeat(108)), Err(Errno::EINVAL), "the length comes first");
            assert!(!t.exists("new"));
        },
    );
}

#[test]
fn connections_are_accepted_one_by_one() {
    over_both(ALL, nothing, |t| {
        let (_, bound, donated) = t.client.bind(new_in(t.root, FileType::Socket, 0o777), STREAM, "s").expect("bind");
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EINVAL), "not listening");
        assert_eq!(t.client.listen(bound, 8), Ok(()));
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EAGAIN), "nobody there");
        assert!(!readable(&donated));
        let mut peers: Vec<_> = (0..3).map(|_| UnixStream::connect(t.host("s")).expect("connect")).collect();
        assert!(readable(&donated), "what was donated tells");
        for (number, peer) in (b'a'..).zip(&mut peers) {
            let accepted = t.client.accept(bound).expect("accept");
            assert!(never_waits(&accepted));
            let mut accepted = UnixStream::from(accepted);
            accepted.write_all(&[number]).expect("write");
            let mut byte = [0];
            peer.read_exact(&mut byte).expect("read");
            assert_eq!(byte, [number]);
        }
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EAGAIN));
    });
}

#[test]
fn listen_may_be_repeated_with_any_backlog() {
    over_both(ALL, nothing, |t| {
        let bound = bind(t, SEQPACKET, "s").expect("bind");
        for backlog in [0, 128, 1, -1, i32::MAX, i32::MIN] {
            assert_eq!(t.client.listen(bound, backlog), Ok(()), "{backlog}");
        }
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EAGAIN));
        let datagrams = bind(t, DATAGRAM, "d").expect("bind");
        assert_eq!(t.client.listen(datagrams, 1), Err(Errno::EOPNOTSUPP));
        assert_eq!(t.client.accept(datagrams).map(drop), Err(Errno::EOPNOTSUPP));
    });
}

/// Defect D6.
#[test]
fn closing_a_bound_socket_closes_it() {
    over_both(ALL, nothing, |t| {
        let (_, bound, donated) = t.client.bind(new_in(t.root, FileType::Socket, 0o777), STREAM, "s").expect("bind");
        t.client.listen(bound, 8).expect("listen");
        let waiting = UnixStream::connect(t.host("s")).expect("connect");
        assert!(t.client.accept(bound).is_ok());
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EAGAIN));
        t.client.close(&[bound]);
        drop(donated);
        let refused = UnixStream::connect(t.host("s")).expect_err("nobody listens");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EBADF));
        drop(waiting);
    });
}

#[test]
fn a_socket_of_the_host_is_connected_to_and_the_connection_donated() {
    over_both(ALL, nothing, |t| {
        let listener = UnixListener::bind(t.host("s")).expect("a socket");
        let connected = t.client.connect(t.client.walk_to(t.root, "s"), STREAM).expect("connect");
        assert!(never_waits(&connected));
        let (mut peer, _) = listener.accept().expect("accept");
        UnixStream::from(connected).write_all(b"hello").expect("write");
        let mut text = String::new();
        peer.read_to_string(&mut text).expect("read");
        assert_eq!(text, "hello");

        let datagrams = UnixDatagram::bind(t.host("d")).expect("a socket");
        let connected = t.client.connect(t.client.walk_to(t.root, "d"), DATAGRAM).expect("connect");
        assert_eq!(rustix::io::write(&connected, b"one"), Ok(3));
        assert_eq!(datagrams.recv(&mut [0; 9]).expect("receive"), 3);
    });
}

#[test]
fn a_connection_that_the_host_refuses_says_why() {
    over_both(
        ALL,
        |dir| {
            files(dir, &["f"]);
            socket_file(&dir.join("dead"));
        },
        |t| {
            let _listener = UnixListener::bind(t.host("s")).expect("a socket");
            let socket = t.client.walk_to(t.root, "s");
            assert_eq!(t.client.connect(t.client.walk_to(t.root, "dead"), STREAM).map(drop), Err(Errno::ECONNREFUSED));
            assert_eq!(t.client.connect(socket, DATAGRAM).map(drop), Err(Errno::EPROTOTYPE));
            assert_eq!(t.client.connect(socket, SEQPACKET).map(drop), Err(Errno::EPROTOTYPE));
            for name in ["f", "s"] {
                let fd = t.client.walk_to(t.root, name);
                let expected = if name == "f" { Some(Errno::ENOTSOCK) } else { None };
                assert_eq!(t.client.connect(fd, STREAM).err(), expected, "{name}");
                assert_eq!(t.client.connect_as(fd, STREAM, ANYONE).err(), expected, "{name}");
            }
            assert_eq!(t.client.connect(t.root, 99).map(drop), Err(Errno::ENOTSOCK), "before the type");
        },
    );
}

#[test]
fn a_connection_is_to_the_held_socket_wherever_it_is_by_now() {
    over_both(ALL, nothing, |t| {
        let right = UnixListener::bind(t.host("s")).expect("a socket");
        let fd = t.client.walk_to(t.root, "s");
        std::fs::rename(t.host("s"), t.host("moved")).expect("rename");
        let wrong = UnixListener::bind(t.host("s")).expect("a socket");
        let _connected: OwnedFd = t.client.connect(fd, STREAM).expect("connect");
        right.set_nonblocking(true).expect("non-blocking");
        wrong.set_nonblocking(true).expect("non-blocking");
        assert!(right.accept().is_ok() && wrong.accept().is_err());
    });
}

/// Defect D5.
#[test]
fn a_full_backlog_is_eagain_not_a_wait() {
    over_both(ALL, nothing, |t| {
        let (child, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o777), STREAM, "s").expect("bind");
        t.client.listen(bound, 0).expect("listen");
        let mut kept = Vec::new();
        let refused = loop {
            match t.client.connect(child.control_fd, STREAM) {
                Ok(connected) => kept.push(connected),
                Err(errno) => break errno,
            }
            assert!(kept.len() < 10);
        };
        assert_eq!(refused, Errno::EAGAIN);
        assert!(t.client.rename((t.root, "s"), (t.root, "still-alive")).is_ok());
    });
}

fn peer_of(listener: &UnixListener) -> (u32, u32) {
    let (peer, _) = listener.accept().expect("accept");
    let credentials = rustix::net::sockopt::socket_peercred(&peer).expect("credentials");
    (credentials.uid.as_raw(), credentials.gid.as_raw())
}

#[test]
fn a_connection_with_credentials_shows_them_to_the_peer() {
    over_both(ALL, nothing, |t| {
        let listener = UnixListener::bind(t.host("s")).expect("a socket");
        std::fs::set_permissions(t.host("s"), std::fs::Permissions::from_mode(0o777)).expect("a mode");
        let fd = t.client.walk_to(t.root, "s");
        for (uid, gid, expected) in [
            (Uid(1000), Gid(1001), (1000, 1001)),
            (Uid(0), Gid(0), (0, 0)),
            (Uid::NONE, Gid::NONE, (0, 0)),
            (Uid(5), Gid::NONE, (5, 0)),
            (Uid::NONE, Gid(6), (0, 6)),
        ] {
            let connected = t.client.connect_as(fd, STREAM, (uid, gid)).expect("connect");
            assert!(never_waits(&connected));
            assert_eq!(peer_of(&listener), expected);
        }
        // The server itself is who it was.
        let _connected = t.client.connect(fd, STREAM).expect("connect");
        assert_eq!(peer_of(&listener), (0, 0));
        t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "f").expect("create");
        assert_eq!(t.owner("f"), (0, 0));
    });
}

#[test]
fn credentials_are_held_against_the_sockets_mode() {
    over_both(ALL, nothing, |t| {
        let _listener = UnixListener::bind(t.host("s")).expect("a socket");
        std::fs::set_permissions(t.host("s"), std::fs::Permissions::from_mode(0o700)).expect("a mode");
        let fd = t.client.walk_to(t.root, "s");
        assert_eq!(t.client.connect_as(fd, STREAM, (Uid(1000), Gid(1000))).map(drop), Err(Errno::EACCES));
        assert!(t.client.connect_as(fd, STREAM, (Uid(0), Gid(1000))).is_ok());
    });
}

#[test]
fn a_socket_that_the_server_bound_can_be_removed_and_bound_anew() {
    over_both(ALL, nothing, |t| {
        let (old, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o700), STREAM, "s").expect("bind");
        t.client.unlink(t.root, "s").expect("unlink");
        let (new, ..) = t.client.bind(new_in(t.root, FileType::Socket, 0o700), STREAM, "s").expect("bind");
        assert_ne!(old.control_fd, new.control_fd);
        t.client.close(&[old.control_fd, bound]);
        t.client.unlink(t.root, "s").expect("unlink");
        assert_eq!(t.client.connect(new.control_fd, STREAM).map(drop), Err(Errno::EINVAL), "it was tracked");
    });
}

#[test]
fn sockets_do_not_leak_descriptors() {
    over_both(ALL, nothing, |t| {
        let listener = UnixListener::bind(t.host("there")).expect("a socket");
        let there = t.client.walk_to(t.root, "there");
        let before = t.descriptors();
        for round in 0..10 {
            let name = format!("s{round}");
            let (child, bound, _) =
                t.client.bind(new_in(t.root, FileType::Socket, 0o700), STREAM, &name).expect("bind");
            t.client.listen(bound, 1).expect("listen");
            let _connected = t.client.connect(child.control_fd, STREAM).expect("connect");
            let _accepted = t.client.accept(bound).expect("accept");
            let _other = t.client.connect(there, STREAM).expect("connect");
            assert!(listener.accept().is_ok());
            assert!(bind(t, STREAM, &name).is_err());
            t.client.close(&[child.control_fd, bound]);
        }
        assert_eq!(t.descriptors(), before);
    });
}
