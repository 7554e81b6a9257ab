//! FStat, SetStat, FStatFS.

use gofer_protocol::codec::decode;
use gofer_protocol::message::{FStatFsRequest, FStatRequest, SetStatReply, SetStatRequest};
use gofer_protocol::record::{FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, Gid, Uid};

use super::{Context, Reply};
use crate::fd::{ControlFd, Fd};
use crate::host::attr;

/// Attributes of a control or open descriptor; `EINVAL` for a bound socket.
pub(crate) fn fstat(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: FStatRequest = decode(payload)?;
    let fd = cx.connection.fds().find(request.fd)?;
    let stat = match &fd {
        Fd::Control(control) => {
            let _guarantee = control.node().read_alone();
            attr::stat(&**control)?
        }
        Fd::Open(open) => {
            let _guarantee = open.control().node().read_alone();
            attr::stat(&**open)?
        }
        Fd::Bound(_) => return Err(Errno::EINVAL),
    };
    reply.put(&stat);
    Ok(())
}

/// Changes attributes; one that fails does not keep the others from being tried, and the reply says which did.
///
/// `EPERM`, and nothing changed, for a mask with anything that cannot be set.
pub(crate) fn set_stat(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: SetStatRequest = decode(payload)?;
    let control = cx.connection.fds().control(request.fd)?;
    if !StatxMask::SETTABLE.contains(request.mask) {
        return Err(Errno::EPERM);
    }
    let _guarantee = control.node().write_alone();
    let mut outcome = SetStatReply { failure_mask: StatxMask::default(), failure_errno: 0 };
    // The owner last: chown(2) clears setuid and setgid, which the mode may just have set.
    for (attribute, apply) in ATTRIBUTES {
        let wanted = request.mask.and(attribute);
        if wanted.0 == 0 {
            continue;
        }
        if let Err(errno) = apply(cx, &control, &request) {
            outcome.failure_mask = outcome.failure_mask.or(wanted);
            outcome.failure_errno = errno.raw();
        }
    }
    reply.put(&outcome);
    Ok(())
}

type Apply = fn(&Context<'_>, &ControlFd, &SetStatRequest) -> Result<(), Errno>;

/// In order of application; bits that are applied together also fail together.
const ATTRIBUTES: [(StatxMask, Apply); 4] = [
    (StatxMask::MODE, set_mode),
    (StatxMask::SIZE, set_size),
    (StatxMask::ATIME.or(StatxMask::MTIME), set_times),
    (StatxMask::UID.or(StatxMask::GID), set_owner),
];

fn set_mode(cx: &Context<'_>, control: &ControlFd, request: &SetStatRequest) -> Result<(), Errno> {
    match control.file_type() {
        FileType::Symlink => Err(Errno::EOPNOTSUPP),
        _ => attr::set_mode(cx.place, control, request.mode),
    }
}

fn set_size(cx: &Context<'_>, control: &ControlFd, request: &SetStatRequest) -> Result<(), Errno> {
    if i64::try_from(request.size).is_err() {
        return Err(Errno::EINVAL);
    }
    match control.file_type() {
        FileType::Regular => attr::set_size(control.writable(cx.place)?, request.size),
        FileType::Directory => Err(Errno::EISDIR),
        FileType::Symlink => Err(Errno::ELOOP),
        FileType::Socket => Err(Errno::ENXIO),
        // As truncate(2) has it. A device is not opened to find that out: opening it may be forbidden, or do something.
        FileType::Fifo | FileType::CharDevice | FileType::BlockDevice => Err(Errno::EINVAL),
    }
}

fn set_times(cx: &Context<'_>, control: &ControlFd, request: &SetStatRequest) -> Result<(), Errno> {
    let wanted = |bit, time| if request.mask.contains(bit) { time } else { Timespec::OMIT };
    let atime = wanted(StatxMask::ATIME, request.atime);
    let mtime = wanted(StatxMask::MTIME, request.mtime);
    attr::set_times(cx.place, control, atime, mtime)
}

fn set_owner(_: &Context<'_>, control: &ControlFd, request: &SetStatRequest) -> Result<(), Errno> {
    let uid = if request.mask.contains(StatxMask::UID) { request.uid } else { Uid::NONE };
    let gid = if request.mask.contains(StatxMask::GID) { request.gid } else { Gid::NONE };
    attr::set_owner(control, uid, gid)
}

/// Attributes of the file system; for control descriptors only.
pub(crate) fn fstat_fs(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: FStatFsRequest = decode(payload)?;
    let control = cx.connection.fds().control(request.fd)?;
    let _guarantee = control.node().read_alone();
    reply.put(&attr::stat_fs(&*control)?);
    Ok(())
}
