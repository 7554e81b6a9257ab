//! OpenAt, OpenCreateAt, Close.

use std::sync::Arc;

use gofer_protocol::Errno;
use gofer_protocol::codec::decode;
use gofer_protocol::message::{CloseRequest, OpenAtReply, OpenAtRequest, OpenCreateAtReply, OpenCreateAtRequest};
use gofer_protocol::record::{FileType, Inode};

use super::{Context, Reply, or_undo};
use crate::fd::{ControlFd, Fd, OpenFd};
use crate::host::open::{self, Access};
use crate::host::remove::Removal;
use crate::host::{FileName, attr};
use crate::{HostFifo, Policy};

/// Opens what a control descriptor names, deleted or not.
///
/// `EROFS` for a change on a read-only connection, `EISDIR` for one of a directory, `EINVAL` for a symbolic link,
/// `EPERM` where policy forbids the type.
pub(crate) fn open_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: OpenAtRequest = decode(payload)?;
    let access = Access::from_wire(request.flags);
    let policy = cx.connection.policy();
    if policy.read_only && access.changes_file() {
        return Err(Errno::EROFS);
    }
    let fds = cx.connection.fds();
    let control = fds.control(request.fd)?;
    if control.file_type() == FileType::Directory && access.changes_file() {
        return Err(Errno::EISDIR);
    }
    may_open(control.file_type(), policy)?;
    fds.room_for(1)?;

    let guarantee = control.node().read_alone();
    let host = open::reopen(cx.place, &*control, access)?;
    drop(guarantee);
    match donation(cx, &control) {
        Donation::None => {}
        Donation::BestEffort => reply.fds.extend(open::duplicate(&host)),
        Donation::Required => reply.fds.push(open::duplicate(&host)?),
    }
    let open_fd = fds.insert(Fd::Open(Arc::new(OpenFd::new(control.clone(), host, access))))?;
    reply.put(&OpenAtReply { open_fd });
    Ok(())
}

fn may_open(file_type: FileType, policy: &Policy) -> Result<(), Errno> {
    match file_type {
        FileType::Symlink => Err(Errno::EINVAL),
        FileType::Fifo if policy.host_fifo != HostFifo::Open => Err(Errno::EPERM),
        FileType::Socket if !policy.host_sockets.open() => Err(Errno::EPERM),
        FileType::CharDevice if !policy.char_devices.open() => Err(Errno::EPERM),
        _ => Ok(()),
    }
}

/// Whether a client gets the host's descriptor along with an open one.
enum Donation {
    None,
    /// Without it the client reads and writes through the server.
    BestEffort,
    /// Without it the open descriptor would be of no use.
    Required,
}

fn donation(cx: &Context<'_>, control: &ControlFd) -> Donation {
    let mount_point =
        cx.connection.policy().donate_mount_point && Arc::ptr_eq(control.node(), &cx.connection.mount().node);
    match control.file_type() {
        FileType::Regular => Donation::BestEffort,
        FileType::Fifo | FileType::CharDevice => Donation::Required,
        _ if mount_point => Donation::Required,
        _ => Donation::None,
    }
}

/// Creates a regular file, which must not exist, and opens it.
///
/// `ENOTDIR`, `EINVAL` for a deleted directory, then what the host says: `EEXIST` also for a symbolic link.
pub(crate) fn open_create_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: OpenCreateAtRequest<'_> = decode(payload)?;
    let access = Access::from_wire(request.flags).without_truncation();
    let name = FileName::try_from(request.name)?;
    let fds = cx.connection.fds();
    let dir = fds.control(request.create.dir_fd)?;
    dir.directory()?;
    fds.room_for(2)?;

    let positions = cx.tree().shared();
    let _guarantee = dir.node().write(&positions);
    dir.not_deleted()?;
    let host = open::create_file(&*dir, name, access, request.create.mode)?;
    let made = || {
        attr::set_owner(&host, request.create.uid, request.create.gid)?;
        let stat = attr::stat(&host)?;
        let path = open::reopen_path(cx.place, &host)?;
        let donated = open::duplicate(&host).ok();
        let node = cx.tree().child((dir.node(), name), &positions);
        let control = Arc::new(ControlFd::new(node, path, FileType::Regular));
        let open = Arc::new(OpenFd::new(Arc::clone(&control), host, access));
        let (control_fd, open_fd) = fds.insert_pair(Fd::Control(control), Fd::Open(open))?;
        Ok((OpenCreateAtReply { child: Inode { control_fd, stat }, open_fd }, donated))
    };
    let (created, donated) = or_undo(made(), &dir, name, Removal::File)?;
    reply.fds.extend(donated);
    reply.put(&created);
    Ok(())
}

/// Gives numbers back, of any kind; unknown ones are ignored.
pub(crate) fn close(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: CloseRequest<'_> = decode(payload)?;
    cx.connection.fds().remove_all(request.fds.iter());
    Ok(())
}
