//! Walk, WalkStat, ReadLinkAt.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use gofer_protocol::Errno;
use gofer_protocol::codec::{SizedString, decode};
use gofer_protocol::message::{ReadLinkAtReply, ReadLinkAtRequest, WalkRequest, WalkStatRequest, WalkStatus};
use gofer_protocol::record::{FileType, Inode, Statx};

use super::{Context, Reply, served_type};
use crate::fd::{ControlFd, Fd};
use crate::host::{FileName, attr, create, open};
use crate::tree::RenameShared;

/// Walks from a directory, one component after the other, and hands out a control descriptor for each.
///
/// Ends early, without error, at the first symbolic link and at a component that does not exist. An error hands out
/// nothing: the descriptors get their numbers only when the whole walk is done.
pub(crate) fn walk(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: WalkRequest<'_> = decode(payload)?;
    let start = cx.connection.fds().control(request.dir_fd)?;
    start.directory()?;
    fits(cx, 3, request.path.len(), size_of::<Inode>())?;

    let positions = cx.tree().shared();
    let mut walked: Vec<(Arc<ControlFd>, Statx)> = Vec::new();
    let mut status = WalkStatus::SUCCESS;
    for name in request.path.iter() {
        let name = FileName::new(name)?;
        let current = walked.last().map_or(&start, |(control, _)| control);
        match step(cx, current, name, &positions)? {
            Step::To(control, stat) => {
                walked.push((control, stat));
                // They are not in the table yet, but hold descriptors of the host: a long walk must not hold too many.
                cx.connection.fds().room_for(walked.len())?;
            }
            Step::End(why) => {
                status = why;
                break;
            }
        }
    }
    hand_out(cx, &walked, status, reply)
}

/// What one step of a walk came to.
enum Step {
    To(Arc<ControlFd>, Statx),
    End(WalkStatus),
}

fn step(
    cx: &Context<'_>,
    from: &Arc<ControlFd>,
    name: FileName<'_>,
    positions: &RenameShared<'_>,
) -> Result<Step, Errno> {
    match from.file_type() {
        FileType::Directory => {}
        FileType::Symlink => return Ok(Step::End(WalkStatus::SYMLINK)),
        _ => return Err(Errno::ENOTDIR),
    }
    let _guarantee = from.node().read(positions);
    if from.node().is_deleted() {
        return Ok(Step::End(WalkStatus::MISSING));
    }
    let host = match open::open_child(&**from, name) {
        Ok(host) => host,
        Err(Errno::ENOENT) => return Ok(Step::End(WalkStatus::MISSING)),
        Err(errno) => return Err(errno),
    };
    let stat = attr::stat(&host)?;
    let file_type = served_type(&stat)?;
    let node = cx.tree().child((from.node(), name), positions);
    Ok(Step::To(Arc::new(ControlFd::new(node, host, file_type)), stat))
}

/// Encodes a WalkReply as the numbers are given: the client may use one before it reads the reply, so `walked` keeps a
/// reference of its own until then.
fn hand_out(
    cx: &Context<'_>,
    walked: &[(Arc<ControlFd>, Statx)],
    status: WalkStatus,
    reply: &mut Reply,
) -> Result<(), Errno> {
    reply.put(&status);
    reply.put(&u16::try_from(walked.len()).map_err(|_| Errno::EIO)?);
    let mut fds: Vec<Fd> = walked.iter().map(|(control, _)| Fd::Control(Arc::clone(control))).collect();
    let mut stats = walked.iter().map(|(_, stat)| *stat);
    cx.connection.fds().insert_all(&mut fds, |control_fd| {
        if let Some(stat) = stats.next() {
            reply.put(&Inode { control_fd, stat });
        }
    })
}

/// Attributes along a path, without descriptors. The first component may be empty: the start itself.
pub(crate) fn walk_stat(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: WalkStatRequest<'_> = decode(payload)?;
    let mut names = request.path.iter().peekable();
    let itself = names.next_if(|name| name.is_empty()).is_some();
    let names = names.map(FileName::new).collect::<Result<Vec<_>, _>>()?;
    let start = cx.connection.fds().control(request.dir_fd)?;
    if !names.is_empty() {
        start.directory()?;
    }
    fits(cx, 2, request.path.len(), size_of::<Statx>())?;

    let positions = cx.tree().shared();
    let _guarantee = start.node().read(&positions);
    reply.put(&0u16);
    let mut count = 0;
    if itself {
        reply.put(&attr::stat(&*start)?);
        count += 1;
    }
    count += stats_below(&start, &names, reply)?;
    patch_count(reply, count)
}

/// Appends the attributes of each component that exists, up to the first symbolic link. Descendants are not locked:
/// each step is one component below a held directory, wherever that is by now.
fn stats_below(start: &ControlFd, names: &[FileName<'_>], reply: &mut Reply) -> Result<u16, Errno> {
    let mut count = 0;
    let mut held = None;
    for (at, name) in names.iter().enumerate() {
        let dir = held.as_ref().map_or_else(|| start.as_fd(), AsFd::as_fd);
        let last = at + 1 == names.len();
        let child = if last { attr::stat_child(dir, *name).map(|stat| (None, stat)) } else { enter(dir, *name) };
        let (next, stat) = match child {
            Ok(found) => found,
            Err(Errno::ENOENT) => break,
            Err(errno) => return Err(errno),
        };
        let file_type = served_type(&stat)?;
        reply.put(&stat);
        count += 1;
        match file_type {
            FileType::Symlink => break,
            FileType::Directory => held = next,
            _ if last => break,
            _ => return Err(Errno::ENOTDIR),
        }
    }
    Ok(count)
}

fn enter(dir: impl AsFd, name: FileName<'_>) -> Result<(Option<OwnedFd>, Statx), Errno> {
    let child = open::open_child(dir, name)?;
    let stat = attr::stat(&child)?;
    Ok((Some(child), stat))
}

fn patch_count(reply: &mut Reply, count: u16) -> Result<(), Errno> {
    reply.head.get_mut(..2).ok_or(Errno::EIO)?.copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// `EIO` if the longest possible reply would not fit in a message.
fn fits(cx: &Context<'_>, fixed: usize, components: usize, each: usize) -> Result<(), Errno> {
    if fixed + components * each > cx.connection.max_message_size() { Err(Errno::EIO) } else { Ok(()) }
}

/// The target of a symbolic link; `EINVAL` for anything else, and for a link that the server removed.
pub(crate) fn read_link_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    /// Longer than what Linux file systems store, `PATH_MAX`.
    const BUFFER: usize = 4096 + 1;
    let request: ReadLinkAtRequest = decode(payload)?;
    let control = cx.connection.fds().control(request.fd)?;
    if control.file_type() != FileType::Symlink {
        return Err(Errno::EINVAL);
    }
    let _guarantee = control.node().read_alone();
    control.not_deleted()?;
    let mut buffer = [0; BUFFER];
    let target = create::read_link(&*control, &mut buffer)?;
    reply.put(&ReadLinkAtReply { target: SizedString::new(target).ok_or(Errno::ENOMEM)? });
    Ok(())
}
