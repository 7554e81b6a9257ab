//! A position in the tree; may be walked from, opened and changed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use gofer_protocol::Errno;
use gofer_protocol::record::FileType;

use crate::host::Place;
use crate::host::open::{self, Access};
use crate::tree::Node;

/// A control descriptor. There may be hundreds of thousands, so it is small.
#[derive(Debug)]
pub(crate) struct ControlFd {
    node: Arc<Node>,
    /// `O_PATH`; pins the inode for as long as the client holds the number, so that the inode's number cannot come to
    /// mean another file meanwhile.
    host: OwnedFd,
    /// Opened by the first change of size, and kept: after a chmod the right to write may be gone.
    writable: OnceLock<OwnedFd>,
    /// Fixed when the descriptor is made; a client must never see it change.
    file_type: FileType,
}

impl ControlFd {
    pub(crate) fn new(node: Arc<Node>, host: OwnedFd, file_type: FileType) -> Self {
        Self { node, host, writable: OnceLock::new(), file_type }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    pub(crate) fn file_type(&self) -> FileType {
        self.file_type
    }

    /// `ENOTDIR` unless this is a directory.
    pub(crate) fn directory(&self) -> Result<(), Errno> {
        if self.file_type == FileType::Directory { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    /// `EINVAL` if the server removed what was at this position.
    pub(crate) fn not_deleted(&self) -> Result<(), Errno> {
        if self.node.is_deleted() { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// The file, open for writing.
    pub(crate) fn writable(&self, place: &Place<'_>) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(fd) = self.writable.get() {
            return Ok(fd.as_fd());
        }
        // O_WRONLY. Two threads may both open; one of the two descriptors is closed again.
        let fd = open::reopen(place, &self.host, Access::from_wire(1))?;
        Ok(self.writable.get_or_init(|| fd).as_fd())
    }
}

impl AsFd for ControlFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }
}

const _: () = assert!(size_of::<ControlFd>() <= 24, "with its two counts it fills one allocation of 48 bytes");
