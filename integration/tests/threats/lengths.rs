//! Lengths and counts that lie, and sums that overflow.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gofer_integration::{Ask, Exchange, Listening, Raw, Served, encoded, nothing, over_both};
use gofer_protocol::message::{FAllocateRequest, PReadRequest};
use gofer_protocol::{Errno, FdId, Mid};

/// Threat: oversize lengths. Abnormal input: payloadLen = max + 1 ... about 4 GiB.
#[test]
fn a_payload_beyond_the_limit_is_eio_and_the_connection_lives() {
    let served = Served::new();
    for len in [2_093_057, 2_097_152, 16 << 20] {
        assert_eq!(served.client.exchange(Mid::FSTAT.0, &vec![0; len]).err(), Some(Errno::EIO), "{len} bytes");
        assert!(served.client.fstat(served.root).is_ok(), "{len} bytes");
    }
}

/// Threat: memory exhaustion by 4 GiB payloads; 32-bit overflow. Abnormal input: payloadLen >= 0xfffffff8. Defect D14,
/// by its other end: what arrives of such a payload is not kept.
#[test]
fn a_payload_of_4_gib_costs_no_memory_and_does_not_wrap_around() {
    let listening = Listening::with(&[], nothing);
    let before = listening.gofer.anonymous_kib();
    for len in [u32::MAX, u32::MAX - 1, u32::MAX - 7, u32::MAX - 8, 1 << 31] {
        let (client, _) = listening.client();
        send_header(&client.stream, len, Mid::FSTAT);
        (&client.stream).write_all(&vec![0; 32 << 20]).expect("the server takes what comes");
        let grown = listening.gofer.anonymous_kib().saturating_sub(before);
        assert!(grown < 4096, "{grown} KiB more after 32 MiB of a payload of {len} bytes");
        client.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
        assert!(
            std::io::Read::read(&mut &client.stream, &mut [0]).is_err(),
            "{len}: answered before the payload was there"
        );
    }
    let (client, root) = listening.client();
    assert!(client.fstat(root).is_ok(), "the server lives");
}

/// Threat: memory exhaustion by 4 GiB payloads, sent to the last byte.
#[test]
fn a_payload_of_4_gib_that_really_comes_is_eio_at_last() {
    let served = Served::new();
    send_header(&served.client.stream, u32::MAX, Mid::FSTAT);
    let chunk = vec![0; 1 << 20];
    let mut left = u64::from(u32::MAX);
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        (&served.client.stream).write_all(&chunk[..len]).expect("the server takes what comes");
        left -= u64::try_from(len).expect("64 bits");
    }
    let answer = served.client.receive().expect("an answer");
    assert_eq!((answer.mid, answer.payload), (Mid::ERROR, 5_u32.to_le_bytes().to_vec()));
    assert!(served.client.fstat(served.root).is_ok());
}

/// Abnormal input: EOF inside a message.
#[test]
fn the_end_within_a_message_closes_the_connection_without_a_reply() {
    let listening = Listening::with(&[], nothing);
    for sent in [&b"\x08"[..], b"\x08\0\0\0\x03\0\0", b"\x08\0\0\0\x03\0\0\0", b"\x08\0\0\0\x03\0\0\0\x01\0"] {
        let (client, _) = listening.client();
        (&client.stream).write_all(sent).expect("some bytes");
        client.stream.shutdown(std::net::Shutdown::Write).expect("the end");
        assert!(client.receive().is_none(), "{:?}", sent.escape_ascii());
    }
    assert!(listening.client().0.receive_nothing());
}

trait Silent {
    fn receive_nothing(&self) -> bool;
}

impl Silent for Raw {
    fn receive_nothing(&self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
        std::io::Read::read(&mut &self.stream, &mut [0]).is_err()
    }
}

fn send_header(mut stream: &UnixStream, payload_len: u32, mid: Mid) {
    let header = [&payload_len.to_le_bytes()[..], &mid.0.to_le_bytes(), &[0; 2]].concat();
    stream.write_all(&header).expect("a header");
}

/// Threat: oversize counts: bound by the bytes that are left, before anything is allocated.
#[test]
fn counts_beyond_what_was_sent_are_eio() {
    over_both(&[], nothing, |t| {
        let fd = t.root.0.to_le_bytes();
        let requests: [(Mid, Vec<u8>); 9] = [
            (Mid::WALK, [&fd[..], &[0xff, 0xff]].concat()),
            (Mid::WALK, [&fd[..], &[1, 0, 0xff, 0xff, b'x']].concat()),
            (Mid::WALK_STAT, [&fd[..], &[0xff, 0xff, 0, 0]].concat()),
            (Mid::CLOSE, [&[0xff, 0xff][..], &fd].concat()),
            (Mid::FSYNC, [&[0xff, 0xff][..], &fd].concat()),
            (Mid::PWRITE, [&[0; 8][..], &fd, &u32::MAX.to_le_bytes(), &[1; 100]].concat()),
            (Mid::MKDIR_AT, [&fd[..], &[0xff; 16], &[0xff, 0xff, b'x']].concat()),
            (Mid::FSET_XATTR, [&fd[..], &[0; 4], &[1, 0, b'x', 0xff, 0xff]].concat()),
            (Mid::SYMLINK_AT, [&fd[..], &[0; 8], &[1, 0, b'x', 0xff, 0xff, b'y']].concat()),
        ];
        for (mid, payload) in &requests {
            assert_eq!(t.client.exchange(mid.0, payload).err(), Some(Errno::EIO), "{mid:?}");
        }
        assert!(t.client.fstat(t.root).is_ok());
    });
}

/// Threat: 32-bit and 64-bit overflow, in offsets and counts of file data.
#[test]
fn offsets_and_counts_at_the_edge_of_their_types_are_refused() {
    over_both(&[], nothing, |t| {
        let (_, open, _) = t.client.create(t.root, "f").expect("a file");
        for count in [u32::MAX, u32::MAX - 7, 2_093_049, 1 << 31] {
            assert_eq!(t.client.pread(open, 0, count), Err(Errno::ENOBUFS), "{count} bytes");
        }
        assert_eq!(t.client.pread(open, 0, 2_093_048), Ok(Vec::new()));
        for offset in [u64::MAX, 1 << 63, (1 << 63) - 1, u64::MAX - 1] {
            assert_eq!(t.client.pread(open, offset, 2), Err(Errno::EINVAL), "at {offset}");
            assert_eq!(t.client.pwrite(open, offset, b"xx"), Err(Errno::EINVAL), "at {offset}");
            let request = FAllocateRequest { fd: open, mode: 0, offset, length: 2 };
            let refused = t.client.ask(&request).err();
            assert!(matches!(refused, Some(Errno::EINVAL | Errno::EFBIG)), "allocation at {offset}: {refused:?}");
        }
        // The count is the last thing that is read, so that a lie in it is not masked by one before.
        let request = encoded(&PReadRequest { offset: u64::MAX, fd: FdId(u64::MAX), count: u32::MAX });
        assert_eq!(t.client.exchange(Mid::PREAD.0, &request).err(), Some(Errno::EBADF));
    });
}

/// Threat: oversize counts: as many components as a request can name.
#[test]
fn a_walk_whose_reply_could_not_fit_is_eio() {
    over_both(&[], nothing, |t| {
        let names = vec![&b"x"[..]; 13_771];
        assert_eq!(t.client.walk(t.root, &names).err(), Some(Errno::EIO));
        assert!(t.client.walk(t.root, &names[1..]).is_ok());
        let names = vec![&b"x"[..]; 14_536];
        assert_eq!(t.client.walk_stat(t.root, &names).err(), Some(Errno::EIO));
        assert!(t.client.walk_stat(t.root, &names[1..]).is_ok());
    });
}
