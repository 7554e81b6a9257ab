//! Opening: children of a held directory for walking, and held files for use.

use std::os::fd::{AsFd, OwnedFd};

use gofer_protocol::Errno;
use gofer_protocol::record::FileMode;
use rustix::fs::{Mode, OFlags, openat};

use super::{FileName, Place};

/// Bits of a client's open flags that reach the host; the others are dropped.
const CLIENT_FLAGS: OFlags = OFlags::ACCMODE.union(OFlags::TRUNC);

/// How a client wants a file opened: access mode and truncation, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access(OFlags);

impl Access {
    /// Takes what counts of the wire's flags.
    pub(crate) fn from_wire(flags: u32) -> Self {
        Self(OFlags::from_bits_retain(flags).intersection(CLIENT_FLAGS))
    }

    /// Nothing but the access mode.
    pub(crate) fn without_truncation(self) -> Self {
        Self(self.0.difference(OFlags::TRUNC))
    }

    /// Access modes 0 and 2. Mode 3 opens, but neither reads nor writes.
    pub(crate) fn readable(self) -> bool {
        matches!(self.mode(), OFlags::RDONLY | OFlags::RDWR)
    }

    /// Access modes 1 and 2.
    pub(crate) fn writable(self) -> bool {
        matches!(self.mode(), OFlags::WRONLY | OFlags::RDWR)
    }

    /// Whether opening so needs the right to change the file.
    pub(crate) fn changes_file(self) -> bool {
        self.mode() != OFlags::RDONLY || self.0.contains(OFlags::TRUNC)
    }

    fn mode(self) -> OFlags {
        self.0.intersection(OFlags::ACCMODE)
    }
}

/// Opens one child for walking: `O_PATH`, which has no side effects on devices or FIFOs, and never through a symlink.
pub(crate) fn open_child(dir: impl AsFd, name: FileName<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, name.as_bytes(), flags, Mode::empty())?)
}

/// Opens what `file` holds for reading or writing.
pub(crate) fn reopen(place: &Place<'_>, file: impl AsFd, access: Access) -> Result<OwnedFd, Errno> {
    Ok(place.proc_fd().reopen(file, access.0)?)
}

/// A second control descriptor on what `file` holds.
pub(crate) fn reopen_path(place: &Place<'_>, file: impl AsFd) -> Result<OwnedFd, Errno> {
    Ok(place.proc_fd().reopen(file, OFlags::PATH)?)
}

/// Opens a directory or file for a client that works on the descriptor itself.
///
/// What cannot be opened for reading, such as a socket, is donated as the `O_PATH` descriptor that it is.
pub(crate) fn reopen_for_donation(place: &Place<'_>, file: impl AsFd) -> Result<OwnedFd, Errno> {
    match place.proc_fd().reopen(&file, OFlags::RDONLY) {
        Ok(fd) => Ok(fd),
        Err(_) => duplicate(file),
    }
}

/// Creates a regular file with the client's access mode, so that its own permissions do not count against its creator.
pub(crate) fn create_file(
    dir: impl AsFd,
    name: FileName<'_>,
    access: Access,
    mode: FileMode,
) -> Result<OwnedFd, Errno> {
    let flags = access.without_truncation().0
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NONBLOCK
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    Ok(openat(dir, name.as_bytes(), flags, permissions(mode))?)
}

/// A descriptor of the same open file, to be donated.
pub(crate) fn duplicate(fd: impl AsFd) -> Result<OwnedFd, Errno> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 0)?)
}

/// A mode without its type.
pub(super) fn permissions(mode: FileMode) -> Mode {
    Mode::from_raw_mode(mode.permissions().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_open_flags_only_access_mode_and_truncation_survive() {
        let everything = Access::from_wire(u32::MAX);
        assert_eq!(everything.0, OFlags::ACCMODE | OFlags::TRUNC);
        assert_eq!(Access::from_wire(0o1002).0, OFlags::RDWR | OFlags::TRUNC);
        // O_CREAT, O_APPEND, O_DIRECTORY, O_TMPFILE.
        assert_eq!(Access::from_wire(0o100 | 0o2000 | 0o200_000 | 0o20_200_000).0, OFlags::RDONLY);
    }

    #[test]
    fn access_mode_three_neither_reads_nor_writes_but_needs_write_permission() {
        let access = Access::from_wire(3);
        assert!(!access.readable() && !access.writable() && access.changes_file());
        assert!(!Access::from_wire(0).changes_file());
        assert!(Access::from_wire(0o1000).changes_file());
    }
}
