//! MkdirAt, MknodAt, SymlinkAt, LinkAt.

use super::{message, requests};
use crate::codec::SizedString;
use crate::record::{CreateCommon, Inode};
use crate::{FdId, Gid, Uid};

message! {
    /// Creates a directory.
    pub struct MkdirAtRequest<'a> {
        /// Directory, owner, mode.
        pub create: CreateCommon,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

message! {
    /// Creates a regular file or an overlay whiteout.
    pub struct MknodAtRequest<'a> {
        /// Directory, owner, mode with its type.
        pub create: CreateCommon,
        /// Minor number of a device.
        pub minor: u32,
        /// Major number of a device.
        pub major: u32,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

message! {
    /// Creates a symbolic link.
    pub struct SymlinkAtRequest<'a> {
        /// A control descriptor of a directory.
        pub dir_fd: FdId,
        /// Owner of the link.
        pub uid: Uid,
        /// Group of the link.
        pub gid: Gid,
        /// A safe name.
        pub name: SizedString<'a>,
        /// Stored as it is, never resolved by the server.
        pub target: SizedString<'a>,
    }
}

message! {
    /// Creates a hard link.
    pub struct LinkAtRequest<'a> {
        /// A control descriptor of a directory.
        pub dir_fd: FdId,
        /// A control descriptor of anything but a directory.
        pub target: FdId,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

requests! {
    MkdirAtRequest<'a> = MKDIR_AT -> Inode;
    MknodAtRequest<'a> = MKNOD_AT -> Inode;
    SymlinkAtRequest<'a> = SYMLINK_AT -> Inode;
    LinkAtRequest<'a> = LINK_AT -> Inode;
}
