//! Getdents64: one message. Whole listings: [`crate::client::ReadDir`].

use crate::FdId;
use crate::client::{Client, Entry, Error};
use crate::message::Getdents64Request;

impl Client {
    /// The next entries of an open directory; none at its end. The budget `count` is in bytes of the host's records;
    /// if it is negative, the listing starts from the front.
    ///
    /// # Errors
    /// `ENOTDIR`; `EINVAL` for a control descriptor or a deleted directory.
    pub fn getdents64(&self, dir_fd: FdId, count: i32) -> Result<Vec<Entry>, Error> {
        let reply = self.call(&Getdents64Request { dir_fd, count })?;
        Ok(reply.decode()?.dirents.iter().map(Entry::from).collect())
    }
}
