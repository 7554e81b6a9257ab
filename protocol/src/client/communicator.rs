//! One pipe for requests and replies: the socket or a channel. Whoever holds it holds it alone, from the request until
//! all that is wanted of the reply has been copied out.

use std::os::fd::OwnedFd;

use super::Donated;
use crate::Mid;
use crate::sync::Arc;
use crate::transport::channel::{ClientChannel, ConnectError, RequestError};
use crate::transport::{ClientSocket, Ended, Header};

/// A pipe for requests and replies.
#[derive(Debug)]
pub(super) enum Communicator {
    Socket(ClientSocket<Arc<OwnedFd>>),
    Channel(Arc<ClientChannel>),
}

/// A reply whose payload was not read yet.
#[derive(Debug)]
pub(super) struct Arrived<'c> {
    communicator: &'c mut Communicator,
    header: Header,
    /// Payload bytes that were read.
    taken: usize,
    pub(super) donated: Donated,
}

impl Communicator {
    /// Sends a request, whose payload is `head` and then `data`, and waits for its reply. Collects up to `donations`
    /// descriptors, whatever the reply is; others are closed.
    pub(super) fn exchange(
        &mut self,
        mid: Mid,
        head: &[u8],
        data: &[u8],
        donations: usize,
    ) -> Result<Arrived<'_>, Ended> {
        let mut donated = Donated::default();
        let header = match self {
            Self::Socket(socket) => {
                let mut fds = Vec::new();
                let header = socket.exchange(mid, head, data, donations, &mut fds)?;
                for (place, fd) in donated.places(donations).iter_mut().zip(fds) {
                    *place = Some(fd);
                }
                header
            }
            Self::Channel(channel) => {
                let reply = channel.request(mid.0, &[head, data])?;
                channel.receive_fds(&reply, donated.places(donations));
                Header { mid: Mid(reply.mid), payload_len: reply.payload_len }
            }
        };
        Ok(Arrived { communicator: self, header, taken: 0, donated })
    }
}

impl Arrived<'_> {
    /// The number of the reply.
    pub(super) fn mid(&self) -> Mid {
        self.header.mid
    }

    /// Payload bytes that were not read yet.
    pub(super) fn left(&self) -> usize {
        self.header.payload_len.saturating_sub(self.taken)
    }

    /// Reads the next bytes of the payload, as many as `into` has room for. Each is read once.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Result<(), Ended> {
        if into.len() > self.left() {
            return Err(Ended::Broken("reply is shorter than its layout needs"));
        }
        match self.communicator {
            Communicator::Socket(socket) => socket.take_payload(into)?,
            Communicator::Channel(channel) => channel.read_payload(self.taken, into)?,
        }
        self.taken += into.len();
        Ok(())
    }

    /// Reads the rest of the payload. Memory grows with what has arrived, not with what was announced.
    pub(super) fn take_all(&mut self) -> Result<Payload, Ended> {
        let mut payload = Vec::new();
        let left = self.left();
        let mut small = [0; SMALL];
        if let Some(place) = small.get_mut(..left) {
            self.take(place)?;
            return Ok(Payload::Small(small, left));
        }
        if let Communicator::Channel(channel) = self.communicator {
            // It is all there; no zeroes are written first.
            channel.append_payload_to(self.taken, left, &mut payload)?;
            self.taken += payload.len();
        }
        while self.left() > 0 {
            let start = payload.len();
            payload.resize(start + self.left().min(PIECE), 0);
            self.take(payload.get_mut(start..).unwrap_or_default())?;
        }
        Ok(Payload::Large(payload))
    }

    /// Leaves the rest of the payload, so that the next request can be sent.
    pub(super) fn finish(self) -> Result<(), Ended> {
        match self.communicator {
            Communicator::Socket(socket) => socket.skip_payload(),
            Communicator::Channel(_) => Ok(()),
        }
    }
}

/// A reply's payload. Most are as small as an inode and a descriptor, and take no allocation.
pub(super) enum Payload {
    Small([u8; SMALL], usize),
    Large(Vec<u8>),
}

impl Payload {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes, len) => bytes.get(..*len).unwrap_or_default(),
            Self::Large(bytes) => bytes,
        }
    }
}

/// An inode and a descriptor.
const SMALL: usize = 160;

/// Bytes to read at a time; holds any reply but those with file data.
const PIECE: usize = 1 << 16;

impl From<RequestError> for Ended {
    fn from(error: RequestError) -> Self {
        match error {
            // The window holds any message of the agreed size, or the server has not kept to its own.
            RequestError::TooLong => Self::Broken("packet window smaller than a message"),
            RequestError::Ended(ended) => ended.into(),
        }
    }
}

impl From<ConnectError> for Ended {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Map(_) => Self::Broken("packet window that cannot be shared safely"),
            ConnectError::Ended(ended) => ended.into(),
        }
    }
}
