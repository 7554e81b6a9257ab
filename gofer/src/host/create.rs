//! Creating names in a held directory, and links' targets.

use std::os::fd::AsFd;

use gofer_protocol::Errno;
use gofer_protocol::record::{FileMode, FileType as Type};
use rustix::fs::{AtFlags, FileType};

use super::open::permissions;
use super::{FileName, Place};

/// Creates a directory.
pub(crate) fn mkdir(dir: impl AsFd, name: FileName<'_>, mode: FileMode) -> Result<(), Errno> {
    Ok(rustix::fs::mkdirat(dir, name.as_bytes(), permissions(mode))?)
}

/// Creates a regular file, or the character device 0:0 that overlay file systems take for a whiteout and that the
/// kernel lets anyone make (5.8).
///
/// # Errors
/// `EPERM` for everything else, devices with a number included.
pub(crate) fn mknod(
    dir: impl AsFd,
    name: FileName<'_>,
    mode: FileMode,
    (major, minor): (u32, u32),
) -> Result<(), Errno> {
    let file_type = match mode.file_type() {
        Some(Type::Regular) => FileType::RegularFile,
        Some(Type::CharDevice) if (major, minor) == (0, 0) => FileType::CharacterDevice,
        _ => return Err(Errno::EPERM),
    };
    Ok(rustix::fs::mknodat(dir, name.as_bytes(), file_type, permissions(mode), 0)?)
}

/// Creates a symbolic link with `target` as it is.
pub(crate) fn symlink(target: &[u8], dir: impl AsFd, name: FileName<'_>) -> Result<(), Errno> {
    Ok(rustix::fs::symlinkat(target, dir, name.as_bytes())?)
}

/// Creates another name for what `file` holds, a symbolic link itself included.
///
/// By descriptor, not by name: another process may have put something else at the file's name.
pub(crate) fn link(place: &Place<'_>, file: impl AsFd, dir: impl AsFd, name: FileName<'_>) -> Result<(), Errno> {
    let from = place.name_of(file);
    Ok(rustix::fs::linkat(place.proc_fd(), from, dir, name.as_bytes(), AtFlags::SYMLINK_FOLLOW)?)
}

/// The target of the symbolic link that `file` holds.
///
/// # Errors
/// `ENOMEM` if it is longer than any Linux file system stores.
pub(crate) fn read_link(file: impl AsFd, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let len = rustix::fs::readlinkat_raw(file, c"", &mut *buffer)?;
    if len == buffer.len() { Err(Errno::ENOMEM) } else { buffer.get(..len).ok_or(Errno::EIO) }
}
