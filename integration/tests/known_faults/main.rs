//! Faults that really happened in gofers and their peers, each as the smallest case that shows it, named after what is
//! right. `docs/known-faults.md` has the table of all of them.

mod attributes;
mod backing;
mod cost;
mod create;
mod fuse;
mod identity;
mod lifecycle;
mod listing;
mod policy;
mod sockets;
mod trace;
mod wire;
