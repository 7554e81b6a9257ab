//! The server's end of the socket.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Timespec;
use rustix::io::{pread, pwrite, retry_on_intr};
use zerocopy::IntoBytes;

use super::{KEPT, MAX_DONATIONS, SocketHeader, stream};
use crate::codec::decode;
use crate::transport::{Ended, Header, Transport};
use crate::{Errno, Mid};

/// Serves requests that arrive on a stream socket, blocking or not.
///
/// A request is received whole before it is served: one host call for all that are small. No request costs memory
/// before its bytes arrive, and none costs more than the connection's limit.
#[derive(Debug)]
pub struct ServerSocket {
    socket: OwnedFd,
    /// Payload bytes that a message may have.
    limit: usize,
    input: Input,
    /// Payload bytes of the request that is being served; they follow its header at the front of `input`.
    payload_len: usize,
    /// Bytes at the front of `input` that the request takes, header included.
    request_len: usize,
    bulk: Bulk,
}

impl ServerSocket {
    /// Serves `socket`, with payloads of up to `max_message_size` bytes.
    #[must_use]
    pub fn new(socket: OwnedFd, max_message_size: u32) -> Self {
        Self {
            socket,
            limit: usize::try_from(max_message_size).unwrap_or(usize::MAX),
            input: Input::default(),
            payload_len: 0,
            request_len: 0,
            bulk: Bulk::default(),
        }
    }

    /// Whether bytes of a further request have arrived already. Whoever wants to wait for the descriptor instead of in
    /// [`Transport::receive`] must ask first: a poll does not report them.
    #[must_use]
    pub fn has_arrivals(&self) -> bool {
        self.input.arrived().len() > self.request_len
    }

    /// Gives all memory back that no arrived byte needs, for as long as nothing happens on the connection. The request
    /// that was served last is gone afterwards.
    pub fn trim(&mut self) {
        self.forget_request();
        self.bulk = Bulk::default();
        if self.input.arrived().is_empty() {
            self.input = Input::default();
        }
    }

    /// Bytes of memory that buffers occupy.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.input.bytes.len() + self.bulk.bytes.len()
    }

    fn forget_request(&mut self) {
        self.input.consume(self.request_len);
        self.request_len = 0;
        self.payload_len = 0;
        self.bulk.filled = 0;
    }

    /// File data passes through large buffers; they are worth keeping only while it flows.
    fn trim_when_idle(&mut self) {
        let large = self.input.bytes.len() > KEPT || self.bulk.bytes.len() > KEPT;
        if large && self.input.arrived().is_empty() && !stream::readable_within(self.socket.as_fd(), &IDLE) {
            self.trim();
        }
    }
}

impl AsFd for ServerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Transport for ServerSocket {
    fn receive(&mut self) -> Result<Header, Ended> {
        self.forget_request();
        self.trim_when_idle();

        self.input.fill(self.socket.as_fd(), SocketHeader::LEN)?;
        let header: SocketHeader = decode(self.input.arrived()).map_err(|_| Ended::Broken("cut header"))?;
        let (mid, payload_len) = (header.mid, header.payload_len());
        if payload_len > self.limit {
            self.input.consume(SocketHeader::LEN);
            self.input.discard(self.socket.as_fd(), payload_len)?;
            return Ok(Header { mid, payload_len });
        }

        // The limit keeps the sum small.
        let request_len = SocketHeader::LEN + payload_len;
        self.input.fill(self.socket.as_fd(), request_len)?;
        self.payload_len = payload_len;
        self.request_len = request_len;
        Ok(Header { mid, payload_len })
    }

    fn payload(&mut self, len: usize) -> Result<&[u8], Ended> {
        let payload = self.input.arrived().get(SocketHeader::LEN..self.request_len).unwrap_or_default();
        Ok(payload.get(..len).unwrap_or(payload))
    }

    fn write_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        let payload = self.payload(usize::MAX).unwrap_or_default();
        let data = at.checked_add(len).and_then(|end| payload.get(at..end)).ok_or(Errno::EIO)?;
        Ok(retry_on_intr(|| pwrite(file, data, offset))?)
    }

    fn read_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        let room = self.bulk.room(at, len, self.limit).ok_or(Errno::EIO)?;
        let read = retry_on_intr(|| pread(file, &mut *room, offset))?;
        self.bulk.filled += read;
        Ok(read)
    }

    fn reply(&mut self, mid: Mid, head: &[u8], bulk: usize, fds: &mut Vec<OwnedFd>) -> Result<(), Ended> {
        // Descriptors are closed when this returns, sent or not.
        let fds = std::mem::take(fds);
        let bulk = self.bulk.filled().get(..bulk).ok_or(Ended::Host(Errno::EIO))?;
        let payload_len = u32::try_from(head.len() + bulk.len()).map_err(|_| Ended::Host(Errno::EIO))?;
        let header = SocketHeader::new(payload_len, mid);

        let mut donated = [self.socket.as_fd(); MAX_DONATIONS];
        for (slot, fd) in donated.iter_mut().zip(&fds) {
            *slot = fd.as_fd();
        }
        let donated = donated.get(..fds.len()).ok_or(Ended::Host(Errno::EIO))?;
        let mut parts = [IoSlice::new(header.as_bytes()), IoSlice::new(head), IoSlice::new(bulk)];
        stream::send(self.socket.as_fd(), &mut parts, donated)
    }
}

/// How long large buffers wait for the next request.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Bytes that have arrived: the request that is being served, and what the client sent behind it without waiting.
#[derive(Debug, Default)]
struct Input {
    /// Initialised all over, so that the host may write anywhere. Fresh memory is zero already: making it touches none.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    fn arrived(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn consume(&mut self, len: usize) {
        self.start = self.end.min(self.start + len);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Waits until `len` bytes have arrived.
    fn fill(&mut self, socket: BorrowedFd<'_>, len: usize) -> Result<(), Ended> {
        if self.bytes.len() - self.start < len {
            self.make_room(len);
        }
        while self.end - self.start < len {
            let free = self.bytes.get_mut(self.end..).unwrap_or_default();
            self.end += stream::receive(socket, free)?;
        }
        Ok(())
    }

    /// Moves what has arrived to the front of a buffer that holds `len` bytes.
    fn make_room(&mut self, len: usize) {
        let arrived = self.end - self.start;
        if self.bytes.len() < len {
            let mut larger = vec![0; len.max(KEPT)];
            if let Some(front) = larger.get_mut(..arrived) {
                front.copy_from_slice(self.arrived());
            }
            self.bytes = larger;
        } else {
            self.bytes.copy_within(self.start..self.end, 0);
        }
        (self.start, self.end) = (0, arrived);
    }

    /// Waits until `len` bytes have come and gone, and stores none of them.
    fn discard(&mut self, socket: BorrowedFd<'_>, len: usize) -> Result<(), Ended> {
        let here = len.min(self.arrived().len());
        self.consume(here);
        let mut left = len - here;
        while left > 0 {
            let scratch = self.bytes.len().min(left);
            left -= stream::receive(socket, self.bytes.get_mut(..scratch).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// File data on its way to the client: the reply's payload behind its head.
#[derive(Debug, Default)]
struct Bulk {
    /// Initialised all over, as in [`Input`].
    bytes: Vec<u8>,
    filled: usize,
    /// Where the first byte lies in the payload: the length of the head.
    head: usize,
}

impl Bulk {
    fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// Where `len` bytes from payload offset `at` on go. None if they do not follow what is there, or end beyond
    /// `limit`.
    fn room(&mut self, at: usize, len: usize, limit: usize) -> Option<&mut [u8]> {
        at.checked_add(len).filter(|end| *end <= limit)?;
        if self.filled == 0 {
            self.head = at;
        }
        let start = at.checked_sub(self.head).filter(|start| *start == self.filled)?;
        let end = start + len;
        if self.bytes.len() < end {
            let mut larger = vec![0; end.max(KEPT)];
            larger.get_mut(..start)?.copy_from_slice(self.filled());
            self.bytes = larger;
        }
        self.bytes.get_mut(start..end)
    }
}
