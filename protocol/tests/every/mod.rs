//! Every message of the protocol by number, for tests that do not care which one it is.

use std::fmt::{self, Write};

use gofer_protocol::codec::decode;
use gofer_protocol::message::*;
use gofer_protocol::{Malformed, Mid, Request, Wire};

/// Who sends a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Reply,
}

/// Calls a function that is generic over the message with the type that a direction and a number stand for.
macro_rules! with_message_type {
    ($direction:expr, $mid:expr, $act:ident($payload:expr)) => {
        with_message_type!(@among $direction, $mid, $act($payload):
            MountRequest, ChannelRequest,
            FStatRequest, SetStatRequest, FStatFsRequest,
            WalkRequest<'_>, WalkStatRequest<'_>, ReadLinkAtRequest,
            OpenAtRequest, OpenCreateAtRequest<'_>, CloseRequest<'_>, FlushRequest,
            FSyncRequest<'_>, PWriteRequest<'_>, PReadRequest, FAllocateRequest,
            MkdirAtRequest<'_>, MknodAtRequest<'_>, SymlinkAtRequest<'_>, LinkAtRequest<'_>,
            UnlinkAtRequest<'_>, RenameAtRequest<'_>, RenameAt2Request<'_>,
            Getdents64Request,
            FGetXattrRequest<'_>, FSetXattrRequest<'_>, FListXattrRequest, FRemoveXattrRequest<'_>,
            BindAtRequest<'_>, ListenRequest, AcceptRequest, ConnectRequest, ConnectWithCredsRequest)
    };
    (@among $direction:expr, $mid:expr, $act:ident($payload:expr): $($request:ty),*) => {
        match ($direction, $mid) {
            (Direction::Reply, Mid::ERROR) => Some($act::<ErrorReply>($payload)),
            $((Direction::Request, mid) if mid == <$request>::MID => Some($act::<$request>($payload)),)*
            $((Direction::Reply, mid) if mid == <$request>::MID => {
                Some($act::<<$request as Request>::Reply<'_>>($payload))
            })*
            _ => None,
        }
    };
}

/// Decodes `payload` and looks at every part of it, without allocating. None for a number that has no such message.
#[must_use]
pub(crate) fn inspect(direction: Direction, mid: Mid, payload: &[u8]) -> Option<Result<(), Malformed>> {
    fn look<'a, T: Wire<'a> + fmt::Debug>(payload: &'a [u8]) -> Result<(), Malformed> {
        let message: T = decode(payload)?;
        // Printing a message walks all its arrays.
        write!(Nowhere, "{message:?}").map_err(|_| Malformed)
    }
    with_message_type!(direction, mid, look(payload))
}

/// Decodes `payload` and encodes the result again. None for a number that has no such message.
#[must_use]
pub(crate) fn encode_again(direction: Direction, mid: Mid, payload: &[u8]) -> Option<Result<Vec<u8>, Malformed>> {
    fn again<'a, T: Wire<'a>>(payload: &'a [u8]) -> Result<Vec<u8>, Malformed> {
        let message: T = decode(payload)?;
        let mut encoded = Vec::new();
        message.put(&mut encoded);
        Ok(encoded)
    }
    with_message_type!(direction, mid, again(payload))
}

/// Forgets what it is told.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}
