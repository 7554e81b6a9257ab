//! What creation and walking hand out, and the prefix that creation requests share.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{FileMode, Statx};
use crate::codec::records;
use crate::{FdId, Gid, Uid};

/// A new control descriptor and the attributes of what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Inode {
    /// The client closes it.
    pub control_fd: FdId,
    /// Attributes at the moment the descriptor was made.
    pub stat: Statx,
}

/// Where and for whom something is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateCommon {
    /// The directory, a control descriptor.
    pub dir_fd: FdId,
    /// Owner of the new file.
    pub uid: Uid,
    /// Group of the new file.
    pub gid: Gid,
    /// Type and permissions; no umask is applied.
    pub mode: FileMode,
    padding: [u16; 3],
}

impl CreateCommon {
    /// The prefix of a creation request.
    #[must_use]
    pub const fn new(dir_fd: FdId, uid: Uid, gid: Gid, mode: FileMode) -> Self {
        Self { dir_fd, uid, gid, mode, padding: [0; 3] }
    }
}

const _: () = assert!(size_of::<Inode>() == 152);
const _: () = assert!(size_of::<CreateCommon>() == 24);

records!(Inode, CreateCommon);
