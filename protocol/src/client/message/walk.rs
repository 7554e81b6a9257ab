//! Walk, WalkStat, ReadLinkAt.

use super::path;
use crate::client::{Client, Error};
use crate::message::{ReadLinkAtRequest, WalkRequest, WalkStatRequest, WalkStatus};
use crate::record::{Inode, Statx};
use crate::{FdId, Mid};

/// How far a walk came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Why there may be fewer inodes than components.
    pub status: WalkStatus,
    /// One for each component that was walked. The caller closes them.
    pub inodes: Vec<Inode>,
}

impl Client {
    /// Walks `components` from a directory, stopping where one is missing, and behind a symbolic link.
    ///
    /// # Errors
    /// `ENOTDIR` if the start, or what a component was walked to, is no directory; `EINVAL` for a component that is no
    /// plain name.
    pub fn walk(&self, dir_fd: FdId, components: &[&[u8]]) -> Result<Walked, Error> {
        let path = path(Mid::WALK, components)?;
        let reply = self.call(&WalkRequest { dir_fd, path: path.as_array() })?;
        let walked = reply.decode()?;
        let inodes: Vec<Inode> = walked.inodes.iter().collect();
        if inodes.len() > components.len() {
            for inode in inodes {
                self.close_later(inode.control_fd);
            }
            return Err(Error::reply(Mid::WALK, "it has more inodes than there were components"));
        }
        Ok(Walked { status: walked.status, inodes })
    }

    /// Attributes of what a walk would come to. The first component may be empty: the start itself.
    ///
    /// # Errors
    /// As [`Client::walk`].
    pub fn walk_stat(&self, dir_fd: FdId, components: &[&[u8]]) -> Result<Vec<Statx>, Error> {
        let path = path(Mid::WALK_STAT, components)?;
        let reply = self.call(&WalkStatRequest { dir_fd, path: path.as_array() })?;
        let stats = reply.decode()?.stats;
        if stats.len() > components.len() {
            return Err(Error::reply(Mid::WALK_STAT, "it has more attributes than there were components"));
        }
        Ok(stats.iter().collect())
    }

    /// Target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` for anything but a symbolic link.
    pub fn read_link_at(&self, fd: FdId) -> Result<Vec<u8>, Error> {
        let reply = self.call(&ReadLinkAtRequest { fd })?;
        Ok(reply.decode()?.target.as_bytes().to_vec())
    }
}
