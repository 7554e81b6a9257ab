//! FGetXattr, FSetXattr, FListXattr, FRemoveXattr.

use super::name;
use crate::client::{Client, Error};
use crate::message::{FGetXattrRequest, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest};
use crate::{FdId, Mid};

impl Client {
    /// Value of an extended attribute; at most `buf_size` bytes, or any number if that is 0.
    ///
    /// # Errors
    /// `ENODATA` if there is none; `ERANGE` if it is longer than wanted; `EOPNOTSUPP`.
    pub fn fget_xattr(&self, fd: FdId, name: &[u8], buf_size: u32) -> Result<Vec<u8>, Error> {
        let name = self::name(Mid::FGET_XATTR, name)?;
        let reply = self.call(&FGetXattrRequest { fd, buf_size, name })?;
        Ok(reply.decode()?.value.as_bytes().to_vec())
    }

    /// Sets an extended attribute. `flags` is 0, `XATTR_CREATE` or `XATTR_REPLACE`.
    ///
    /// # Errors
    /// `EEXIST` or `ENODATA` by the flags; `EOPNOTSUPP`, `EROFS`; those of setxattr(2).
    pub fn fset_xattr(&self, fd: FdId, name: &[u8], value: &[u8], flags: u32) -> Result<(), Error> {
        let name = self::name(Mid::FSET_XATTR, name)?;
        let value = self::name(Mid::FSET_XATTR, value)?;
        self.call(&FSetXattrRequest { fd, flags, name, value })?.decode().map(drop)
    }

    /// Names of the extended attributes; at most `size` bytes as the host counts, or any number if that is 0.
    ///
    /// # Errors
    /// `ERANGE` if there are more than wanted; `EOPNOTSUPP`.
    pub fn flist_xattr(&self, fd: FdId, size: u64) -> Result<Vec<Vec<u8>>, Error> {
        let reply = self.call(&FListXattrRequest { fd, size })?;
        Ok(reply.decode()?.names.iter().map(<[u8]>::to_vec).collect())
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none; `EOPNOTSUPP`, `EROFS`.
    pub fn fremove_xattr(&self, fd: FdId, name: &[u8]) -> Result<(), Error> {
        let name = self::name(Mid::FREMOVE_XATTR, name)?;
        self.call(&FRemoveXattrRequest { fd, name })?.decode().map(drop)
    }
}
