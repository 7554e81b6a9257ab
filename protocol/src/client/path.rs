//! Files by path, from the root of the connection.

use super::node::{create_dir, create_new, walk_all};
use super::{Client, Error, File, Node};
use crate::{Errno, FdId, Mid};

impl Client {
    /// What is at `path`, counted from the root of the connection whether it starts with a slash or not. A symbolic link
    /// at its end is what was looked for; none is ever followed.
    ///
    /// # Errors
    /// `ENOENT`; `ELOOP` for a symbolic link on the way; `ENOTDIR` for another file there; `EINVAL` for a path with `..`
    /// in it.
    pub fn lookup(&self, path: &[u8]) -> Result<Node, Error> {
        let components: Vec<&[u8]> = components(path).collect();
        if components.is_empty() {
            // A walk of no component makes no descriptor.
            return Ok(Node::new(self, &self.mount()?.root));
        }
        walk_all(self, self.root().control_fd, &components)
    }

    /// Creates a regular file, which must not exist, and opens it for reading and writing.
    ///
    /// # Errors
    /// `EEXIST`; those of [`Client::lookup`] for the directory, and of [`Client::open_create_at`].
    pub fn create_new(&self, path: &[u8], permissions: u16) -> Result<(Node, File), Error> {
        self.in_parent(Mid::OPEN_CREATE_AT, path, |dir, name| create_new(self, dir, name, permissions))
    }

    /// Creates a directory, which must not exist.
    ///
    /// # Errors
    /// `EEXIST`; those of [`Client::lookup`] for its parent, and of [`Client::mkdir_at`].
    pub fn create_dir(&self, path: &[u8], permissions: u16) -> Result<Node, Error> {
        self.in_parent(Mid::MKDIR_AT, path, |dir, name| create_dir(self, dir, name, permissions))
    }

    /// Removes anything but a directory.
    ///
    /// # Errors
    /// Those of [`Client::lookup`] for its directory, and of [`Client::unlink_at`].
    pub fn remove_file(&self, path: &[u8]) -> Result<(), Error> {
        self.in_parent(Mid::UNLINK_AT, path, |dir, name| self.unlink_at(dir, 0, name))
    }

    /// Removes a directory, which must be empty.
    ///
    /// # Errors
    /// Those of [`Client::lookup`] for its parent, and of [`Client::unlink_at`].
    pub fn remove_dir(&self, path: &[u8]) -> Result<(), Error> {
        self.in_parent(Mid::UNLINK_AT, path, |dir, name| self.unlink_at(dir, AT_REMOVEDIR, name))
    }

    /// Moves a file of any type, replacing what is at `to`.
    ///
    /// # Errors
    /// Those of [`Client::lookup`] for the two directories, and of [`Client::rename_at`].
    pub fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Error> {
        self.in_parent(Mid::RENAME_AT, from, |old_dir, old_name| {
            self.in_parent(Mid::RENAME_AT, to, |new_dir, new_name| self.rename_at(old_dir, old_name, new_dir, new_name))
        })
    }

    /// Has `act` do something to the last name of `path`, in the directory that holds it.
    fn in_parent<T>(
        &self,
        mid: Mid,
        path: &[u8],
        act: impl FnOnce(FdId, &[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let components: Vec<&[u8]> = components(path).collect();
        match components.split_last() {
            None => Err(Error::refused(mid, Errno::EINVAL, "there is no name in the path")),
            Some((name, [])) => act(self.root().control_fd, name),
            Some((name, parent)) => act(walk_all(self, self.root().control_fd, parent)?.id(), name),
        }
    }
}

/// The names in a path. What is left of `..` is the server's to refuse.
pub(super) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|component| !component.is_empty() && *component != b".")
}

const AT_REMOVEDIR: u32 = rustix::fs::AtFlags::REMOVEDIR.bits();
