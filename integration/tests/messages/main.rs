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

use rustix::fs::OFlags;

/// `AT_REMOVEDIR`.
const REMOVE_DIRECTORY: u32 = 0x200;

/// Open flags, as clients send them.
const READ: u32 = 0;
const WRITE: u32 = 1;
const READ_WRITE: u32 = 2;
const TRUNCATE: u32 = 0o1000;

/// Nothing to prepare.
fn nothing(_: &Path) {}

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

/// Makes a node of a type that the standard library has no function for.
fn node(path: &Path, file_type: rustix::fs::FileType, device: (u32, u32)) {
    let device = rustix::fs::makedev(device.0, device.1);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, path, file_type, mode, device).expect("a node");
}

/// Makes a FIFO.
fn fifo(path: &Path) {
    node(path, rustix::fs::FileType::Fifo, (0, 0));
}

/// Makes a socket's file that nobody listens on.
fn socket_file(path: &Path) {
    drop(std::os::unix::net::UnixListener::bind(path).expect("a socket"));
}

/// Makes the null device; root only.
fn null_device(path: &Path) {
    node(path, rustix::fs::FileType::CharacterDevice, (1, 3));
}
