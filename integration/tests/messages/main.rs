//! What each message does, exactly: its reply, what it donates, its errors and their order, its traces on the host.
//!
//! One file per family of messages, and three on what families have in common.

mod attr;
mod create;
mod deleted;
mod dir;
mod io;
mod kinds;
mod lifetimes;
mod open;
mod policy;
mod remove;
mod session;
mod socket;
mod unprivileged;
mod walk;
mod xattr;

use std::os::fd::AsFd;
use std::path::Path;

use gofer_integration::plant::{fifo, node, null_device, socket_file};
use rustix::fs::OFlags;

/// Open flags, as clients send them.
const READ: u32 = 0;
const WRITE: u32 = 1;
const READ_WRITE: u32 = 2;
const TRUNCATE: u32 = 0o1000;

/// Puts files of these names into `dir`, each with its name for content.
fn files(dir: &Path, names: &[&str]) {
    for name in names {
        std::fs::write(dir.join(name), name).expect("a file");
    }
}

/// Access mode of a descriptor, `O_PATH` included.
fn access(fd: impl AsFd) -> OFlags {
    status(fd) & (OFlags::ACCMODE | OFlags::PATH)
}

/// Status flags of a descriptor's open file.
fn status(fd: impl AsFd) -> OFlags {
    rustix::fs::fcntl_getfl(fd).expect("status flags")
}

/// Whether reading from a descriptor returns at once.
fn never_waits(fd: impl AsFd) -> bool {
    status(fd).contains(OFlags::NONBLOCK)
}

/// Device and inode, as the host has them.
fn identity(fd: impl AsFd) -> (u64, u64) {
    let stat = rustix::fs::fstat(fd).expect("attributes");
    (stat.st_dev, stat.st_ino)
}
