//! FStat, SetStat, FStatFS.

use crate::FdId;
use crate::client::{Client, Error};
use crate::message::{FStatFsRequest, FStatRequest, SetStatReply, SetStatRequest};
use crate::record::{StatFs, Statx};

impl Client {
    /// Attributes of a control or open descriptor.
    ///
    /// # Errors
    /// `EBADF` for an unknown descriptor.
    pub fn fstat(&self, fd: FdId) -> Result<Statx, Error> {
        self.call(&FStatRequest { fd })?.decode()
    }

    /// Changes attributes, those that [`SetStatRequest::mask`] says. What could not be applied is in the reply: it does
    /// not make the call fail.
    ///
    /// # Errors
    /// `EPERM` for a bit that cannot be set; `EROFS`.
    pub fn set_stat(&self, request: &SetStatRequest) -> Result<SetStatReply, Error> {
        self.call(request)?.decode()
    }

    /// Attributes of the file system.
    ///
    /// # Errors
    /// `EINVAL` for anything but a control descriptor.
    pub fn fstat_fs(&self, fd: FdId) -> Result<StatFs, Error> {
        self.call(&FStatFsRequest { fd })?.decode()
    }
}
