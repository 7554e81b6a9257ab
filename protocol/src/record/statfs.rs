//! Attributes of a file system, as `statfs(2)` has them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codec::records;

/// Attributes of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatFs {
    /// Magic number of the file system's type, such as 0xEF53.
    pub fs_type: u64,
    /// Unit of the block counts, in bytes.
    pub block_size: i64,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Free blocks that an unprivileged user may take.
    pub blocks_available: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// Longest name, in bytes.
    pub name_length: u64,
}

const _: () = assert!(size_of::<StatFs>() == 64);

records!(StatFs);
