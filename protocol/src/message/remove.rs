//! UnlinkAt, RenameAt, RenameAt2.

use super::{Empty, message, requests};
use crate::FdId;
use crate::codec::SizedString;

message! {
    /// Removes a name.
    pub struct UnlinkAtRequest<'a> {
        /// A control descriptor of a directory.
        pub dir_fd: FdId,
        /// 0, or `AT_REMOVEDIR` for a directory.
        pub flags: u32,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

message! {
    /// Moves a name.
    pub struct RenameAtRequest<'a> {
        /// A control descriptor of a directory.
        pub old_dir: FdId,
        /// A control descriptor of a directory.
        pub new_dir: FdId,
        /// A safe name.
        pub old_name: SizedString<'a>,
        /// A safe name.
        pub new_name: SizedString<'a>,
    }
}

message! {
    /// Moves a name, with flags.
    pub struct RenameAt2Request<'a> {
        /// A control descriptor of a directory.
        pub old_dir: FdId,
        /// A control descriptor of a directory.
        pub new_dir: FdId,
        /// A safe name.
        pub old_name: SizedString<'a>,
        /// A safe name.
        pub new_name: SizedString<'a>,
        /// 0, `RENAME_NOREPLACE` or `RENAME_EXCHANGE`.
        pub flags: u32,
    }
}

requests! {
    UnlinkAtRequest<'a> = UNLINK_AT -> Empty;
    RenameAtRequest<'a> = RENAME_AT -> Empty;
    RenameAt2Request<'a> = RENAME_AT2 -> Empty;
}
