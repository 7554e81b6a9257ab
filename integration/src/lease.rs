//! A lease on a file (`fcntl(2)`): whoever opens the file against it has to wait for us, or come back later.
#![allow(unsafe_code, reason = "there is no safe form of these fcntl(2) calls")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `fcntl(2)`, "managing signals"; the same number on all machines that Rust knows, and missing from `libc`.
const F_SETSIG: i32 = 10;

/// A write lease, which goes with the file.
#[derive(Debug)]
pub struct Lease(File);

impl Lease {
    /// Takes one on a file that no one else has open.
    ///
    /// # Errors
    /// Those of `fcntl(2)`: `EAGAIN` if someone has.
    pub fn take(file: File) -> io::Result<Self> {
        // The kernel tells us that someone wants the file by a signal; the usual one would end the process.
        set(file.as_fd(), F_SETSIG, libc::SIGURG)?;
        set(file.as_fd(), libc::F_SETLEASE, libc::F_WRLCK)?;
        Ok(Self(file))
    }

    /// Gives it back.
    ///
    /// # Errors
    /// Those of `fcntl(2)`.
    pub fn give_back(self) -> io::Result<()> {
        set(self.0.as_fd(), libc::F_SETLEASE, libc::F_UNLCK)
    }
}

fn set(file: BorrowedFd<'_>, command: i32, value: i32) -> io::Result<()> {
    // SAFETY: both commands take an integer and touch no memory of ours; the descriptor is open, since it is borrowed.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
