//! MkdirAt, MknodAt, SymlinkAt, LinkAt: a new name in a directory, and a control descriptor on it.

use std::sync::Arc;

use gofer_protocol::codec::{SizedString, decode};
use gofer_protocol::message::{LinkAtRequest, MkdirAtRequest, MknodAtRequest, SymlinkAtRequest};
use gofer_protocol::record::{FileType, Inode};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{Context, Reply, or_undo, publish, served_type};
use crate::fd::ControlFd;
use crate::host::remove::Removal;
use crate::host::{FileName, attr, create, open};
use crate::tree::RenameShared;

/// Creates a directory.
pub(crate) fn mkdir_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let MkdirAtRequest { create, name } = decode(payload)?;
    let new = New::in_directory(cx, create.dir_fd, name)?;
    new.make(cx, reply, Owner::Set(create.uid, create.gid), Removal::Directory, |dir, name| {
        create::mkdir(dir, name, create.mode)
    })
}

/// Creates a regular file, or the character device 0:0. `EPERM` for everything else: clients then make their own.
pub(crate) fn mknod_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let MknodAtRequest { create, minor, major, name } = decode(payload)?;
    let new = New::in_directory(cx, create.dir_fd, name)?;
    new.make(cx, reply, Owner::Set(create.uid, create.gid), Removal::File, |dir, name| {
        create::mknod(dir, name, create.mode, (major, minor))
    })
}

/// Creates a symbolic link. The target is not looked at, but for NUL bytes, which no host can store.
pub(crate) fn symlink_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let SymlinkAtRequest { dir_fd, uid, gid, name, target } = decode(payload)?;
    let new = New::in_directory(cx, dir_fd, name)?;
    new.make(cx, reply, Owner::Set(uid, gid), Removal::File, |dir, name| create::symlink(target.as_bytes(), dir, name))
}

/// Creates a hard link to what a control descriptor holds. `EPERM` for a directory, `EINVAL` if it was removed.
pub(crate) fn link_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let LinkAtRequest { dir_fd, target, name } = decode(payload)?;
    let new = New::in_directory(cx, dir_fd, name)?;
    let target = cx.connection.fds().control(target)?;
    if target.file_type() == FileType::Directory {
        return Err(Errno::EPERM);
    }
    // Read(target), beside Write(directory), would only keep its deleted mark as it is. The link goes by descriptor,
    // so a removal in between ends in a link or in ENOENT, and neither is to another file.
    target.not_deleted()?;
    new.make(cx, reply, Owner::Keep, Removal::File, |dir, name| create::link(cx.place, &*target, dir, name))
}

/// Whether what was made gets an owner.
#[derive(Clone, Copy)]
enum Owner {
    Keep,
    Set(Uid, Gid),
}

/// A name that is about to exist.
struct New<'n> {
    dir: Arc<ControlFd>,
    name: FileName<'n>,
}

impl<'n> New<'n> {
    fn in_directory(cx: &Context<'_>, dir: FdId, name: SizedString<'n>) -> Result<Self, Errno> {
        let name = FileName::try_from(name)?;
        let dir = cx.connection.fds().control(dir)?;
        dir.directory()?;
        Ok(Self { dir, name })
    }

    /// Makes the name with `create`, and whatever fails after that removes it again.
    fn make(
        &self,
        cx: &Context<'_>,
        reply: &mut Reply,
        owner: Owner,
        undo: Removal,
        create: impl FnOnce(&ControlFd, FileName<'_>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        cx.connection.fds().room_for(1)?;
        let positions = cx.tree().shared();
        let _guarantee = self.dir.node().write(&positions);
        self.dir.not_deleted()?;
        create(&self.dir, self.name)?;
        let child = or_undo(self.publish(cx, owner, &positions), &self.dir, self.name, undo)?;
        reply.put(&child);
        Ok(())
    }

    fn publish(&self, cx: &Context<'_>, owner: Owner, positions: &RenameShared<'_>) -> Result<Inode, Errno> {
        let host = open::open_child(&*self.dir, self.name)?;
        if let Owner::Set(uid, gid) = owner {
            attr::set_owner(&host, uid, gid)?;
        }
        let stat = attr::stat(&host)?;
        let node = cx.tree().child((self.dir.node(), self.name), positions);
        publish(cx, Arc::new(ControlFd::new(node, host, served_type(&stat)?)), stat)
    }
}
