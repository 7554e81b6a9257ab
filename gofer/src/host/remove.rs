//! Removing and moving names of held directories.

use std::os::fd::AsFd;

use gofer_protocol::Errno;
use rustix::fs::{AtFlags, RenameFlags};

use super::FileName;

/// What a name is expected to be, when it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// Removes a name.
pub(crate) fn unlink(dir: impl AsFd, name: FileName<'_>, removal: Removal) -> Result<(), Errno> {
    let flags = match removal {
        Removal::File => AtFlags::empty(),
        Removal::Directory => AtFlags::REMOVEDIR,
    };
    Ok(rustix::fs::unlinkat(dir, name.as_bytes(), flags)?)
}

/// How a rename treats what has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collision {
    /// Replaces it.
    Replace,
    /// Refuses, with `EEXIST`.
    Refuse,
    /// Swaps the two.
    Exchange,
}

/// Moves a name.
pub(crate) fn rename(
    (old_dir, old_name): (impl AsFd, FileName<'_>),
    (new_dir, new_name): (impl AsFd, FileName<'_>),
    collision: Collision,
) -> Result<(), Errno> {
    let (old_name, new_name) = (old_name.as_bytes(), new_name.as_bytes());
    match collision {
        // renameat(2) works where a file system does not know renameat2(2).
        Collision::Replace => rustix::fs::renameat(old_dir, old_name, new_dir, new_name),
        Collision::Refuse => rustix::fs::renameat_with(old_dir, old_name, new_dir, new_name, RenameFlags::NOREPLACE),
        Collision::Exchange => rustix::fs::renameat_with(old_dir, old_name, new_dir, new_name, RenameFlags::EXCHANGE),
    }?;
    Ok(())
}
