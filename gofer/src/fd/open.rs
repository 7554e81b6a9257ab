//! An open file; may be read, written and listed, but neither walked from nor changed in the tree.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gofer_protocol::Errno;
use gofer_protocol::record::FileType;

use super::ControlFd;
use crate::host::Place;
use crate::host::dir::Devices;
use crate::host::open::{self, Access};

/// An open descriptor. It keeps its control descriptor, whose number the client may have closed.
#[derive(Debug)]
pub(crate) struct OpenFd {
    control: Arc<ControlFd>,
    host: OwnedFd,
    access: Access,
    /// Learned by the first listing. The lock serialises listings of one descriptor, which share its position.
    listing: Mutex<Option<Devices>>,
}

impl OpenFd {
    pub(crate) fn new(control: Arc<ControlFd>, host: OwnedFd, access: Access) -> Self {
        Self { control, host, access, listing: Mutex::new(None) }
    }

    pub(crate) fn control(&self) -> &Arc<ControlFd> {
        &self.control
    }

    /// `EBADF` unless the file was opened for reading.
    pub(crate) fn readable(&self) -> Result<(), Errno> {
        if self.access.readable() { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// `EBADF` unless the file was opened for writing.
    pub(crate) fn writable(&self) -> Result<(), Errno> {
        if self.access.writable() { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// Calls `transfer` with what data is read from and written to.
    ///
    /// Of a device the client has the very description that was opened here, and may take `O_NONBLOCK` off it: a read
    /// could wait for ever then, and keep the connection from ever ending. So for data a device is opened anew.
    pub(crate) fn data<T>(
        &self,
        place: &Place<'_>,
        transfer: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match self.control.file_type() {
            FileType::CharDevice => transfer(open::reopen(place, &*self.control, self.access)?.as_fd()),
            _ => transfer(self.host.as_fd()),
        }
    }

    /// Makes the caller the only one that lists this descriptor.
    pub(crate) fn listing(&self) -> MutexGuard<'_, Option<Devices>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for OpenFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }
}
