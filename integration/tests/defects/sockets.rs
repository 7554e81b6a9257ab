//! D6, D13: sockets end when they are closed, and no one connects as the server.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

use gofer_integration::{Gofer, Raw, Requests, Served, each_way, eventually};
use gofer_protocol::codec::Padding;
use gofer_protocol::message::{AcceptRequest, ConnectWithCredsRequest, ListenRequest};
use gofer_protocol::{Errno, Gid, Uid};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// Defect D6: Close closes the listening socket, after Listen and Accept as well.
#[test]
fn a_closed_socket_accepts_no_more_however_often_it_was_used() {
    let served = Served::with(&["--host-uds", "all"], |_| ());
    let path = served.path().join("s");
    each_way(&served.client, |client| {
        let baseline = served.gofer.settled_descriptors();
        let (child, fd, donated) = client.bind(served.root, "s").expect("bind");
        for backlog in [8, 1, 16] {
            client.ask(&ListenRequest { fd, backlog }).expect("listen");
        }
        for _ in 0..100 {
            assert_eq!(client.ask(&AcceptRequest { fd }).err(), Some(Errno::EAGAIN));
        }
        let peer = UnixStream::connect(&path).expect("a listening socket");
        let accepted = client.ask(&AcceptRequest { fd }).expect("a connection");
        assert_eq!((accepted.fds.len(), accepted.payload.as_slice()), (1, &[0, 0][..]));
        drop((peer, accepted));

        client.close(&[fd]);
        // The client's own descriptor, which is there to be polled, keeps the socket as well.
        drop(donated);
        assert!(eventually(|| connect(&path) == Err(rustix::io::Errno::CONNREFUSED)), "the socket still listens");
        assert_eq!(client.ask(&AcceptRequest { fd }).err(), Some(Errno::EBADF));
        client.unlink(served.root, "s").expect("unlink");
        client.close(&[child.control_fd]);
        served.gofer.assert_descriptors(baseline, "leaked");
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
    const NOBODY: u32 = 65_534;
    let dir = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("an owner, which needs root");
    let (_gofer, stream) =
        Gofer::serve_with(dir.path(), &["--host-uds", "all"], |command| command.uid(NOBODY).gid(NOBODY));
    let client = Raw::new(stream);
    let root = client.mount();
    let (child, bound, _) = Requests::bind(&client, root, "s").expect("bind");
    client.ask(&ListenRequest { fd: bound, backlog: 8 }).expect("listen");
    each_way(&client, |client| {
        for (uid, gid) in [(0, 0), (0, NOBODY), (NOBODY, 0), (1000, 1000)] {
            let (uid, gid) = (Uid(uid), Gid(gid));
            let request = ConnectWithCredsRequest { fd: child.control_fd, sock_type: 1, padding: Padding, uid, gid };
            assert_eq!(client.ask(&request).err(), Some(Errno::EPERM));
        }
        assert_eq!(client.ask(&AcceptRequest { fd: bound }).err(), Some(Errno::EAGAIN), "nobody connected");
    });
}
