//! OpenAt, OpenCreateAt, Close, Flush.

use std::os::fd::OwnedFd;

use super::name;
use crate::client::closing::BATCH;
use crate::client::{Client, Error};
use crate::codec::Array;
use crate::message::{CloseRequest, FlushRequest, OpenAtRequest, OpenCreateAtRequest};
use crate::record::{CreateCommon, Inode};
use crate::{Errno, FdId, Mid};

/// An open file.
#[derive(Debug)]
pub struct Opened {
    /// The caller closes it.
    pub open_fd: FdId,
    /// The file on the host, if the server donates it.
    pub donated: Option<OwnedFd>,
}

/// A file that is new, and open.
#[derive(Debug)]
pub struct Created {
    /// Its control descriptor, which the caller closes, and its attributes.
    pub child: Inode,
    /// Its open descriptor, which the caller closes.
    pub open_fd: FdId,
    /// The file on the host, if the server donates it.
    pub donated: Option<OwnedFd>,
}

impl Client {
    /// Opens what a control descriptor names. Of `flags`, the access mode and `O_TRUNC` count.
    ///
    /// # Errors
    /// `EISDIR` for a directory that is to be written; `EROFS`; `EPERM` by policy; those of open(2).
    pub fn open_at(&self, fd: FdId, flags: u32) -> Result<Opened, Error> {
        let mut reply = self.call(&OpenAtRequest { fd, flags })?;
        Ok(Opened { open_fd: reply.decode()?.open_fd, donated: reply.donated.first() })
    }

    /// Creates a regular file and opens it. Of `flags`, the access mode counts.
    ///
    /// # Errors
    /// `EEXIST` if there is something of that name; `EROFS`; those of open(2).
    pub fn open_create_at(&self, create: CreateCommon, flags: u32, name: &[u8]) -> Result<Created, Error> {
        let name = self::name(Mid::OPEN_CREATE_AT, name)?;
        let mut reply = self.call(&OpenCreateAtRequest { create, flags, name })?;
        let created = reply.decode()?;
        let (child, open_fd) = (created.child, created.open_fd);
        Ok(Created { child, open_fd, donated: reply.donated.first() })
    }

    /// Gives descriptors of any kind back. Unknown ones are ignored.
    ///
    /// # Errors
    /// Those of a lost connection.
    pub fn close(&self, fds: &[FdId]) -> Result<(), Error> {
        for batch in fds.chunks(BATCH) {
            let fds = Array::new(batch).ok_or_else(|| too_many(Mid::CLOSE))?;
            self.call(&CloseRequest { fds })?.decode()?;
        }
        Ok(())
    }

    /// Tells that a handle closes. A server that has not announced the message does not need to know.
    ///
    /// # Errors
    /// Those of writing late, where the host's file system has any.
    pub fn flush(&self, fd: FdId) -> Result<(), Error> {
        if !self.connection.supports(Mid::FLUSH) {
            return Ok(());
        }
        self.call(&FlushRequest { fd })?.decode().map(drop)
    }
}

/// More descriptors than a message takes.
pub(super) fn too_many(mid: Mid) -> Error {
    Error::refused(mid, Errno::E2BIG, "there are more descriptors than a count can say")
}
