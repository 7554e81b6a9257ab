//! What requests are made of, for those that tests put together themselves.

use gofer_protocol::codec::SizedString;
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{CreateCommon, FileMode, FileType, StatxMask, Timespec};
use gofer_protocol::{FdId, Gid, Uid, Wire};

/// The prefix of a creation, without an owner: the server's own.
#[must_use]
pub fn new_in(dir_fd: FdId, file_type: FileType, permissions: u16) -> CreateCommon {
    CreateCommon::new(dir_fd, Uid::NONE, Gid::NONE, FileMode::new(file_type, permissions))
}

/// A SetStat to be filled in for what `mask` says.
#[must_use]
pub fn change(fd: FdId, mask: StatxMask) -> SetStatRequest {
    let (atime, mtime) = (Timespec::default(), Timespec::default());
    SetStatRequest { fd, mask, mode: 0, uid: Uid::NONE, gid: Gid::NONE, size: 0, atime, mtime }
}

/// A string of the wire.
///
/// # Panics
/// If it is too long for one.
#[must_use]
pub fn string(text: &str) -> SizedString<'_> {
    SizedString::new(text.as_bytes()).expect("at most 65,535 bytes")
}

/// A request's payload.
#[must_use]
pub fn encoded<'q>(request: &impl Wire<'q>) -> Vec<u8> {
    let mut payload = Vec::new();
    request.put(&mut payload);
    payload
}
