//! Files that the standard library has no function for, put where a server will find them.

use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// A FIFO.
///
/// # Panics
/// If it cannot be made.
pub fn fifo(path: &Path) {
    node(path, FileType::Fifo, (0, 0));
}

/// A socket's file that nobody listens on.
///
/// # Panics
/// If it cannot be made.
pub fn socket_file(path: &Path) {
    drop(UnixListener::bind(path).expect("a socket"));
}

/// A device, or whatever else a node can be, for everyone to read and write.
///
/// # Panics
/// If it cannot be made: devices take root.
pub fn node(path: &Path, file_type: FileType, (major, minor): (u32, u32)) {
    // mknod(2) is subject to the umask.
    mknodat(CWD, path, file_type, Mode::from_raw_mode(0o666), makedev(major, minor)).expect("a node");
}

/// The null device; root only.
///
/// # Panics
/// If it cannot be made.
pub fn null_device(path: &Path) {
    node(path, FileType::CharacterDevice, (1, 3));
}
