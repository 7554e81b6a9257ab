//! Error, Mount, Channel.

use super::{message, requests};
use crate::Mid;
use crate::codec::Array;
use crate::record::Inode;

message! {
    /// The reply to a request that failed; nothing happened.
    pub struct ErrorReply {
        /// A positive errno; see [`crate::Errno::from_wire`].
        pub errno: u32,
    }
}

message! {
    /// The root of the connection, and what the server can do.
    pub struct MountReply<'a> {
        /// A new control descriptor on the mount point.
        pub root: Inode,
        /// Payload bytes that a message may have.
        pub max_message_size: u32,
        /// Messages that the server knows.
        pub supported: Array<'a, Mid>,
    }
}

message! {
    /// Where the new channel's window lies in the donated memory.
    pub struct ChannelReply {
        /// First byte of the window.
        pub data_offset: i64,
        /// Bytes of the window, headers included.
        pub data_length: u64,
    }
}

/// Asks for the root of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MountRequest;

/// Asks for one more communicator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelRequest;

macro_rules! empty_requests {
    ($($name:ident)*) => {$(
        impl<'a> crate::Wire<'a> for $name {
            fn take(_: &mut crate::Decoder<'a>) -> Result<Self, crate::Malformed> {
                Ok(Self)
            }

            fn put(&self, _: &mut Vec<u8>) {}
        }
    )*};
}
empty_requests!(MountRequest ChannelRequest);

requests! {
    MountRequest = MOUNT [1] -> MountReply<'r>;
    ChannelRequest = CHANNEL [2] -> ChannelReply;
}
