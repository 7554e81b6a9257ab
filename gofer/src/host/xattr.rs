//! Extended attributes of held files, of any type: through the descriptor's entry in `/proc/self/fd`, because the
//! calls by descriptor refuse `O_PATH`.

use std::os::fd::AsFd;

use gofer_protocol::Errno;
use rustix::fs::XattrFlags;

use super::Place;

/// The attribute's value, in `buffer`. `ERANGE` if it does not fit.
pub(crate) fn value<'b>(
    place: &Place<'_>,
    file: impl AsFd,
    name: &[u8],
    buffer: &'b mut [u8],
) -> Result<&'b [u8], Errno> {
    let len = rustix::fs::getxattr(place.name_of(file), name, &mut *buffer)?;
    buffer.get(..len).ok_or(Errno::ERANGE)
}

/// Sets an attribute.
pub(crate) fn set(
    place: &Place<'_>,
    file: impl AsFd,
    name: &[u8],
    value: &[u8],
    flags: XattrFlags,
) -> Result<(), Errno> {
    Ok(rustix::fs::setxattr(place.name_of(file), name, value, flags)?)
}

/// The attributes' names, each with a NUL behind it, in `buffer`. `ERANGE` if they do not fit.
pub(crate) fn names<'b>(place: &Place<'_>, file: impl AsFd, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let len = rustix::fs::listxattr(place.name_of(file), &mut *buffer)?;
    buffer.get(..len).ok_or(Errno::ERANGE)
}

/// Removes an attribute.
pub(crate) fn remove(place: &Place<'_>, file: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    Ok(rustix::fs::removexattr(place.name_of(file), name)?)
}
