//! FGetXattr, FSetXattr, FListXattr, FRemoveXattr.

use std::sync::Arc;

use gofer_protocol::codec::{SizedString, StringArrayBuf, decode};
use gofer_protocol::message::{
    FGetXattrReply, FGetXattrRequest, FListXattrReply, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest,
};
use gofer_protocol::{Errno, FdId};
use rustix::fs::XattrFlags;

use super::{Context, Reply};
use crate::fd::ControlFd;
use crate::host::xattr;

/// Largest value and longest list that Linux has (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const LONGEST: usize = 65_536;

/// An attribute's value, whole; a size of 0 asks for any. `ERANGE` if it is longer than the client or the wire takes.
pub(crate) fn fget_xattr(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: FGetXattrRequest<'_> = decode(payload)?;
    let name = Name::new(request.name)?;
    let control = existing(cx, request.fd)?;
    let name = name.to_read()?;
    let positions = cx.tree().shared();
    let _guarantee = control.node().read(&positions);
    control.not_deleted()?;
    with_buffer(wanted(request.buf_size.into()), |buffer| {
        let value = xattr::value(cx.place, &*control, name, buffer)?;
        reply.put(&FGetXattrReply { value: SizedString::new(value).ok_or(Errno::ERANGE)? });
        Ok(())
    })
}

/// Sets an attribute; `flags` as in setxattr(2).
pub(crate) fn fset_xattr(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: FSetXattrRequest<'_> = decode(payload)?;
    let name = Name::new(request.name)?;
    let control = existing(cx, request.fd)?;
    let name = name.to_write()?;
    let flags = XattrFlags::from_bits(request.flags).ok_or(Errno::EINVAL)?;
    let positions = cx.tree().shared();
    let _guarantee = control.node().write(&positions);
    control.not_deleted()?;
    xattr::set(cx.place, &*control, name, request.value.as_bytes(), flags)
}

/// The names of the attributes that a client may read. `ERANGE` if they are longer than the client takes.
pub(crate) fn flist_xattr(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: FListXattrRequest = decode(payload)?;
    let control = existing(cx, request.fd)?;
    let positions = cx.tree().shared();
    let _guarantee = control.node().read(&positions);
    control.not_deleted()?;
    with_buffer(wanted(request.size), |buffer| {
        let list = xattr::names(cx.place, &*control, buffer)?;
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !is_private(name));
        let names = StringArrayBuf::new(names).ok_or(Errno::ERANGE)?;
        reply.put(&FListXattrReply { names: names.as_array() });
        Ok(())
    })
}

/// Removes an attribute.
pub(crate) fn fremove_xattr(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: FRemoveXattrRequest<'_> = decode(payload)?;
    let name = Name::new(request.name)?;
    let control = existing(cx, request.fd)?;
    let name = name.to_write()?;
    let positions = cx.tree().shared();
    let _guarantee = control.node().write(&positions);
    control.not_deleted()?;
    xattr::remove(cx.place, &*control, name)
}

/// `EINVAL` if the server removed the file, before policy has a say.
fn existing(cx: &Context<'_>, fd: FdId) -> Result<Arc<ControlFd>, Errno> {
    let control = cx.connection.fds().control(fd)?;
    control.not_deleted()?;
    Ok(control)
}

/// The buffer for a client that takes `size` bytes; 0 and what no attribute reaches mean any.
fn wanted(size: u64) -> usize {
    match usize::try_from(size) {
        Ok(size @ 1..LONGEST) => size,
        _ => LONGEST,
    }
}

/// Calls `read` with a buffer of `size` bytes, but tries one on the stack first: few attributes are larger.
fn with_buffer(size: usize, mut read: impl FnMut(&mut [u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    let mut small = [0; 1024];
    match small.get_mut(..size) {
        Some(buffer) => read(buffer),
        None => match read(&mut small) {
            Err(Errno::ERANGE) => read(&mut vec![0; size]),
            done => done,
        },
    }
}

/// An attribute's name without NUL bytes.
struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    fn new(name: SizedString<'a>) -> Result<Self, Errno> {
        let name = name.as_bytes();
        if name.contains(&0) { Err(Errno::EINVAL) } else { Ok(Self(name)) }
    }

    /// `EOPNOTSUPP` for attributes with a meaning to the host's kernel, such as access control lists.
    fn to_read(&self) -> Result<&'a [u8], Errno> {
        if is_private(self.0) { Err(Errno::EOPNOTSUPP) } else { Ok(self.0) }
    }

    /// `EOPNOTSUPP` for these, and for security labels and capabilities, which clients may only read.
    fn to_write(&self) -> Result<&'a [u8], Errno> {
        let name = self.to_read()?;
        if name.starts_with(b"security.") { Err(Errno::EOPNOTSUPP) } else { Ok(name) }
    }
}

fn is_private(name: &[u8]) -> bool {
    name.starts_with(b"system.") || name.starts_with(b"trusted.")
}
