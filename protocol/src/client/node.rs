//! Files as places in the server's tree.

use std::fmt;

use super::path::components;
use super::{Client, Error, Fd, File, ReadDir};
use crate::message::WalkStatus;
use crate::record::{CreateCommon, FileMode, FileType, Inode, Statx};
use crate::{Errno, FdId, Gid, Mid, Uid};

/// A file of the server, of any type, by a control descriptor: what can be opened, listed and changed. Closed some time
/// after it was dropped, see [`Client::flush_closes`].
pub struct Node {
    fd: Fd,
    stat: Statx,
}

impl Node {
    /// Takes over what a reply handed out.
    #[must_use]
    pub fn new(client: &Client, inode: &Inode) -> Self {
        Self { fd: client.own(inode.control_fd), stat: inode.stat }
    }

    /// Its number, for as long as this lives.
    #[must_use]
    pub fn id(&self) -> FdId {
        self.fd.id()
    }

    /// The connection that it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.fd.client()
    }

    /// Its attributes when the descriptor was made.
    #[must_use]
    pub fn first_stat(&self) -> &Statx {
        &self.stat
    }

    /// Its present attributes.
    ///
    /// # Errors
    /// Those of [`Client::fstat`].
    pub fn stat(&self) -> Result<Statx, Error> {
        self.client().fstat(self.id())
    }

    /// Its type, which never changes.
    #[must_use]
    pub fn file_type(&self) -> Option<FileType> {
        self.stat.mode.file_type()
    }

    /// Opens it: `O_RDONLY`, `O_WRONLY` or `O_RDWR`, with `O_TRUNC` or without.
    ///
    /// # Errors
    /// Those of [`Client::open_at`].
    pub fn open(&self, flags: u32) -> Result<File, Error> {
        let opened = self.client().open_at(self.id(), flags)?;
        Ok(File::new(self.client().own(opened.open_fd), opened.donated))
    }

    /// Lists it.
    ///
    /// # Errors
    /// `ENOTDIR`; those of [`Client::open_at`].
    pub fn read_dir(&self) -> Result<ReadDir, Error> {
        if self.file_type() != Some(FileType::Directory) {
            return Err(Error::refused(Mid::GETDENTS64, Errno::ENOTDIR, "this is no directory"));
        }
        self.open(O_RDONLY).map(ReadDir::new)
    }

    /// Where it points to, if it is a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` if it is none.
    pub fn read_link(&self) -> Result<Vec<u8>, Error> {
        self.client().read_link_at(self.id())
    }

    /// What is at `path`, from here. See [`Client::lookup`].
    ///
    /// # Errors
    /// Those of [`Client::lookup`]; `EINVAL` for a path without a name in it.
    pub fn lookup(&self, path: &[u8]) -> Result<Self, Error> {
        let components: Vec<&[u8]> = components(path).collect();
        walk_all(self.client(), self.id(), &components)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({:?}, inode {})", self.fd, self.file_type(), self.stat.ino)
    }
}

/// Walks all of `components`, at least one, and keeps the last.
pub(super) fn walk_all(client: &Client, start: FdId, components: &[&[u8]]) -> Result<Node, Error> {
    let mut at: Option<Node> = None;
    for batch in components.chunks(BATCH) {
        if at.as_ref().is_some_and(|node| node.file_type() == Some(FileType::Symlink)) {
            return Err(symlink_on_the_way());
        }
        let walked = client.walk(at.as_ref().map_or(start, Node::id), batch)?;
        let complete = walked.inodes.len() == batch.len();
        // Each takes the place of the one before, which is dropped, and so closed, wherever this ends.
        for inode in &walked.inodes {
            at = Some(Node::new(client, inode));
        }
        if !complete {
            return Err(match walked.status {
                WalkStatus::MISSING => Error::server(Mid::WALK, Errno::ENOENT),
                WalkStatus::SYMLINK => symlink_on_the_way(),
                _ => Error::reply(Mid::WALK, "it stops without a reason"),
            });
        }
    }
    at.ok_or_else(|| Error::refused(Mid::WALK, Errno::EINVAL, "there is no name in the path"))
}

/// Creates a regular file and opens it for reading and writing.
pub(super) fn create_new(client: &Client, dir: FdId, name: &[u8], permissions: u16) -> Result<(Node, File), Error> {
    let create = ours(dir, FileMode::new(FileType::Regular, permissions));
    let created = client.open_create_at(create, O_RDWR, name)?;
    let file = File::new(client.own(created.open_fd), created.donated);
    Ok((Node::new(client, &created.child), file))
}

/// Creates a directory.
pub(super) fn create_dir(client: &Client, dir: FdId, name: &[u8], permissions: u16) -> Result<Node, Error> {
    let create = ours(dir, FileMode::new(FileType::Directory, permissions));
    Ok(Node::new(client, &client.mkdir_at(create, name)?))
}

/// What is created belongs to the server's own user.
fn ours(dir: FdId, mode: FileMode) -> CreateCommon {
    CreateCommon::new(dir, Uid::NONE, Gid::NONE, mode)
}

/// The errno of `RESOLVE_NO_SYMLINKS`, see openat2(2).
fn symlink_on_the_way() -> Error {
    Error::server(Mid::WALK, Errno::ELOOP)
}

/// Components that go into one message; the reply fits for sure.
const BATCH: usize = 64;

const O_RDONLY: u32 = rustix::fs::OFlags::RDONLY.bits();
const O_RDWR: u32 = rustix::fs::OFlags::RDWR.bits();
