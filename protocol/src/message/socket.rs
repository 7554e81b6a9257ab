//! BindAt, Listen, Accept, Connect, ConnectWithCreds.

use super::{Empty, message, requests};
use crate::codec::{Padding, SizedString};
use crate::record::{CreateCommon, Inode};
use crate::{FdId, Gid, Uid};

message! {
    /// Connects to a socket of the host; donates the connected socket.
    pub struct ConnectRequest {
        /// A control descriptor of a socket.
        pub fd: FdId,
        /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
        pub sock_type: u32,
    } pad 4
}

message! {
    /// As Connect, with the effective ids that the peer shall see.
    pub struct ConnectWithCredsRequest {
        /// A control descriptor of a socket.
        pub fd: FdId,
        /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
        pub sock_type: u32,
        /// Ignored.
        pub padding: Padding<4>,
        /// Effective user.
        pub uid: Uid,
        /// Effective group.
        pub gid: Gid,
    }
}

message! {
    /// Creates a bound socket; donates a descriptor of it, to be polled.
    pub struct BindAtRequest<'a> {
        /// Directory, owner, mode.
        pub create: CreateCommon,
        /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
        pub sock_type: u32,
        /// A safe name.
        pub name: SizedString<'a>,
    }
}

message! {
    /// The new socket.
    pub struct BindAtReply {
        /// The socket's file.
        pub child: Inode,
        /// The socket.
        pub bound_fd: FdId,
    }
}

message! {
    /// Makes a bound socket accept connections.
    pub struct ListenRequest {
        /// A bound-socket descriptor.
        pub fd: FdId,
        /// As in listen(2).
        pub backlog: i32,
    } pad 4
}

message! {
    /// Takes a waiting connection; donates it.
    pub struct AcceptRequest {
        /// A bound-socket descriptor.
        pub fd: FdId,
    }
}

message! {
    /// The peer's address.
    pub struct AcceptReply<'a> {
        /// Always empty, so that no host path is revealed.
        pub peer_addr: SizedString<'a>,
    }
}

requests! {
    ConnectRequest = CONNECT [1] -> Empty;
    ConnectWithCredsRequest = CONNECT_WITH_CREDS [1] -> Empty;
    BindAtRequest<'a> = BIND_AT [1] -> BindAtReply;
    ListenRequest = LISTEN -> Empty;
    AcceptRequest = ACCEPT [1] -> AcceptReply<'r>;
}
