//! Getdents64.

use super::{message, requests};
use crate::FdId;
use crate::record::Dirents;

message! {
    /// Lists the directory from where the descriptor stands.
    pub struct Getdents64Request {
        /// An open descriptor of a directory.
        pub dir_fd: FdId,
        /// Budget in bytes of the host's records; negative: rewind first.
        pub count: i32,
    } pad 4
}

message! {
    /// The next entries; none at the end of the directory.
    pub struct Getdents64Reply<'a> {
        /// In the host's order.
        pub dirents: Dirents<'a>,
    }
}

requests! {
    Getdents64Request = GETDENTS64 -> Getdents64Reply<'r>;
}
