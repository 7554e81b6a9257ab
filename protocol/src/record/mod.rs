//! Fixed-layout records: data whose bytes in memory are its bytes on the wire, with sizes asserted.

mod dirent;
mod inode;
mod statfs;
mod statx;

pub use dirent::{Dirent, Dirents, DirentsBuf};
pub use inode::{CreateCommon, Inode};
pub use statfs::StatFs;
pub use statx::{FileMode, FileType, Statx, StatxMask, Timespec, Timestamp};
