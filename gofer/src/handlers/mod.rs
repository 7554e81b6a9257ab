//! What each message does: decode, look up, take the guarantee, call the host, encode. One file per family.
//!
//! Checks come in the order of the protocol: payload (`EIO`), names (`EINVAL`), descriptors (`EBADF`, `EINVAL`), type,
//! deleted, policy, host. An error means that nothing happened, so what was begun is undone.

pub(crate) mod attr;
pub(crate) mod create;
pub(crate) mod dir;
pub(crate) mod io;
pub(crate) mod open;
pub(crate) mod remove;
pub(crate) mod session;
pub(crate) mod socket;
pub(crate) mod walk;
pub(crate) mod xattr;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use gofer_protocol::message::ErrorReply;
use gofer_protocol::record::{FileType, Inode, Statx};
use gofer_protocol::{Errno, Mid, Wire};

use crate::fd::{ControlFd, Fd};
use crate::host::remove::{Removal, unlink};
use crate::host::{FileName, Place};
use crate::serve::Connection;
use crate::tree::Tree;

/// Largest buffer that a reply keeps for the next one.
const KEPT: usize = 16 << 10;

/// What a handler works with.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) connection: &'a Arc<Connection>,
    pub(crate) place: &'a Place<'a>,
}

impl Context<'_> {
    pub(crate) fn tree(&self) -> &Tree {
        &self.connection.server().tree
    }
}

/// A reply as it is made.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The payload, but for file data.
    pub(crate) head: Vec<u8>,
    /// Bytes of file data that the transport holds, behind the head.
    pub(crate) bulk: usize,
    /// Descriptors to donate, in order.
    pub(crate) fds: Vec<OwnedFd>,
}

impl Reply {
    /// Appends to the payload.
    fn put<'w>(&mut self, part: &impl Wire<'w>) {
        part.put(&mut self.head);
    }

    pub(crate) fn payload_len(&self) -> usize {
        self.head.len() + self.bulk
    }

    /// Turns the reply into an Error. Descriptors on their way out are closed.
    pub(crate) fn fail(&mut self, errno: Errno) -> Mid {
        self.reset();
        self.put(&ErrorReply { errno: errno.raw() });
        Mid::ERROR
    }

    /// Makes room for the next reply, and gives back what only a large one needed.
    pub(crate) fn reset(&mut self) {
        self.head.clear();
        self.head.shrink_to(KEPT);
        self.bulk = 0;
        self.fds.clear();
    }
}

/// The type of what a client may hold. Block devices, and what Linux does not have, are refused with `EPERM`.
fn served_type(stat: &Statx) -> Result<FileType, Errno> {
    match stat.mode.file_type() {
        None | Some(FileType::BlockDevice) => Err(Errno::EPERM),
        Some(file_type) => Ok(file_type),
    }
}

/// Passes on what became of a new name, and removes the name again if that is an error: the client is told that nothing
/// was made. Best effort, for the first error is the one to tell.
fn or_undo<T>(made: Result<T, Errno>, dir: &ControlFd, name: FileName<'_>, removal: Removal) -> Result<T, Errno> {
    made.inspect_err(|_| {
        let _ = unlink(dir, name, removal);
    })
}

/// Gives `control` a number and says both.
fn publish(cx: &Context<'_>, control: Arc<ControlFd>, stat: Statx) -> Result<Inode, Errno> {
    Ok(Inode { control_fd: cx.connection.fds().insert(Fd::Control(control))?, stat })
}
