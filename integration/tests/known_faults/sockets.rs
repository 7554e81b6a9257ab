//! Sockets of the host.

use gofer_integration::{Ask, Served, new_in, nothing};
use gofer_protocol::Errno;
use gofer_protocol::record::FileType;
use rustix::net::sockopt::socket_type;
use rustix::net::{RecvFlags, SendFlags, recv, send};

const STREAM: u32 = 1;
const DGRAM: u32 = 2;
const SEQPACKET: u32 = 5;

/// Row B87.
#[test]
fn sockets_of_the_three_types_are_bound_connected_and_used() {
    let served = Served::with(&["--host-uds=all"], nothing);
    for kind in [STREAM, DGRAM, SEQPACKET] {
        let name = format!("s{kind}");
        let (child, bound, bound_host) =
            served.client.bind(new_in(served.root, FileType::Socket, 0o755), kind, &name).expect("bind");
        assert_eq!(socket_type(&bound_host).expect("a type").as_raw(), kind);
        if kind != DGRAM {
            assert_eq!(served.client.listen(bound, 5), Ok(()));
        }
        let connected = served.client.connect(child.control_fd, kind).expect("connect");
        send(&connected, b"hello", SendFlags::empty()).expect("send");
        let mut buffer = [0; 16];
        let got = match served.client.accept(bound) {
            Ok(peer) => recv(peer, &mut buffer[..], RecvFlags::empty()).expect("receive").0,
            Err(errno) => {
                assert_eq!((kind, errno), (DGRAM, Errno::EOPNOTSUPP));
                recv(&bound_host, &mut buffer[..], RecvFlags::empty()).expect("receive").0
            }
        };
        assert_eq!(&buffer[..got], b"hello");
        // A type that is not the socket's.
        let other = if kind == STREAM { DGRAM } else { STREAM };
        assert_eq!(served.client.connect(child.control_fd, other).map(|_| ()), Err(Errno::EPROTOTYPE));
    }
}

/// Row B87.
#[test]
fn a_socket_type_that_does_not_exist_is_enxio() {
    const NONBLOCK: u32 = 0o4000;
    let served = Served::with(&["--host-uds=all"], nothing);
    let (child, _, _) = served.client.bind(new_in(served.root, FileType::Socket, 0o755), STREAM, "s").expect("bind");
    for kind in [0, 3, 4, 6, 10, STREAM | NONBLOCK, u32::MAX] {
        assert_eq!(
            served.client.bind(new_in(served.root, FileType::Socket, 0o755), kind, "x").map(|_| ()),
            Err(Errno::ENXIO),
            "bind {kind}"
        );
        assert_eq!(served.client.connect(child.control_fd, kind).map(|_| ()), Err(Errno::ENXIO), "connect {kind}");
    }
    assert!(!served.path().join("x").exists());
}
