//! OpenAt, OpenCreateAt, Close, Flush.

use super::{Empty, message, requests};
use crate::FdId;
use crate::codec::{Array, SizedString};
use crate::record::{CreateCommon, Inode};

message! {
    /// Opens what a control descriptor names. Regular files, FIFOs and character devices donate their descriptor.
    pub struct OpenAtRequest {
        /// A control descriptor.
        pub fd: FdId,
        /// Access mode and `O_TRUNC`; other bits are dropped.
        pub flags: u32,
    } pad 4
}

message! {
    /// The new open descriptor.
    pub struct OpenAtReply {
        /// The client closes it.
        pub open_fd: FdId,
    }
}

message! {
    /// Creates a regular file, which must not exist, and opens it; donates its descriptor.
    pub struct OpenCreateAtRequest<'a> {
        /// Directory, owner, mode.
        pub create: CreateCommon,
        /// Access mode; other bits but `O_TRUNC` are dropped.
        pub flags: u32,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

message! {
    /// The new file.
    pub struct OpenCreateAtReply {
        /// Its control descriptor and attributes.
        pub child: Inode,
        /// Its open descriptor.
        pub open_fd: FdId,
    }
}

message! {
    /// Gives descriptors of any kind back. Unknown ones are ignored.
    pub struct CloseRequest<'a> {
        /// In the order in which they die.
        pub fds: Array<'a, FdId>,
    }
}

message! {
    /// Tells that a handle closes.
    pub struct FlushRequest {
        /// An open descriptor.
        pub fd: FdId,
    }
}

requests! {
    OpenAtRequest = OPEN_AT [1] -> OpenAtReply;
    OpenCreateAtRequest<'a> = OPEN_CREATE_AT [1] -> OpenCreateAtReply;
    CloseRequest<'a> = CLOSE -> Empty;
    FlushRequest = FLUSH -> Empty;
}
