//! UnlinkAt, RenameAt, RenameAt2.

use super::name;
use crate::client::{Client, Error};
use crate::message::{RenameAt2Request, RenameAtRequest, UnlinkAtRequest};
use crate::{FdId, Mid};

impl Client {
    /// Removes a name. `flags` is 0, or `AT_REMOVEDIR` for a directory.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, `EROFS`; those of unlink(2).
    pub fn unlink_at(&self, dir_fd: FdId, flags: u32, name: &[u8]) -> Result<(), Error> {
        let name = self::name(Mid::UNLINK_AT, name)?;
        self.call(&UnlinkAtRequest { dir_fd, flags, name })?.decode().map(drop)
    }

    /// Moves a name, replacing what has the new one.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL`, `EROFS`; those of rename(2).
    pub fn rename_at(&self, old_dir: FdId, old_name: &[u8], new_dir: FdId, new_name: &[u8]) -> Result<(), Error> {
        let old_name = name(Mid::RENAME_AT, old_name)?;
        let new_name = name(Mid::RENAME_AT, new_name)?;
        self.call(&RenameAtRequest { old_dir, new_dir, old_name, new_name })?.decode().map(drop)
    }

    /// Moves a name. `flags` is 0, `RENAME_NOREPLACE` or `RENAME_EXCHANGE`.
    ///
    /// # Errors
    /// As [`Client::rename_at`]; `EEXIST` where nothing is to be replaced.
    pub fn rename_at2(
        &self,
        old_dir: FdId,
        old_name: &[u8],
        new_dir: FdId,
        new_name: &[u8],
        flags: u32,
    ) -> Result<(), Error> {
        let old_name = name(Mid::RENAME_AT2, old_name)?;
        let new_name = name(Mid::RENAME_AT2, new_name)?;
        self.call(&RenameAt2Request { old_dir, new_dir, old_name, new_name, flags })?.decode().map(drop)
    }
}
