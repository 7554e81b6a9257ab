//! LISAFS: messages, records, socket and shared-memory transports, client and server side.

#![deny(unsafe_code)]

pub mod sync;
pub mod transport;
