//! A channel as a [`Transport`]: what a worker serves.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::server::{ReplyError, Request, ServerChannel};
use crate::sync::Arc;
use crate::transport::window::OutOfBounds;
use crate::transport::{Ended, Header, Transport, flipcall};
use crate::{Errno, Mid};

/// Largest buffer that a request leaves behind for the next one.
const KEPT: usize = 4096;

/// The serving thread's hold on a channel. Others may hold it too, to shut it down.
#[derive(Debug)]
pub struct ChannelTransport {
    channel: Arc<ServerChannel>,
    payload_len: usize,
    /// The private copy of the request.
    copy: Vec<u8>,
}

impl ChannelTransport {
    /// Serves `channel`, which no other thread may.
    #[must_use]
    pub fn new(channel: Arc<ServerChannel>) -> Self {
        Self { channel, payload_len: 0, copy: Vec::new() }
    }
}

impl Transport for ChannelTransport {
    fn receive(&mut self) -> Result<Header, Ended> {
        let Request { mid, payload_len } = self.channel.receive()?;
        self.payload_len = payload_len;
        Ok(Header { mid: Mid(mid), payload_len })
    }

    fn payload(&mut self, len: usize) -> Result<&[u8], Ended> {
        self.copy.clear();
        self.copy.shrink_to(KEPT);
        self.channel.append_payload_to(0, len.min(self.payload_len), &mut self.copy)?;
        Ok(&self.copy)
    }

    fn write_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        if at.checked_add(len).is_none_or(|end| end > self.payload_len) {
            return Err(Errno::EIO.into());
        }
        Ok(self.channel.payload_to_file(file, at, len, offset)?)
    }

    fn read_file(&mut self, at: usize, len: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        Ok(self.channel.payload_from_file(file, at, len, offset)?)
    }

    fn reply(&mut self, mid: Mid, head: &[u8], bulk: usize, fds: &mut Vec<OwnedFd>) -> Result<(), Ended> {
        self.channel.write_payload(0, head)?;
        self.channel.reply_in_place(mid.0, head.len().saturating_add(bulk), fds.drain(..)).map_err(
            |error| match error {
                ReplyError::TooLong => OutOfBounds.into(),
                ReplyError::Ended(ended) => ended.into(),
            },
        )
    }
}

impl From<flipcall::Ended> for Ended {
    fn from(ended: flipcall::Ended) -> Self {
        match ended {
            flipcall::Ended::ShutDown => Self::Closed,
            flipcall::Ended::Protocol => Self::Broken("channel state or datagram"),
        }
    }
}

impl From<OutOfBounds> for Ended {
    fn from(OutOfBounds: OutOfBounds) -> Self {
        Self::Broken("beyond the packet window")
    }
}
