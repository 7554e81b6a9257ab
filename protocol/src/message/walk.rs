//! Walk, WalkStat, ReadLinkAt.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{message, requests};
use crate::FdId;
use crate::codec::{Array, SizedString, StringArray, records};
use crate::record::{Inode, Statx};

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct WalkStatus(pub u8);

impl WalkStatus {
    /// Every component was walked.
    pub const SUCCESS: Self = Self(0);
    /// The component after the last inode does not exist.
    pub const MISSING: Self = Self(1);
    /// The last inode is a symbolic link and components are left.
    pub const SYMLINK: Self = Self(2);
}

records!(WalkStatus);

message! {
    /// Walks `path`, one component after the other, stopping at the first symbolic link.
    pub struct WalkRequest<'a> {
        /// A control descriptor of a directory.
        pub dir_fd: FdId,
        /// Components, each a safe name.
        pub path: StringArray<'a>,
    }
}

message! {
    /// One new control descriptor for each walked component.
    pub struct WalkReply<'a> {
        /// Why the list may be shorter than the path.
        pub status: WalkStatus,
        /// In path order.
        pub inodes: Array<'a, Inode>,
    }
}

message! {
    /// As Walk, without making descriptors. The first component may be empty: the start itself.
    pub struct WalkStatRequest<'a> {
        /// A control descriptor of a directory.
        pub dir_fd: FdId,
        /// Components, each a safe name but for an empty first one.
        pub path: StringArray<'a>,
    }
}

message! {
    /// Attributes of what was reached; shorter than the path where it ends early.
    pub struct WalkStatReply<'a> {
        /// In path order.
        pub stats: Array<'a, Statx>,
    }
}

message! {
    /// Asks for the target of a symbolic link.
    pub struct ReadLinkAtRequest {
        /// A control descriptor of a symbolic link.
        pub fd: FdId,
    }
}

message! {
    /// The target, as it is stored.
    pub struct ReadLinkAtReply<'a> {
        /// Not resolved, not validated.
        pub target: SizedString<'a>,
    }
}

requests! {
    WalkRequest<'a> = WALK -> WalkReply<'r>;
    WalkStatRequest<'a> = WALK_STAT -> WalkStatReply<'r>;
    ReadLinkAtRequest = READ_LINK_AT -> ReadLinkAtReply<'r>;
}
