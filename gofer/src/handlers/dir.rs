//! Getdents64.

use std::os::fd::AsFd;

use gofer_protocol::Errno;
use gofer_protocol::codec::decode;
use gofer_protocol::message::Getdents64Request;
use gofer_protocol::record::DirentsBuf;

use super::{Context, Reply};
use crate::host::dir::{self, Devices};

/// Lists a directory from where the open descriptor stands; a negative count rewinds it first.
///
/// `EINVAL` for a control descriptor or a deleted directory, `ENOTDIR` for another file.
pub(crate) fn getdents64(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: Getdents64Request = decode(payload)?;
    let open = cx.connection.fds().open(request.dir_fd)?;
    open.control().directory()?;
    let _guarantee = open.control().node().read_alone();
    open.control().not_deleted()?;
    let mut listing = open.listing();
    if request.count < 0 {
        dir::rewind(&*open)?;
    }
    let devices = *listing.get_or_insert_with(|| Devices::of(&*open));
    let limits = cx.connection.limits();
    let budget = usize::try_from(request.count.unsigned_abs()).unwrap_or(usize::MAX).min(limits.listing_bytes);
    let mut out = DirentsBuf::new(&mut reply.head, cx.connection.max_message_size());
    dir::list(open.as_fd(), budget, devices, &cx.connection.server().mounts, &mut out)
}
