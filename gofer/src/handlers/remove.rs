//! UnlinkAt, RenameAt, RenameAt2.

use std::sync::Arc;

use gofer_protocol::codec::{SizedString, decode};
use gofer_protocol::message::{RenameAt2Request, RenameAtRequest, UnlinkAtRequest};
use gofer_protocol::{Errno, FdId};

use super::{Context, Reply};
use crate::fd::ControlFd;
use crate::host::remove::{Collision, Removal, rename, unlink};
use crate::host::{FileName, attr};

const AT_REMOVEDIR: u32 = 0x200;
const RENAME_NOREPLACE: u32 = 1;
const RENAME_EXCHANGE: u32 = 2;

/// Removes a name. `EINVAL` for flags other than `AT_REMOVEDIR` and for a deleted directory.
pub(crate) fn unlink_at(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: UnlinkAtRequest<'_> = decode(payload)?;
    let name = FileName::try_from(request.name)?;
    let dir = cx.connection.fds().control(request.dir_fd)?;
    dir.directory()?;
    let removal = match request.flags {
        0 => Removal::File,
        AT_REMOVEDIR => Removal::Directory,
        _ => return Err(Errno::EINVAL),
    };
    let positions = cx.tree().shared();
    // Before the guarantee, so that it is dropped after: it may be the last reference to the node.
    let child = cx.tree().tracked_child((dir.node(), name), &positions);
    let guarantee = dir.node().write(&positions);
    dir.not_deleted()?;
    let _child_guarantee = child.as_ref().map(|child| child.write(&positions));
    unlink(&*dir, name, removal)?;
    cx.tree().removed((dir.node(), name), &guarantee);
    Ok(())
}

/// Moves a name, replacing what has the new one.
pub(crate) fn rename_at(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let RenameAtRequest { old_dir, new_dir, old_name, new_name } = decode(payload)?;
    move_name(cx, (old_dir, old_name), (new_dir, new_name), 0)
}

/// Moves a name; `EINVAL` for flags other than `RENAME_NOREPLACE` or `RENAME_EXCHANGE`.
pub(crate) fn rename_at2(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let RenameAt2Request { old_dir, new_dir, old_name, new_name, flags } = decode(payload)?;
    move_name(cx, (old_dir, old_name), (new_dir, new_name), flags)
}

/// One end of a rename as the client says it.
type End<'n> = (FdId, SizedString<'n>);

fn move_name(cx: &Context<'_>, old: End<'_>, new: End<'_>, flags: u32) -> Result<(), Errno> {
    let (old_name, new_name) = (FileName::try_from(old.1)?, FileName::try_from(new.1)?);
    let fds = cx.connection.fds();
    let (old_dir, new_dir) = (fds.control(old.0)?, fds.control(new.0)?);
    old_dir.directory()?;
    new_dir.directory()?;

    let positions = cx.tree().exclusive();
    old_dir.not_deleted()?;
    new_dir.not_deleted()?;
    // The shortcut precedes the flags, and does not ask whether the name exists.
    if Arc::ptr_eq(old_dir.node(), new_dir.node()) && old_name == new_name {
        return Ok(());
    }
    let collision = match flags {
        0 => Collision::Replace,
        RENAME_NOREPLACE => Collision::Refuse,
        RENAME_EXCHANGE => Collision::Exchange,
        _ => return Err(Errno::EINVAL),
    };
    rename((&*old_dir, old_name), (&*new_dir, new_name), collision)?;
    if moved((&old_dir, old_name), (&new_dir, new_name)) {
        cx.tree().renamed((old_dir.node(), old_name), (new_dir.node(), new_name), collision, &positions);
    }
    Ok(())
}

/// Whether a rename that succeeded moved anything: between two links of one inode the host does nothing (rename(2)), and
/// what was exchanged would not be told apart.
fn moved(old: (&ControlFd, FileName<'_>), new: (&ControlFd, FileName<'_>)) -> bool {
    let identity = |(dir, name): (&ControlFd, FileName<'_>)| {
        attr::stat_child(dir, name).map(|stat| (stat.ino, stat.dev_major, stat.dev_minor))
    };
    match identity(old) {
        Ok(still_there) => identity(new) != Ok(still_there),
        Err(_) => true,
    }
}
