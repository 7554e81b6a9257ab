//! Mount, Channel.

use std::sync::Arc;

use gofer_protocol::Errno;
use gofer_protocol::codec::Array;
use gofer_protocol::message::MountReply;

use super::{Context, Reply, publish, served_type};
use crate::fd::ControlFd;
use crate::host::{attr, open};
use crate::serve::SUPPORTED;

/// A control descriptor on the mount point; every Mount makes another.
///
/// `ENOENT` if the server removed the mount point, `EPERM` if it is of a type that is not served.
pub(crate) fn mount(cx: &Context<'_>, _: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let mount = cx.connection.mount();
    let positions = cx.tree().shared();
    let _guarantee = mount.node.read(&positions);
    if mount.node.is_deleted() {
        return Err(Errno::ENOENT);
    }
    let host = open::reopen_path(cx.place, &mount.host)?;
    let stat = attr::stat(&host)?;
    let control = Arc::new(ControlFd::new(Arc::clone(&mount.node), host, served_type(&stat)?));
    if cx.connection.policy().donate_mount_point {
        reply.fds.push(open::reopen_for_donation(cx.place, &*control)?);
    }
    let root = publish(cx, control, stat)?;
    let max_message_size = cx.connection.message_size();
    let supported = Array::new(&SUPPORTED).ok_or(Errno::EIO)?;
    reply.put(&MountReply { root, max_message_size, supported });
    Ok(())
}

/// One more communicator. `ENOMEM` at the limit, which dead channels count against; `ENOSYS` while closing.
pub(crate) fn channel(cx: &Context<'_>, _: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let (place, fds) = cx.connection.open_channel()?;
    reply.fds.extend(fds);
    reply.put(&place);
    Ok(())
}
