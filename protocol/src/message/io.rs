//! FSync, PWrite, PRead, FAllocate.

use super::{Empty, message, requests};
use crate::FdId;
use crate::codec::{Array, Data};

message! {
    /// Writes files through to their storage.
    pub struct FSyncRequest<'a> {
        /// Open descriptors.
        pub fds: Array<'a, FdId>,
    }
}

message! {
    /// Where a PWrite goes, without the data that follows.
    pub struct PWriteHead {
        /// In the file.
        pub offset: u64,
        /// An open descriptor.
        pub fd: FdId,
        /// Bytes that follow at least.
        pub num_bytes: u32,
    }
}

impl PWriteHead {
    /// Bytes of the head on the wire: where the data starts.
    pub const LEN: usize = 20;
}

message! {
    /// Writes data at an offset.
    pub struct PWriteRequest<'a> {
        /// In the file.
        pub offset: u64,
        /// An open descriptor.
        pub fd: FdId,
        /// What to write.
        pub data: Data<'a, u32>,
    }
}

message! {
    /// How much was written.
    pub struct PWriteReply {
        /// Bytes.
        pub count: u64,
    }
}

message! {
    /// Reads data at an offset.
    pub struct PReadRequest {
        /// In the file.
        pub offset: u64,
        /// An open descriptor.
        pub fd: FdId,
        /// Bytes wanted.
        pub count: u32,
    } pad 4
}

/// Bytes of a PRead reply before its data.
pub const PREAD_REPLY_HEAD: usize = 8;

message! {
    /// What was read; fewer bytes than wanted, or none, at the end of the file.
    pub struct PReadReply<'a> {
        /// The bytes.
        pub data: Data<'a, u64>,
    }
}

message! {
    /// Allocates space.
    pub struct FAllocateRequest {
        /// An open descriptor.
        pub fd: FdId,
        /// Only 0 is served.
        pub mode: u64,
        /// In the file.
        pub offset: u64,
        /// Bytes.
        pub length: u64,
    }
}

requests! {
    FSyncRequest<'a> = FSYNC -> Empty;
    PWriteRequest<'a> = PWRITE -> PWriteReply;
    PReadRequest = PREAD -> PReadReply<'r>;
    FAllocateRequest = FALLOCATE -> Empty;
}
