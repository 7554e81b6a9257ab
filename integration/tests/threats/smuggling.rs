//! Descriptors that a client attaches to what it sends.

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use gofer_integration::{Ask, HostileChannel, Served};
use gofer_protocol::Mid;
use gofer_protocol::transport::channel::ClientChannel;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Sends bytes with a descriptor, as often as there is room. Without bytes: packets of a descriptor alone.
fn send_with(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).is_ok()
}

fn marked_file() -> (File, (u64, u64)) {
    let file = tempfile::tempfile().expect("a file");
    let is = file.metadata().expect("metadata");
    (file, (is.dev(), is.ino()))
}

/// Threat: smuggle FDs to the server, with requests on the socket.
#[test]
fn descriptors_that_come_with_requests_never_arrive() {
    let served = Served::new();
    let (file, identity) = marked_file();
    let before = served.descriptors();
    let frame = [&8_u32.to_le_bytes()[..], &Mid::FSTAT.0.to_le_bytes(), &[0; 2], &served.root.0.to_le_bytes()].concat();
    let fds = [file.as_fd(); 16];
    for split in [16, 1, 8, 15] {
        for _ in 0..100 {
            // Attached to the header, to the payload, and to single bytes of them.
            assert!(send_with(&served.client.stream, &frame[..split], &fds));
            if split < frame.len() {
                assert!(send_with(&served.client.stream, &frame[split..], &fds));
            }
            let answer = served.client.receive().expect("an answer");
            assert_eq!((answer.mid, answer.fds.len()), (Mid::FSTAT, 0));
        }
    }
    assert!(!served.gofer.held_files().contains(&identity), "a descriptor was smuggled in");
    served.gofer.assert_descriptors(before, "leaked");
}

/// Threat: smuggle FDs to the server, on the descriptor socket of a channel. Abnormal input: numFDs of a request.
#[test]
fn descriptors_that_a_request_announces_are_never_received() {
    let served = Served::new();
    let (file, identity) = marked_file();
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    let before = served.descriptors();
    let mut queued = 0;
    while queued < 10_000 && send_with(&channel.offer.fd_socket, b"", &[file.as_fd()]) {
        queued += 1;
    }
    assert!(queued > 0);
    for num_fds in [1, 2, 255] {
        channel.write(4, &served.root.0.to_le_bytes());
        channel.write(0, &[&Mid::FSTAT.0.to_le_bytes()[..], &[num_fds, 0]].concat());
        channel.pass(12);
        assert_eq!(channel.wait(), 0);
        assert_eq!(channel.header(), [3, 0, 0, 0], "a reply to FStat without descriptors");
    }
    assert!(!served.gofer.held_files().contains(&identity), "a descriptor was smuggled in");
    served.gofer.assert_descriptors(before, "leaked");
}

/// Threat: smuggle FDs to the server; the server's own donations still arrive on a socket stuffed with the client's.
#[test]
fn what_a_client_stuffs_into_the_descriptor_socket_does_not_come_back() {
    let served = Served::with(&[], |dir| std::fs::write(dir.join("f"), "hello").expect("a file"));
    let (file, identity) = marked_file();
    let offer = served.client.channel().expect("a channel");
    while send_with(&offer.fd_socket, b"", &[file.as_fd()]) {}
    let fd_socket: OwnedFd = offer.fd_socket.try_clone().expect("a descriptor");
    let channel = ClientChannel::connect(&offer.memory, offer.place.data_offset, offer.place.data_length, fd_socket);
    let channel = channel.expect("a handshake");
    let control = served.client.walk_to(served.root, "f");
    let (_, fds) = channel.open(control, 0).expect("open");
    assert_eq!(fds.len(), 1);
    let is = rustix::fs::fstat(&fds[0]).expect("metadata");
    assert_ne!((is.st_dev, is.st_ino), identity);
    assert_eq!(is.st_size, 5);
}
