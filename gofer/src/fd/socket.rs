//! A socket that the server bound for the client.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::ControlFd;

/// A bound socket. It and the control descriptor of its file are two descriptors of the host: the socket's own inode is
/// not the file's.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    control: Arc<ControlFd>,
    socket: OwnedFd,
}

impl BoundSocket {
    pub(crate) fn new(control: Arc<ControlFd>, socket: OwnedFd) -> Self {
        Self { control, socket }
    }

    /// The socket's file.
    pub(crate) fn control(&self) -> &Arc<ControlFd> {
        &self.control
    }
}

impl AsFd for BoundSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
