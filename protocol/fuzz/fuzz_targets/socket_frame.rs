//! Whatever a client writes, and however it is split, the server's end of the socket serves exactly the requests that
//! are in it, and then ends.
#![no_main]

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use gofer_protocol::codec::decode;
use gofer_protocol::transport::{Ended, Header, ServerSocket, SocketHeader, Transport};
use libfuzzer_sys::fuzz_target;

const LIMIT: u32 = 9000;

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, split) = input;
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut server = ServerSocket::new(ours.into(), LIMIT);
    // The socket may not hold all of it at once.
    WRITER.send((theirs, bytes.clone(), usize::from(split) + 1)).unwrap();

    let mut rest = &bytes[..];
    while let Some((header, payload)) = next(&mut rest) {
        assert_eq!(server.receive(), Ok(header));
        assert_eq!(server.payload(usize::MAX), Ok(payload));
    }
    assert_eq!(server.receive(), Err(Ended::Closed));
    assert!(server.footprint() <= SocketHeader::LEN + 9000);
});

/// Writes clients' bytes in pieces. One thread for all: the leak detector takes each that ends for a leak.
static WRITER: LazyLock<Sender<Job>> = LazyLock::new(|| {
    let (sender, jobs) = channel::<Job>();
    thread::spawn(move || {
        for (mut to, bytes, piece) in jobs {
            bytes.chunks(piece).for_each(|piece| to.write_all(piece).unwrap());
        }
    });
    sender
});

/// Where to, what, and in pieces of how many bytes.
type Job = (UnixStream, Vec<u8>, usize);

/// The next whole request, as simply as can be.
fn next<'b>(rest: &mut &'b [u8]) -> Option<(Header, &'b [u8])> {
    let header: SocketHeader = decode(rest).ok()?;
    let behind = rest.get(SocketHeader::LEN..)?;
    let (payload, behind) = behind.split_at_checked(header.payload_len())?;
    *rest = behind;
    let kept = if header.payload_len <= LIMIT { payload } else { &[] };
    Some((Header { mid: header.mid, payload_len: payload.len() }, kept))
}
