//! The connection's socket: eight bytes of header, then the payload, in both directions.
//!
//! The socket is a byte stream, so that any split of a message is legal. Descriptors travel with the first byte of a
//! reply and never with a request: the server reads without room for them, and the kernel drops what a client attaches.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Mid;
use crate::codec::records;

mod client;
mod server;
mod stream;

pub use client::ClientSocket;
pub use server::ServerSocket;

/// Precedes every message on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SocketHeader {
    /// Bytes that follow the header.
    pub payload_len: u32,
    /// What is asked for; in a reply the request's number, or [`Mid::ERROR`].
    pub mid: Mid,
    reserved: u16,
}

impl SocketHeader {
    /// Bytes of the header on the wire.
    pub const LEN: usize = size_of::<Self>();

    /// The header of a message of `payload_len` bytes.
    #[must_use]
    pub const fn new(payload_len: u32, mid: Mid) -> Self {
        Self { payload_len, mid, reserved: 0 }
    }

    /// The payload's length where memory is measured.
    #[must_use]
    pub fn payload_len(self) -> usize {
        // No machine that this crate is for has addresses of 16 bits.
        usize::try_from(self.payload_len).unwrap_or(usize::MAX)
    }
}

const _: () = assert!(SocketHeader::LEN == 8);

records!(SocketHeader);

/// Bytes of a buffer that is kept for ever: all but file data and long lists fits.
const KEPT: usize = 4096;

/// Descriptors that a message donates at most, see [`crate::Request::DONATIONS`].
const MAX_DONATIONS: usize = 2;
