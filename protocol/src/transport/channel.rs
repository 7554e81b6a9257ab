//! A channel: messages in a packet window, which two sides use in turn.
//!
//! A datagram is a header of four bytes and the payload. Offsets in this interface count from the start of the payload.
//! Request and reply overwrite each other, so each side copies out what it wants to keep before it sends. What a side
//! reads is copied once and the copy is judged: the peer can rewrite the window at any moment.

mod client;
mod handshake;
mod server;
mod serving;

use std::os::fd::AsFd;

use tracing::debug;

pub use self::{
    client::{ClientChannel, ConnectError, Reply, RequestError},
    server::{Offer, ReplyError, Request, ServerChannel},
    serving::ChannelTransport,
};
use super::{
    flipcall::{Ended, Endpoint, Role},
    window::{OutOfBounds, Window},
};

/// Bytes of a datagram before the payload.
pub const HEADER_SIZE: usize = 4;

/// The part of a channel that both sides have in common. Shuts down when dropped, so that no peer waits in vain.
#[derive(Debug)]
struct Datagrams {
    endpoint: Endpoint<Window>,
}

/// What precedes every payload.
#[derive(Clone, Copy)]
struct Header {
    mid: u16,
    num_fds: u8,
    payload_len: usize,
}

impl Datagrams {
    fn new(window: Window, role: Role) -> Self {
        Self { endpoint: Endpoint::new(window, role) }
    }

    fn window(&self) -> &Window {
        self.endpoint.word()
    }

    /// The longest payload that fits.
    fn max_payload(&self) -> usize {
        self.window().capacity() - HEADER_SIZE
    }

    /// The length of the datagram that just arrived, which is inside the window. Reads it, the one time.
    fn arrived_len(&self) -> Result<usize, Ended> {
        let length = self.window().data_len();
        usize::try_from(length).ok().filter(|&length| length <= self.window().capacity()).ok_or_else(|| {
            debug!(length, "datagram longer than its window, shutting the channel down");
            self.endpoint.fail()
        })
    }

    /// The header of the datagram that just arrived.
    fn arrived(&self) -> Result<Header, Ended> {
        let length = self.arrived_len()?;
        let mut header = [0; HEADER_SIZE];
        let payload_len = length.checked_sub(HEADER_SIZE).filter(|_| self.window().copy_out(0, &mut header).is_ok());
        let payload_len = payload_len.ok_or_else(|| {
            debug!(length, "datagram shorter than its header, shutting the channel down");
            self.endpoint.fail()
        })?;
        let [mid_low, mid_high, num_fds, _padding] = header;
        Ok(Header { mid: u16::from_le_bytes([mid_low, mid_high]), num_fds, payload_len })
    }

    /// Writes the header of a datagram whose payload is in the window, and announces its length.
    fn seal(&self, header: Header) -> Result<(), OutOfBounds> {
        let length = header.payload_len.checked_add(HEADER_SIZE).ok_or(OutOfBounds)?;
        if length > self.window().capacity() {
            return Err(OutOfBounds);
        }
        let [mid_low, mid_high] = header.mid.to_le_bytes();
        self.window().copy_in(0, &[mid_low, mid_high, header.num_fds, 0])?;
        self.window().set_data_len(u32::try_from(length).map_err(|_| OutOfBounds)?);
        Ok(())
    }

    fn write_payload(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        self.window().copy_in(in_datagram(offset)?, bytes)
    }

    fn append_payload_to(&self, offset: usize, length: usize, target: &mut Vec<u8>) -> Result<(), OutOfBounds> {
        self.window().append_to(in_datagram(offset)?, length, target)
    }

    fn read_payload(&self, offset: usize, target: &mut [u8]) -> Result<(), OutOfBounds> {
        self.window().copy_out(in_datagram(offset)?, target)
    }

    fn payload_from_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        self.window().read_from_file(file, in_datagram(offset)?, length, position)
    }

    fn payload_to_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        self.window().write_to_file(file, in_datagram(offset)?, length, position)
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.endpoint.shut_down();
    }
}

fn in_datagram(offset: usize) -> Result<usize, OutOfBounds> {
    offset.checked_add(HEADER_SIZE).ok_or(OutOfBounds)
}
