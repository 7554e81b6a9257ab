//! Why a call failed.

use std::fmt;

use crate::codec::Malformed;
use crate::transport::Ended;
use crate::{Errno, Mid};

/// A call that failed: an errno, as any file system has it, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    mid: Mid,
    errno: Errno,
    kind: ErrorKind,
}

/// Where an error comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server says so.
    Server,
    /// This client refused to send the request; why is the text.
    Refused(&'static str),
    /// The server's reply is not one; how is the text. The connection lives on.
    Reply(&'static str),
    /// The request, or its reply, was lost with the connection or the channel that it took.
    Connection(Ended),
    /// The file ends before what was to be read.
    EndOfFile,
}

impl Error {
    pub(super) fn server(mid: Mid, errno: Errno) -> Self {
        Self { mid, errno, kind: ErrorKind::Server }
    }

    pub(super) fn refused(mid: Mid, errno: Errno, why: &'static str) -> Self {
        Self { mid, errno, kind: ErrorKind::Refused(why) }
    }

    pub(super) fn reply(mid: Mid, how: &'static str) -> Self {
        Self::reply_with(mid, Errno::EIO, how)
    }

    pub(super) fn reply_with(mid: Mid, errno: Errno, how: &'static str) -> Self {
        Self { mid, errno, kind: ErrorKind::Reply(how) }
    }

    pub(super) fn malformed(mid: Mid, _: Malformed) -> Self {
        Self::reply(mid, "it is shorter than its layout needs")
    }

    pub(super) fn connection(mid: Mid, ended: Ended) -> Self {
        Self { mid, errno: Errno::EIO, kind: ErrorKind::Connection(ended) }
    }

    pub(super) fn host(mid: Mid, errno: Errno) -> Self {
        Self { mid, errno, kind: ErrorKind::Connection(Ended::Host(errno)) }
    }

    pub(super) fn end_of_file() -> Self {
        Self { mid: Mid::PREAD, errno: Errno::EIO, kind: ErrorKind::EndOfFile }
    }

    /// What a file system would answer.
    #[must_use]
    pub fn errno(&self) -> Errno {
        self.errno
    }

    /// Where the error comes from.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The message that failed.
    #[must_use]
    pub fn mid(&self) -> Mid {
        self.mid
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.mid)?;
        match &self.kind {
            ErrorKind::Server => self.errno.fmt(f),
            ErrorKind::Refused(why) => write!(f, "not sent: {why}"),
            ErrorKind::Reply(how) => write!(f, "not a reply: {how}"),
            ErrorKind::Connection(_) => f.write_str("there is no connection"),
            ErrorKind::EndOfFile => f.write_str("the file ends before what was to be read"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Connection(ended) => Some(ended),
            _ => None,
        }
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        error.errno
    }
}

impl From<Error> for std::io::Error {
    /// Keeps the errno, which most callers look at, and loses where it comes from.
    fn from(error: Error) -> Self {
        match error.kind {
            ErrorKind::EndOfFile => std::io::ErrorKind::UnexpectedEof.into(),
            _ => error.errno.into(),
        }
    }
}
