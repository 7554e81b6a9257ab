//! Numbers with a meaning of their own, so that none is taken for another.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The client's name for a control, open or bound-socket descriptor of one connection.
///
/// The server allocates it, counting up from 1, and never uses a number twice on a connection. It dies when the client
/// closes it or the connection ends. 0 names nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct FdId(pub u64);

impl FdId {
    /// Names nothing.
    pub const NONE: Self = Self(0);
}

impl fmt::Debug for FdId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fd {}", self.0)
    }
}

/// A user id of the host. [`Uid::NONE`] leaves the owner as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Uid(pub u32);

/// A group id of the host. [`Gid::NONE`] leaves the group as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Gid(pub u32);

impl Uid {
    /// "Do not change", as in chown(2).
    pub const NONE: Self = Self(u32::MAX);
}

impl Gid {
    /// "Do not change", as in chown(2).
    pub const NONE: Self = Self(u32::MAX);
}
