//! The trusted file server of a sandbox: serves a directory over LISAFS.
//!
//! A request's way through this crate, each step a module:
//!
//! | step | where |
//! |---|---|
//! | wait, copy in | [`serve`]: a worker owns one transport of a connection |
//! | dispatch | `serve/dispatch.rs`: the one match from message number to handler |
//! | handle | `handlers/<family>.rs`: decode, look up, take the guarantee, call the host, encode |
//! | look up | `fd/`: the connection's descriptors; `tree/`: positions and their locks |
//! | host call | `host/<family>.rs`: by held descriptor and one checked name, never by path |
//!
//! The client is hostile at all times: `docs/threat-model.md` says what it can try, and what holds.
#![deny(unsafe_code)]

mod config;
pub mod contract;
mod fd;
mod handlers;
mod host;
pub mod launch;
pub mod memory;
pub mod serve;
mod tree;

pub use config::{CharDevices, HostFifo, HostSockets, Limits, Policy};
pub use serve::{Connection, MountPoint, Server};
