//! LISAFS: the protocol by which an untrusted sandbox asks a trusted server for file operations.
//!
//! This crate knows bytes and transports, for both sides, and no file system. A request's way through it:
//!
//! | step | module |
//! |---|---|
//! | wait for the peer | [`transport`]: `socket`, or `flipcall` over a shared `window` |
//! | copy the payload into private memory, once | [`transport`]: `socket`, `channel` |
//! | decode | [`message`], one file per family, over [`codec`] |
//! | encode the reply and hand it over | the same files, and [`transport`] again |
//!
//! Programs that want to *use* a LISAFS server start at [`client`].
//!
//! All integers are little-endian and records are the machine's own layout, so that big-endian machines are refused at
//! compile time. Nothing here allocates from a count that the peer sent, and no input reaches a panic.
#![deny(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("LISAFS records are little-endian machine layout");

// The model checker stands in for the hand-over's primitives; its `Arc` is no file descriptor.
#[cfg(not(loom))]
pub mod client;
pub mod codec;
pub mod errno;
pub mod id;
pub mod message;
pub mod mid;
pub mod record;
pub mod sync;
pub mod transport;

pub use codec::{Decoder, Malformed, Wire};
pub use errno::Errno;
pub use id::{FdId, Gid, Uid};
pub use message::Request;
pub use mid::{Guarantee, Mid};
pub use transport::{Ended, Transport};

/// Payload bytes (headers excluded) that the reference server accepts: a 2 MiB window less one 4 KiB page.
pub const MAX_MESSAGE_SIZE: u32 = 2_093_056;

/// Payload bytes that a client accepts before the Mount reply told it the server's own limit.
pub const INITIAL_MESSAGE_SIZE: u32 = 1 << 20;

/// Channels that a connection may have; dead ones count.
pub const MAX_CHANNELS: usize = 4;
