//! FStat, SetStat, FStatFS.

use super::{message, requests};
use crate::record::{StatFs, Statx, StatxMask, Timespec};
use crate::{FdId, Gid, Uid};

message! {
    /// Asks for attributes.
    pub struct FStatRequest {
        /// A control or open descriptor.
        pub fd: FdId,
    }
}

message! {
    /// Asks for changes of attributes.
    pub struct SetStatRequest {
        /// A control descriptor.
        pub fd: FdId,
        /// Which of the following to apply; within [`StatxMask::SETTABLE`].
        pub mask: StatxMask,
        /// Type bits are dropped.
        pub mode: u32,
        /// New owner.
        pub uid: Uid,
        /// New group.
        pub gid: Gid,
        /// New size in bytes.
        pub size: u64,
        /// New time of the last access.
        pub atime: Timespec,
        /// New time of the last change of data.
        pub mtime: Timespec,
    }
}

impl SetStatRequest {
    /// Changes nothing: where a request starts that changes something.
    #[must_use]
    pub const fn nothing(fd: FdId) -> Self {
        Self {
            fd,
            mask: StatxMask(0),
            mode: 0,
            uid: Uid::NONE,
            gid: Gid::NONE,
            size: 0,
            atime: Timespec::OMIT,
            mtime: Timespec::OMIT,
        }
    }
}

message! {
    /// What could not be applied: a failing attribute does not fail the message.
    pub struct SetStatReply {
        /// Bits of the request's mask that were not applied.
        pub failure_mask: StatxMask,
        /// The errno of one of the failures, 0 if there is none.
        pub failure_errno: u32,
    }
}

message! {
    /// Asks for attributes of the file system.
    pub struct FStatFsRequest {
        /// A control descriptor.
        pub fd: FdId,
    }
}

requests! {
    FStatRequest = FSTAT -> Statx;
    SetStatRequest = SET_STAT -> SetStatReply;
    FStatFsRequest = FSTAT_FS -> StatFs;
}
