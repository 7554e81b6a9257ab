//! From the runtime's name spaces to the container's root: waits, mounts, the pivot, the list of mounts.

mod hooks;
mod identity;
mod mount_list;
mod options;
mod plan;
mod resolve;
mod rpc;
mod sync;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What is left of start-up when the root is built and the mounts' list is on its way.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// `/proc/self/fd`, by its own bind mount, open; `/proc` itself is out of sight.
    pub(crate) descriptors: OwnedFd,
    /// `/proc/self/mountinfo`, opened after the pivot.
    pub(crate) mountinfo: File,
    /// The container's root, to be chrooted to: `/root`, or the root's own path where nothing was pivoted.
    pub(crate) root: PathBuf,
    /// One for each of `Donated::io`, in its order.
    pub(crate) connections: Vec<Connection>,
}

/// What a connection serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    /// Absolute, below the container's root, free of symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) read_only: bool,
}
