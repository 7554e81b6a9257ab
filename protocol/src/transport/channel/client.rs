//! The client's side of a channel.

use std::{
    fmt,
    os::fd::{AsFd, OwnedFd},
};

use super::{Datagrams, Header, handshake};
use crate::transport::{
    fd_socket::FdReceiver,
    flipcall::{Ended, Role},
    window::{MapError, OutOfBounds, Window},
};

/// The client's side of a channel.
///
/// One thread at a time has it, from the request until the reply has been copied out and its descriptors received. Any
/// thread may call [`Self::shut_down`].
#[derive(Debug)]
pub struct ClientChannel {
    datagrams: Datagrams,
    fd_socket: FdReceiver,
}

/// A reply that has arrived. Its payload is in the window until the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's number, or 0 for an error.
    pub mid: u16,
    /// How many descriptors came with it.
    pub num_fds: u8,
    /// Length of the payload.
    pub payload_len: usize,
}

/// Why a channel that the server offered cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Its memory cannot be shared safely.
    Map(MapError),
    /// The handshake failed.
    Ended(Ended),
}

impl ClientChannel {
    /// Maps the window that the server offered, and shakes hands. Waits for the server.
    pub fn connect(
        memory: impl AsFd,
        data_offset: i64,
        data_length: u64,
        fd_socket: OwnedFd,
    ) -> Result<Self, ConnectError> {
        let channel = Self::map(memory, data_offset, data_length, fd_socket)?;
        channel.shake_hands()?;
        Ok(channel)
    }

    /// The first half of [`Self::connect`]: for callers that want to be able to shut the channel down while it waits.
    pub fn map(
        memory: impl AsFd,
        data_offset: i64,
        data_length: u64,
        fd_socket: OwnedFd,
    ) -> Result<Self, ConnectError> {
        let window = Window::map(memory, data_offset, data_length).map_err(ConnectError::Map)?;
        Ok(Self { datagrams: Datagrams::new(window, Role::Client), fd_socket: FdReceiver::new(fd_socket) })
    }

    /// The second half of [`Self::connect`], to be done once.
    pub fn shake_hands(&self) -> Result<(), ConnectError> {
        self.datagrams.greet()?;
        self.datagrams.endpoint.wait()?;
        self.datagrams.check_greeting(handshake::is_object)?;
        Ok(())
    }

    /// Sends a request and waits for the reply. The payload is the concatenation of `parts`.
    pub fn request(&self, mid: u16, parts: &[&[u8]]) -> Result<Reply, RequestError> {
        let mut payload_len = 0;
        for part in parts {
            self.datagrams.write_payload(payload_len, part)?;
            payload_len += part.len();
        }
        self.request_in_place(mid, payload_len)
    }

    /// As [`Self::request`], with a payload that [`Self::write_payload`] has put in place.
    pub fn request_in_place(&self, mid: u16, payload_len: usize) -> Result<Reply, RequestError> {
        self.datagrams.seal(Header { mid, num_fds: 0, payload_len })?;
        self.datagrams.endpoint.hand_over()?;
        self.datagrams.endpoint.wait()?;
        let Header { mid, num_fds, payload_len } = self.datagrams.arrived()?;
        Ok(Reply { mid, num_fds, payload_len })
    }

    /// Writes a part of a request's payload.
    pub fn write_payload(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        self.datagrams.write_payload(offset, bytes)
    }

    /// Appends `length` bytes of the reply's payload, from `offset` on, to `target`. Read each byte once, and judge the
    /// copy.
    pub fn append_payload_to(&self, offset: usize, length: usize, target: &mut Vec<u8>) -> Result<(), OutOfBounds> {
        self.datagrams.append_payload_to(offset, length, target)
    }

    /// Copies the reply's payload from `offset` on to `target`. Read each byte once, and judge the copy.
    pub fn read_payload(&self, offset: usize, target: &mut [u8]) -> Result<(), OutOfBounds> {
        self.datagrams.read_payload(offset, target)
    }

    /// Collects the descriptors that came with a reply; to be done for every reply. See [`FdReceiver::receive`].
    pub fn receive_fds(&self, reply: &Reply, wanted: &mut [Option<OwnedFd>]) {
        self.fd_socket.receive(reply.num_fds, wanted);
    }

    /// Ends the channel for both sides, and waits until the thread that uses it no longer sleeps in it.
    pub fn shut_down(&self) {
        self.datagrams.endpoint.shut_down();
    }

    /// The longest payload that fits.
    pub fn max_payload(&self) -> usize {
        self.datagrams.max_payload()
    }
}

/// Why there is no reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// It does not fit the window, and was not sent.
    TooLong,
    /// The channel serves no more.
    Ended(Ended),
}

impl From<OutOfBounds> for RequestError {
    fn from(_: OutOfBounds) -> Self {
        Self::TooLong
    }
}

impl From<Ended> for RequestError {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the request does not fit the packet window"),
            Self::Ended(ended) => ended.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<Ended> for ConnectError {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(error) => error.fmt(f),
            Self::Ended(ended) => ended.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}
