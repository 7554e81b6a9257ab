//! D6, D13: sockets end when they are closed, and no one connects as the server.

use std::os::unix::net::UnixStream;
use std::path::Path;

use gofer_integration::child::NOBODY;
use gofer_integration::{Ask, eventually, new_in, nothing, over_both, over_both_unprivileged};
use gofer_protocol::message::AcceptRequest;
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, Gid, Uid};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// Defect D6: Close closes the listening socket, after Listen and Accept as well.
#[test]
fn a_closed_socket_accepts_no_more_however_often_it_was_used() {
    over_both(&["--host-uds", "all"], nothing, |t| {
        let path = t.host("s");
        let baseline = t.descriptors();
        let (child, fd, donated) = t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").expect("bind");
        for backlog in [8, 1, 16] {
            t.client.listen(fd, backlog).expect("listen");
        }
        for _ in 0..100 {
            assert_eq!(t.client.accept(fd).err(), Some(Errno::EAGAIN));
        }
        let peer = UnixStream::connect(&path).expect("a listening socket");
        let accepted = t.client.ask(&AcceptRequest { fd }).expect("a connection");
        assert_eq!((accepted.fds.len(), accepted.payload.as_slice()), (1, &[0, 0][..]));
        drop((peer, accepted));

        t.client.close(&[fd]);
        // The client's own descriptor, which is there to be polled, keeps the socket as well.
        drop(donated);
        assert!(eventually(|| connect(&path) == Err(rustix::io::Errno::CONNREFUSED)), "the socket still listens");
        assert_eq!(t.client.accept(fd).err(), Some(Errno::EBADF));
        t.client.unlink(t.root, "s").expect("unlink");
        t.client.close(&[child.control_fd]);
        t.gofer().assert_descriptors(baseline, "leaked");
    });
}

/// Without waiting, should there be a listener whose backlog is full.
fn connect(path: &Path) -> rustix::io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Defect D13: ConnectWithCreds that cannot take on the ids is EPERM.
#[test]
fn connecting_under_ids_that_cannot_be_had_is_eperm() {
    over_both_unprivileged(&["--host-uds", "all"], nothing, |t| {
        let (child, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").expect("bind");
        t.client.listen(bound, 8).expect("listen");
        for (uid, gid) in [(0, 0), (0, NOBODY), (NOBODY, 0), (1000, 1000)] {
            let connected = t.client.connect_as(child.control_fd, 1, (Uid(uid), Gid(gid)));
            assert_eq!(connected.err(), Some(Errno::EPERM));
        }
        assert_eq!(t.client.accept(bound).err(), Some(Errno::EAGAIN), "nobody connected");
    });
}
