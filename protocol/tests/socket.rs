//! Both ends of the socket transport, against a peer that splits, lies, smuggles and dies.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use gofer_protocol::codec::decode;
use gofer_protocol::transport::{ClientSocket, Ended, Header, ServerSocket, SocketHeader, Transport};
use gofer_protocol::{Errno, MAX_MESSAGE_SIZE, Mid, Wire};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

mod copies;

use copies::copies_of;

/// A limit small enough to be exceeded cheaply.
const LIMIT: u32 = 100_000;

/// A server's end, and a client that can do anything to it.
fn server() -> (ServerSocket, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ServerSocket::new(ours.into(), LIMIT), theirs)
}

/// A client's end, and a server that can do anything to it.
fn client() -> (ClientSocket<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ClientSocket::new(ours), theirs)
}

fn frame(mid: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = header(u32::try_from(payload.len()).unwrap(), mid);
    frame.extend(payload);
    frame
}

fn header(payload_len: u32, mid: u16) -> Vec<u8> {
    let mut header = Vec::new();
    SocketHeader::new(payload_len, Mid(mid)).put(&mut header);
    header
}

fn read_frame(from: &mut UnixStream) -> (Mid, Vec<u8>) {
    let mut header = [0; SocketHeader::LEN];
    from.read_exact(&mut header).unwrap();
    let header: SocketHeader = decode(&header).unwrap();
    let mut payload = vec![0; usize::try_from(header.payload_len).unwrap()];
    from.read_exact(&mut payload).unwrap();
    (header.mid, payload)
}

fn send_with_fds(socket: &UnixStream, bytes: &[u8], fds: &[impl AsFd]) {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let sent = sendmsg(socket, &[std::io::IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    assert_eq!(sent, bytes.len());
}

fn some_file() -> File {
    tempfile::tempfile().unwrap()
}

mod server {
    use super::*;

    #[test]
    fn a_request_may_be_split_anywhere() {
        let payload: Vec<u8> = (0..40).collect();
        for split in 0..SocketHeader::LEN + payload.len() {
            let (mut server, mut client) = server();
            let request = frame(7, &payload);
            let sender = thread::spawn(move || {
                let (first, second) = request.split_at(split);
                client.write_all(first).unwrap();
                thread::sleep(Duration::from_millis(1));
                client.write_all(second).unwrap();
                client
            });
            assert_eq!(server.receive(), Ok(Header { mid: Mid(7), payload_len: 40 }));
            assert_eq!(server.payload(usize::MAX), Ok(&payload[..]));
            drop(sender.join().unwrap());
        }
    }

    #[test]
    fn requests_sent_without_waiting_are_served_in_order() {
        let (mut server, mut client) = server();
        let mut requests = Vec::new();
        for mid in 0..2000u16 {
            requests.extend(frame(mid, &vec![mid.to_le_bytes()[0]; usize::from(mid % 50)]));
        }
        let sender = thread::spawn(move || {
            client.write_all(&requests).unwrap();
            client
        });
        for mid in 0..2000u16 {
            let payload_len = usize::from(mid % 50);
            assert_eq!(server.receive(), Ok(Header { mid: Mid(mid), payload_len }));
            assert_eq!(server.payload(payload_len), Ok(&vec![mid.to_le_bytes()[0]; payload_len][..]));
        }
        assert!(!server.has_arrivals());
        drop(sender.join().unwrap());
        assert_eq!(server.receive(), Err(Ended::Closed));
    }

    #[test]
    fn arrivals_behind_the_request_are_known_and_survive_a_trim() {
        let (mut server, mut client) = server();
        client.write_all(&[frame(1, b"one"), frame(2, b"two")].concat()).unwrap();
        server.receive().unwrap();
        assert!(server.has_arrivals());
        server.trim();
        assert!(server.has_arrivals());
        assert_eq!(server.receive(), Ok(Header { mid: Mid(2), payload_len: 3 }));
        assert_eq!(server.payload(3), Ok(&b"two"[..]));
        assert!(!server.has_arrivals());
    }

    #[test]
    fn a_payload_is_given_out_up_to_its_end() {
        let (mut server, mut client) = server();
        client.write_all(&[frame(1, b"payload"), frame(2, b"next")].concat()).unwrap();
        server.receive().unwrap();
        assert_eq!(server.payload(0), Ok(&b""[..]));
        assert_eq!(server.payload(3), Ok(&b"pay"[..]));
        assert_eq!(server.payload(8), Ok(&b"payload"[..]));
    }

    #[test]
    fn a_payload_beyond_the_limit_is_consumed_and_told() {
        let (mut server, mut client) = server();
        let sender = thread::spawn(move || {
            client.write_all(&header(LIMIT + 1, 5)).unwrap();
            client.write_all(&vec![1; usize::try_from(LIMIT).unwrap() + 1]).unwrap();
            client.write_all(&frame(6, b"next")).unwrap();
            client
        });
        assert_eq!(server.receive(), Ok(Header { mid: Mid(5), payload_len: 100_001 }));
        assert_eq!(server.payload(usize::MAX), Ok(&b""[..]));
        assert!(server.footprint() <= 4096);
        assert_eq!(server.receive(), Ok(Header { mid: Mid(6), payload_len: 4 }));
        assert_eq!(server.payload(4), Ok(&b"next"[..]));
        drop(sender.join().unwrap());
    }

    #[test]
    fn the_longest_payload_is_received_whole() {
        let (mut server, mut client) = server();
        let payload: Vec<u8> = (0..LIMIT).map(|n| n.to_le_bytes()[0]).collect();
        let request = frame(11, &payload);
        let sender = thread::spawn(move || client.write_all(&request).map(|()| client).unwrap());
        assert_eq!(server.receive(), Ok(Header { mid: Mid(11), payload_len: 100_000 }));
        assert_eq!(server.payload(usize::MAX), Ok(&payload[..]));
        drop(sender.join().unwrap());
    }

    /// With 32-bit arithmetic, the header's own length would wrap these around to almost nothing.
    #[test]
    fn the_largest_lengths_are_neither_wrapped_nor_allocated() {
        for payload_len in [u32::MAX, u32::MAX - 7, 1 << 31, (1 << 31) - 1] {
            let (mut server, mut client) = server();
            client.write_all(&header(payload_len, 5)).unwrap();
            client.write_all(&vec![0; 10_000]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(server.receive(), Err(Ended::Closed));
            assert!(server.footprint() <= 4096);
        }
    }

    #[test]
    fn four_gigabytes_of_payload_are_consumed() {
        let (mut server, mut client) = server();
        let sender = thread::spawn(move || {
            client.write_all(&header(u32::MAX, 5)).unwrap();
            let chunk = vec![0; 1 << 20];
            for _ in 0..4095 {
                client.write_all(&chunk).unwrap();
            }
            client.write_all(&chunk[1..]).unwrap();
            client.write_all(&frame(6, b"next")).unwrap();
            client
        });
        assert_eq!(server.receive(), Ok(Header { mid: Mid(5), payload_len: 0xffff_ffff }));
        assert!(server.footprint() <= 4096);
        assert_eq!(server.receive(), Ok(Header { mid: Mid(6), payload_len: 4 }));
        drop(sender.join().unwrap());
    }

    #[test]
    fn the_end_is_the_end_wherever_it_comes() {
        let request = frame(7, b"payload");
        for len in 0..request.len() {
            let (mut server, mut client) = server();
            client.write_all(&request[..len]).unwrap();
            drop(client);
            assert_eq!(server.receive(), Err(Ended::Closed), "after {len} bytes");
            assert_eq!(server.receive(), Err(Ended::Closed), "again after {len} bytes");
        }
    }

    #[test]
    fn smuggled_descriptors_do_not_arrive() {
        let (mut server, client) = server();
        let file = some_file();
        for _ in 0..100 {
            send_with_fds(&client, &frame(7, b"payload"), &[&file, &file, &file]);
            server.receive().unwrap();
        }
        assert_eq!(copies_of(&file), 1);
    }

    #[test]
    fn a_reply_is_header_head_and_bulk() {
        let (mut server, mut client) = server();
        let file = some_file();
        file.write_all_at(b"0123456789", 0).unwrap();
        client.write_all(&frame(12, b"")).unwrap();
        server.receive().unwrap();
        assert_eq!(server.read_file(8, 4, file.as_fd(), 2).unwrap(), 4);
        assert_eq!(server.read_file(12, 100, file.as_fd(), 6).unwrap(), 4);
        server.reply(Mid::PREAD, &8u64.to_le_bytes(), 8, &mut Vec::new()).unwrap();
        assert_eq!(read_frame(&mut client), (Mid::PREAD, [&8u64.to_le_bytes()[..], b"23456789"].concat()));

        // The next request starts from nothing.
        client.write_all(&frame(12, b"")).unwrap();
        server.receive().unwrap();
        assert_eq!(server.reply(Mid::PREAD, &[0; 8], 1, &mut Vec::new()), Err(Ended::Host(Errno::EIO)));
    }

    #[test]
    fn a_read_stays_within_the_message_and_in_one_piece() {
        let (mut server, _client) = server();
        let file = some_file();
        let limit = usize::try_from(LIMIT).unwrap();
        let error = |outcome: std::io::Result<usize>| outcome.unwrap_err().raw_os_error();
        let eio = Some(5);
        assert_eq!(error(server.read_file(8, limit - 7, file.as_fd(), 0)), eio);
        assert_eq!(error(server.read_file(8, usize::MAX, file.as_fd(), 0)), eio);
        assert_eq!(error(server.read_file(usize::MAX, 1, file.as_fd(), 0)), eio);
        assert_eq!(server.read_file(8, limit - 8, file.as_fd(), 0).unwrap(), 0);
        file.write_all_at(b"0123456789", 0).unwrap();
        assert_eq!(server.read_file(8, 4, file.as_fd(), 0).unwrap(), 4);
        assert_eq!(error(server.read_file(13, 4, file.as_fd(), 0)), eio);
        assert_eq!(error(server.read_file(7, 4, file.as_fd(), 0)), eio);
        // What the host says is passed on.
        assert_eq!(error(server.read_file(12, 4, file.as_fd(), u64::MAX)), Some(22));
    }

    #[test]
    fn a_write_takes_its_data_from_the_payload_and_from_nowhere_else() {
        let (mut server, mut client) = server();
        let mut file = some_file();
        client.write_all(&[frame(11, b"head and data"), frame(1, b"next")].concat()).unwrap();
        server.receive().unwrap();
        assert_eq!(server.write_file(9, 4, file.as_fd(), 3).unwrap(), 4);
        for (at, len) in [(9, 5), (13, 1), (14, 0), (usize::MAX, 1), (1, usize::MAX)] {
            assert_eq!(server.write_file(at, len, file.as_fd(), 0).unwrap_err().raw_os_error(), Some(5));
        }
        let mut written = Vec::new();
        file.read_to_end(&mut written).unwrap();
        assert_eq!(written, b"\0\0\0data");
    }

    #[test]
    fn a_reply_larger_than_the_socket_holds_carries_its_descriptors_once() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut server = ServerSocket::new(ours.into(), MAX_MESSAGE_SIZE);
        let file = some_file();
        file.set_len(2_000_000).unwrap();
        let data: Vec<u8> = (0..2_000_000u32).map(|n| n.to_le_bytes()[1]).collect();
        file.write_all_at(&data, 0).unwrap();
        assert_eq!(server.read_file(8, 2_000_000, file.as_fd(), 0).unwrap(), 2_000_000);

        let mut fds: Vec<OwnedFd> = vec![file.try_clone().unwrap().into(), file.try_clone().unwrap().into()];
        let replier = thread::spawn(move || {
            server.reply(Mid::PREAD, &2_000_000u64.to_le_bytes(), 2_000_000, &mut fds).unwrap();
            assert!(fds.is_empty());
            server
        });
        let mut client = ClientSocket::new(theirs);
        // Nobody asks twice, so that a request need not be answered twice: what is in the socket is the reply.
        let mut received = Vec::new();
        let header = client.exchange(Mid::PREAD, b"", b"", 2, &mut received).unwrap();
        assert_eq!(header, Header { mid: Mid::PREAD, payload_len: 2_000_008 });
        let mut payload = vec![0; 2_000_008];
        client.take_payload(&mut payload).unwrap();
        assert_eq!(payload[..8], 2_000_000u64.to_le_bytes());
        assert!(payload[8..] == data[..]);
        let server = replier.join().unwrap();
        assert_eq!(received.len(), 2);
        assert_eq!(copies_of(&file), 3);
        drop(server);
    }

    #[test]
    fn donated_descriptors_are_closed_even_if_nobody_gets_them() {
        let (mut server, client) = server();
        drop(client);
        let file = some_file();
        let mut fds: Vec<OwnedFd> = vec![file.try_clone().unwrap().into()];
        assert_eq!(server.reply(Mid::OPEN_AT, &[0; 8], 0, &mut fds), Err(Ended::Closed));
        assert!(fds.is_empty());
        assert_eq!(copies_of(&file), 1);
    }

    #[test]
    fn a_client_that_is_gone_does_not_kill_the_process() {
        let (mut server, mut client) = server();
        client.write_all(&frame(3, &[0; 8])).unwrap();
        server.receive().unwrap();
        drop(client);
        // Without MSG_NOSIGNAL this raises SIGPIPE; the Rust runtime ignores it, a server with its own start-up may not.
        assert_eq!(server.reply(Mid::FSTAT, &[0; 144], 0, &mut Vec::new()), Err(Ended::Closed));
    }

    #[test]
    fn large_buffers_are_kept_while_data_flows_and_given_back_when_it_stops() {
        let (mut server, mut client) = server();
        let file = some_file();
        file.set_len(50_000).unwrap();
        let request = frame(11, &vec![0; 50_000]);
        let sender = thread::spawn(move || {
            client.write_all(&request).unwrap();
            read_frame(&mut client);
            client.write_all(&request).unwrap();
            read_frame(&mut client);
            client
        });
        for _ in 0..2 {
            server.receive().unwrap();
            server.read_file(8, 50_000, file.as_fd(), 0).unwrap();
            assert!(server.footprint() > 100_000);
            server.reply(Mid::PREAD, &50_000u64.to_le_bytes(), 50_000, &mut Vec::new()).unwrap();
        }
        let mut client = sender.join().unwrap();
        let waiter = thread::spawn(move || {
            server.receive().unwrap();
            server.footprint()
        });
        // Longer than the buffers wait.
        thread::sleep(Duration::from_millis(500));
        client.write_all(&frame(1, b"")).unwrap();
        assert!(waiter.join().unwrap() <= 4096);
    }

    #[test]
    fn a_non_blocking_socket_serves_as_well() {
        let (mut server, mut client) = server();
        rustix::io::ioctl_fionbio(&server, true).unwrap();
        let payload = vec![7; 90_000];
        let request = frame(11, &payload);
        let peer = thread::spawn(move || {
            for part in request.chunks(30_000) {
                thread::sleep(Duration::from_millis(5));
                client.write_all(part).unwrap();
            }
            // The reply does not fit the socket's buffer, so that the server has to wait for us.
            thread::sleep(Duration::from_millis(5));
            read_frame(&mut client)
        });
        assert_eq!(server.receive(), Ok(Header { mid: Mid(11), payload_len: 90_000 }));
        assert_eq!(server.payload(usize::MAX), Ok(&payload[..]));
        let reply = vec![9; 1_000_000];
        server.reply(Mid(11), &reply, 0, &mut Vec::new()).unwrap();
        assert_eq!(peer.join().unwrap(), (Mid(11), reply));
    }
}

mod client {
    use super::*;

    fn exchange(client: &mut ClientSocket<UnixStream>, donations: usize) -> (Result<Header, Ended>, Vec<OwnedFd>) {
        let mut fds = Vec::new();
        let outcome = client.exchange(Mid::FSTAT, &[1, 2], &[3], donations, &mut fds);
        (outcome, fds)
    }

    #[test]
    fn a_request_is_header_head_and_data() {
        let (mut client, mut server) = client();
        server.write_all(&frame(3, b"reply")).unwrap();
        assert_eq!(exchange(&mut client, 0).0, Ok(Header { mid: Mid(3), payload_len: 5 }));
        assert_eq!(read_frame(&mut server), (Mid::FSTAT, vec![1, 2, 3]));
    }

    #[test]
    fn a_reply_may_be_split_anywhere() {
        let reply = frame(3, b"reply");
        for split in 0..reply.len() {
            let (mut client, mut server) = client();
            let reply = reply.clone();
            let sender = thread::spawn(move || {
                let (first, second) = reply.split_at(split);
                server.write_all(first).unwrap();
                thread::sleep(Duration::from_millis(1));
                server.write_all(second).unwrap();
                server
            });
            assert_eq!(exchange(&mut client, 1).0, Ok(Header { mid: Mid(3), payload_len: 5 }));
            let mut payload = [0; 5];
            client.take_payload(&mut payload[..2]).unwrap();
            client.take_payload(&mut payload[2..]).unwrap();
            assert_eq!(&payload, b"reply");
            drop(sender.join().unwrap());
        }
    }

    #[test]
    fn what_is_not_taken_of_a_reply_is_not_in_the_way_of_the_next() {
        let (mut client, mut server) = client();
        let sender = thread::spawn(move || {
            for len in [10, 100_000] {
                read_frame(&mut server);
                server.write_all(&frame(3, &vec![1; len])).unwrap();
            }
            read_frame(&mut server);
            server.write_all(&frame(3, b"last")).unwrap();
        });
        assert_eq!(exchange(&mut client, 0).0.unwrap().payload_len, 10);
        assert_eq!(exchange(&mut client, 0).0.unwrap().payload_len, 100_000);
        client.take_payload(&mut [0; 20]).unwrap();
        assert_eq!(exchange(&mut client, 0).0.unwrap().payload_len, 4);
        let mut payload = [0; 4];
        client.take_payload(&mut payload).unwrap();
        assert_eq!(&payload, b"last");
        assert!(matches!(client.take_payload(&mut [0]), Err(Ended::Broken(_))));
        sender.join().unwrap();
    }

    #[test]
    fn donated_descriptors_are_received_and_surplus_ones_closed() {
        let file = some_file();
        for (sent, wanted, kept) in [(0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 1, 1), (5, 1, 1), (5, 2, 2), (1, 2, 1)] {
            let (mut client, server) = client();
            if sent == 0 {
                (&server).write_all(&frame(3, b"reply")).unwrap();
            } else {
                send_with_fds(&server, &frame(3, b"reply"), &vec![&file; sent]);
            }
            let (outcome, fds) = exchange(&mut client, wanted);
            assert_eq!(outcome, Ok(Header { mid: Mid(3), payload_len: 5 }));
            assert_eq!(fds.len(), kept, "{sent} sent, {wanted} wanted");
            assert_eq!(copies_of(&file), 1 + kept, "{sent} sent, {wanted} wanted");
            for fd in &fds {
                assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
            }
        }
    }

    #[test]
    fn descriptors_that_come_behind_the_header_do_not_arrive() {
        let file = some_file();
        let (mut client, server) = client();
        (&server).write_all(&header(5, 3)).unwrap();
        let (outcome, fds) = exchange(&mut client, 1);
        assert!(outcome.is_ok());
        send_with_fds(&server, b"reply", &[&file]);
        let mut payload = [0; 5];
        client.take_payload(&mut payload).unwrap();
        assert_eq!(&payload, b"reply");
        assert!(fds.is_empty());
        assert_eq!(copies_of(&file), 1);
    }

    #[test]
    fn the_end_is_the_end_wherever_it_comes() {
        let reply = frame(3, b"reply");
        for len in 0..reply.len() {
            let (mut client, mut server) = client();
            server.write_all(&reply[..len]).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
            let mut payload = [0; 5];
            let outcome = exchange(&mut client, 0).0.and_then(|_| client.take_payload(&mut payload));
            assert_eq!(outcome, Err(Ended::Closed), "after {len} bytes");
        }
    }

    #[test]
    fn a_reply_of_any_length_is_skipped_without_being_stored() {
        let (mut client, mut server) = client();
        server.write_all(&header(u32::MAX, 3)).unwrap();
        let (outcome, _) = exchange(&mut client, 0);
        assert_eq!(outcome, Ok(Header { mid: Mid(3), payload_len: 0xffff_ffff }));
        server.write_all(&[0; 1000]).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.skip_payload(), Err(Ended::Closed));
    }

    #[test]
    fn bytes_behind_a_reply_are_an_error() {
        let (mut client, mut server) = client();
        server.write_all(&[frame(3, b"reply"), vec![0]].concat()).unwrap();
        assert!(matches!(exchange(&mut client, 0).0, Err(Ended::Broken(_))));
    }
}
