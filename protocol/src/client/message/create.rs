//! MkdirAt, MknodAt, SymlinkAt, LinkAt. The caller closes the descriptors that they return.

use super::name;
use crate::client::{Client, Error};
use crate::message::{LinkAtRequest, MkdirAtRequest, MknodAtRequest, SymlinkAtRequest};
use crate::record::{CreateCommon, Inode};
use crate::{FdId, Gid, Mid, Uid};

impl Client {
    /// Creates a directory.
    ///
    /// # Errors
    /// `EEXIST`, `ENOTDIR`, `EROFS`; those of mkdir(2).
    pub fn mkdir_at(&self, create: CreateCommon, name: &[u8]) -> Result<Inode, Error> {
        let name = self::name(Mid::MKDIR_AT, name)?;
        self.call(&MkdirAtRequest { create, name })?.decode()
    }

    /// Creates a regular file or an overlay whiteout.
    ///
    /// # Errors
    /// `EPERM` for any other type; `EEXIST`, `ENOTDIR`, `EROFS`; those of mknod(2).
    pub fn mknod_at(&self, create: CreateCommon, major: u32, minor: u32, name: &[u8]) -> Result<Inode, Error> {
        let name = self::name(Mid::MKNOD_AT, name)?;
        self.call(&MknodAtRequest { create, minor, major, name })?.decode()
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// `EEXIST`, `ENOTDIR`, `EROFS`; those of symlink(2).
    pub fn symlink_at(&self, dir_fd: FdId, uid: Uid, gid: Gid, name: &[u8], target: &[u8]) -> Result<Inode, Error> {
        let name = self::name(Mid::SYMLINK_AT, name)?;
        let target = self::name(Mid::SYMLINK_AT, target)?;
        self.call(&SymlinkAtRequest { dir_fd, uid, gid, name, target })?.decode()
    }

    /// Creates a hard link to what the control descriptor `target` names.
    ///
    /// # Errors
    /// `EPERM` for a directory; `EEXIST`, `ENOTDIR`, `EROFS`; those of link(2).
    pub fn link_at(&self, dir_fd: FdId, target: FdId, name: &[u8]) -> Result<Inode, Error> {
        let name = self::name(Mid::LINK_AT, name)?;
        self.call(&LinkAtRequest { dir_fd, target, name })?.decode()
    }
}
