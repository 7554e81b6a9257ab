//! A client that sends what it is told, honest or not, over the socket, and sees every byte and descriptor of an answer.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;

use gofer_protocol::Mid;
use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::exchange::Answer;
use crate::wait::PATIENCE;

/// A client on a socket.
#[derive(Debug)]
pub struct Raw {
    /// For what the methods do not do.
    pub stream: UnixStream,
}

impl Raw {
    /// Talks on `stream`. An answer that does not come in time is a failure.
    ///
    /// # Panics
    /// If the socket takes no time-out.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self { stream }
    }

    /// Sends a frame as it is.
    ///
    /// # Panics
    /// If the server is gone.
    pub fn send(&self, mid: u16, payload: &[u8]) {
        let mut frame = Vec::with_capacity(8 + payload.len());
        frame.extend_from_slice(&u32::try_from(payload.len()).expect("a frame below 4 GiB").to_le_bytes());
        frame.extend_from_slice(&mid.to_le_bytes());
        frame.extend_from_slice(&[0; 2]);
        frame.extend_from_slice(payload);
        (&self.stream).write_all(&frame).expect("the server takes a request");
    }

    /// Receives a frame; none if the server closed the connection.
    ///
    /// # Panics
    /// If it takes too long or is cut off.
    #[must_use]
    pub fn receive(&self) -> Option<Answer> {
        let mut header = [0; 8];
        let mut fds = Vec::new();
        let mut filled = 0;
        while filled < header.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut header[filled..])];
            // A socket with a time-out is not resumed after a signal, nor after a tracer's attach (signal(7)).
            let got = retry_on_intr(|| recvmsg(&self.stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC));
            let got = got.expect("an answer in time");
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    fds.extend(received);
                }
            }
            if got.bytes == 0 {
                return None;
            }
            filled += got.bytes;
        }
        let [l0, l1, l2, l3, m0, m1, ..] = header;
        let mut payload = vec![0; usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).expect("a length")];
        (&self.stream).read_exact(&mut payload).expect("a whole answer");
        Some(Answer { mid: Mid(u16::from_le_bytes([m0, m1])), payload, fds })
    }
}
