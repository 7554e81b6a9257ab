//! A method of [`Client`] for each message, one family per file.
//!
//! [`Client`]: super::Client

mod attr;
mod create;
mod dir;
mod io;
mod open;
mod remove;
mod session;
mod socket;
mod walk;
mod xattr;

pub use open::{Created, Opened};
pub use session::Mounted;
pub use socket::{Accepted, Bound};
pub use walk::Walked;

use super::Error;
use crate::codec::{SizedString, StringArrayBuf};
use crate::{Errno, Mid};

/// A name that goes into a message.
fn name(mid: Mid, bytes: &[u8]) -> Result<SizedString<'_>, Error> {
    SizedString::new(bytes)
        .ok_or_else(|| Error::refused(mid, Errno::ENAMETOOLONG, "the name or value is longer than a length can say"))
}

/// Components that go into a message.
fn path(mid: Mid, components: &[&[u8]]) -> Result<StringArrayBuf, Error> {
    StringArrayBuf::new(components.iter().copied()).ok_or_else(|| {
        Error::refused(mid, Errno::ENAMETOOLONG, "the path, or a part of it, is longer than a length can say")
    })
}
