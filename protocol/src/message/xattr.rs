//! FGetXattr, FSetXattr, FListXattr, FRemoveXattr.

use super::{Empty, message, requests};
use crate::FdId;
use crate::codec::{SizedString, StringArray};

message! {
    /// Asks for an attribute's value.
    pub struct FGetXattrRequest<'a> {
        /// A control descriptor.
        pub fd: FdId,
        /// Longest value wanted; 0 for any.
        pub buf_size: u32,
        /// With its namespace.
        pub name: SizedString<'a>,
    }
}

message! {
    /// The attribute's value, whole.
    pub struct FGetXattrReply<'a> {
        /// Any bytes.
        pub value: SizedString<'a>,
    }
}

message! {
    /// Sets an attribute.
    pub struct FSetXattrRequest<'a> {
        /// A control descriptor.
        pub fd: FdId,
        /// 0, `XATTR_CREATE` or `XATTR_REPLACE`.
        pub flags: u32,
        /// With its namespace.
        pub name: SizedString<'a>,
        /// Any bytes.
        pub value: SizedString<'a>,
    }
}

message! {
    /// Asks for the attributes' names.
    pub struct FListXattrRequest {
        /// A control descriptor.
        pub fd: FdId,
        /// Longest list wanted, as the host has it; 0 for any.
        pub size: u64,
    }
}

message! {
    /// The attributes' names.
    pub struct FListXattrReply<'a> {
        /// Each with its namespace.
        pub names: StringArray<'a>,
    }
}

message! {
    /// Removes an attribute.
    pub struct FRemoveXattrRequest<'a> {
        /// A control descriptor.
        pub fd: FdId,
        /// With its namespace.
        pub name: SizedString<'a>,
    }
}

requests! {
    FGetXattrRequest<'a> = FGET_XATTR -> FGetXattrReply<'r>;
    FSetXattrRequest<'a> = FSET_XATTR -> Empty;
    FListXattrRequest = FLIST_XATTR -> FListXattrReply<'r>;
    FRemoveXattrRequest<'a> = FREMOVE_XATTR -> Empty;
}
