//! Mount. Channels are the connection's own business.

use std::os::fd::OwnedFd;

use crate::client::{Client, Error};
use crate::message::MountRequest;
use crate::record::Inode;

/// A new descriptor on the root.
#[derive(Debug)]
pub struct Mounted {
    /// The caller closes it.
    pub root: Inode,
    /// The root on the host, if the server lets its clients do file work themselves.
    pub donated: Option<OwnedFd>,
}

impl Client {
    /// The root once more.
    ///
    /// # Errors
    /// Those of the host.
    pub fn mount(&self) -> Result<Mounted, Error> {
        let mut reply = self.call(&MountRequest)?;
        Ok(Mounted { root: reply.decode()?.root, donated: reply.donated.first() })
    }
}
