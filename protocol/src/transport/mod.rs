//! How messages travel: over the connection's socket, or over a channel in shared memory.
//!
//! The server side of both is a [`Transport`]; a worker owns one and serves it until it ends.

pub mod channel;
pub mod fd_socket;
pub mod flipcall;
pub mod memory;
pub mod window;

mod socket;

pub use socket::{ClientSocket, ServerSocket, SocketHeader};

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::Mid;

/// What precedes a request's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is asked for; unknown numbers included.
    pub mid: Mid,
    /// Bytes of the payload. May exceed the limit of the connection: then the payload is gone, and the request is to
    /// be answered with an error.
    pub payload_len: usize,
}

/// Why a transport serves no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The peer closed the socket, or one of the two shut the channel down.
    Closed,
    /// The peer broke the rules of the transport; what it did is the text.
    Broken(&'static str),
    /// The host failed.
    Host(crate::Errno),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the peer"),
            Self::Broken(what) => write!(f, "the peer broke the protocol: {what}"),
            Self::Host(errno) => write!(f, "the host failed: {errno}"),
        }
    }
}

impl std::error::Error for Ended {}

/// The server side of one communicator: one request at a time, strictly ping-pong.
///
/// File data takes a way of its own, [`Transport::write_file`] and [`Transport::read_file`], so that a channel can hand
/// its window to the kernel and nothing is copied. Each of the two makes one host call.
pub trait Transport {
    /// Waits for the next request.
    ///
    /// # Errors
    /// [`Ended`] when there will be none.
    fn receive(&mut self) -> Result<Header, Ended>;

    /// The first `len` bytes of the request's payload, in private memory; fewer where the payload is shorter.
    ///
    /// # Errors
    /// [`Ended`] if the peer went away in the middle of it.
    fn payload(&mut self, len: usize) -> Result<&[u8], Ended>;

    /// Writes `len` payload bytes, from payload offset `at` on, to `file` at `offset`: one `pwrite64(2)`.
    ///
    /// # Errors
    /// Those of the host call; `EIO` if the range is not within the payload.
    fn write_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize>;

    /// Reads up to `len` bytes of `file` at `offset` to offset `at` of the reply's payload: one `pread64(2)`.
    ///
    /// # Errors
    /// Those of the host call; `EIO` if the range does not fit in a message.
    fn read_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize>;

    /// Sends the reply: `head`, then `bulk` bytes that [`Transport::read_file`] put behind it, with `fds` donated.
    /// `fds` is empty afterwards, whatever the outcome.
    ///
    /// # Errors
    /// [`Ended`] if the peer went away.
    fn reply(&mut self, mid: Mid, head: &[u8], bulk: usize, fds: &mut Vec<OwnedFd>) -> Result<(), Ended>;
}
