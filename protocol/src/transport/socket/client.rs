//! The client's end of the socket.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use zerocopy::IntoBytes;

use super::{KEPT, SocketHeader, stream};
use crate::codec::decode;
use crate::transport::{Ended, Header};
use crate::{Errno, Mid};

/// Sends requests over a stream socket, blocking or not, one at a time.
///
/// After an error the two sides no longer agree on where a message starts: the socket is of no further use.
#[derive(Debug)]
pub struct ClientSocket<S> {
    socket: S,
    /// What came with the header; initialised all over.
    bytes: Vec<u8>,
    /// The bytes that belong to the payload and were not taken yet.
    start: usize,
    end: usize,
    /// Payload bytes that were not taken yet, whether they have arrived or not.
    left: usize,
}

impl<S: AsFd> ClientSocket<S> {
    /// Speaks over `socket`, which nobody else reads or writes meanwhile.
    pub fn new(socket: S) -> Self {
        Self { socket, bytes: vec![0; KEPT], start: 0, end: 0, left: 0 }
    }

    /// The socket itself.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Sends a request, whose payload is `head` and then `data`, and waits for the header of the reply. Up to
    /// `donations` descriptors that come with it are put into `fds`; others are closed.
    ///
    /// # Errors
    /// [`Ended`] if the peer is gone or breaks the rules.
    pub fn exchange(
        &mut self,
        mid: Mid,
        head: &[u8],
        data: &[u8],
        donations: usize,
        fds: &mut Vec<OwnedFd>,
    ) -> Result<Header, Ended> {
        fds.clear();
        self.skip_payload()?;
        let payload_len = u32::try_from(head.len() + data.len()).map_err(|_| Ended::Host(Errno::E2BIG))?;
        let header = SocketHeader::new(payload_len, mid);
        let mut parts = [IoSlice::new(header.as_bytes()), IoSlice::new(head), IoSlice::new(data)];
        stream::send(self.socket.as_fd(), &mut parts, &[])?;

        let header = self.receive_header(donations, fds)?;
        fds.truncate(donations);
        self.left = header.payload_len();
        if self.end - self.start > self.left {
            return Err(Ended::Broken("bytes behind a reply"));
        }
        Ok(Header { mid: header.mid, payload_len: self.left })
    }

    /// Takes the next bytes of the reply's payload, as many as `into` has room for.
    ///
    /// # Errors
    /// [`Ended`] if the peer is gone, or the payload has no such bytes.
    pub fn take_payload(&mut self, into: &mut [u8]) -> Result<(), Ended> {
        self.left = self.left.checked_sub(into.len()).ok_or(Ended::Broken("reply is shorter than its layout needs"))?;
        let arrived = self.bytes.get(self.start..self.end).unwrap_or_default();
        let here = arrived.len().min(into.len());
        let (front, mut rest) = into.split_at_mut(here);
        front.copy_from_slice(arrived.get(..here).unwrap_or_default());
        self.start += here;
        while !rest.is_empty() {
            let received = stream::receive(self.socket.as_fd(), rest)?;
            rest = rest.get_mut(received..).unwrap_or_default();
        }
        Ok(())
    }

    /// Forgets what was not taken of the reply's payload. Stores none of it, however long it claims to be.
    ///
    /// # Errors
    /// [`Ended`] if the peer is gone.
    pub fn skip_payload(&mut self) -> Result<(), Ended> {
        self.left = self.left.saturating_sub(self.end - self.start);
        (self.start, self.end) = (0, 0);
        while self.left > 0 {
            let scratch = self.bytes.len().min(self.left);
            self.left -= stream::receive(self.socket.as_fd(), self.bytes.get_mut(..scratch).unwrap_or_default())?;
        }
        Ok(())
    }

    fn receive_header(&mut self, donations: usize, fds: &mut Vec<OwnedFd>) -> Result<SocketHeader, Ended> {
        (self.start, self.end) = (0, 0);
        while self.end < SocketHeader::LEN {
            let socket = self.socket.as_fd();
            let free = self.bytes.get_mut(self.end..).unwrap_or_default();
            // The kernel delivers descriptors with the first byte, or never.
            self.end += if donations > 0 && self.end == 0 {
                stream::receive_with_fds(socket, free, fds)?
            } else {
                stream::receive(socket, free)?
            };
        }
        self.start = SocketHeader::LEN;
        decode(&self.bytes).map_err(|_| Ended::Broken("cut header"))
    }
}

impl<S: AsFd> AsFd for ClientSocket<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
