//! Attributes: of held files, and of a directory's children without opening them.

use std::os::fd::AsFd;

use gofer_protocol::record::{FileMode, StatFs, Statx, StatxMask, Timespec, Timestamp};
use gofer_protocol::{Errno, Gid, Uid};
use rustix::fs::{AtFlags, Mode, StatxFlags, Timestamps};

use super::{FileName, Place};

/// The attributes that clients know.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Attributes of what `file` holds.
pub(crate) fn stat(file: impl AsFd) -> Result<Statx, Errno> {
    Ok(record(&rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, WANTED)?))
}

/// Attributes of one child; of a symlink itself, and without mounting anything.
pub(crate) fn stat_child(dir: impl AsFd, name: FileName<'_>) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    Ok(record(&rustix::fs::statx(dir, name.as_bytes(), flags, WANTED)?))
}

fn record(host: &rustix::fs::Statx) -> Statx {
    let timestamp = |time: rustix::fs::StatxTimestamp| Timestamp::new(time.tv_sec, time.tv_nsec);
    let mut stat = Statx::default();
    stat.mask = StatxMask(host.stx_mask);
    stat.blksize = host.stx_blksize;
    stat.nlink = host.stx_nlink;
    stat.uid = host.stx_uid;
    stat.gid = host.stx_gid;
    stat.mode = FileMode(host.stx_mode);
    stat.ino = host.stx_ino;
    stat.size = host.stx_size;
    stat.blocks = host.stx_blocks;
    stat.atime = timestamp(host.stx_atime);
    stat.btime = timestamp(host.stx_btime);
    stat.ctime = timestamp(host.stx_ctime);
    stat.mtime = timestamp(host.stx_mtime);
    stat.rdev_major = host.stx_rdev_major;
    stat.rdev_minor = host.stx_rdev_minor;
    stat.dev_major = host.stx_dev_major;
    stat.dev_minor = host.stx_dev_minor;
    stat
}

/// Attributes of the file system that `file` lives on.
pub(crate) fn stat_fs(file: impl AsFd) -> Result<StatFs, Errno> {
    let host = rustix::fs::fstatfs(file)?;
    Ok(StatFs {
        fs_type: u64::try_from(host.f_type).unwrap_or(0),
        block_size: host.f_bsize,
        blocks: host.f_blocks,
        blocks_free: host.f_bfree,
        blocks_available: host.f_bavail,
        files: host.f_files,
        files_free: host.f_ffree,
        name_length: u64::try_from(host.f_namelen).unwrap_or(0),
    })
}

/// Sets permissions. The caller has made sure that `file` is no symlink, which has none.
pub(crate) fn set_mode(place: &Place<'_>, file: impl AsFd, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode & 0o7777);
    // fchmod(2) refuses O_PATH descriptors.
    Ok(rustix::fs::chmodat(place.proc_fd(), place.name_of(file), mode, AtFlags::empty())?)
}

/// Sets the size, through a descriptor open for writing.
pub(crate) fn set_size(file: impl AsFd, size: u64) -> Result<(), Errno> {
    Ok(rustix::fs::ftruncate(file, size)?)
}

/// Sets the times of any kind of file, a symlink itself included.
pub(crate) fn set_times(place: &Place<'_>, file: impl AsFd, atime: Timespec, mtime: Timespec) -> Result<(), Errno> {
    let timespec = |time: Timespec| rustix::fs::Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds };
    let times = Timestamps { last_access: timespec(atime), last_modification: timespec(mtime) };
    // Through /proc, since AT_EMPTY_PATH is younger than the kernels that must do.
    Ok(rustix::fs::utimensat(place.proc_fd(), place.name_of(file), &times, AtFlags::empty())?)
}

/// Sets the owner of any kind of file. Does nothing, so keeps setuid and setgid, when both ids are "none".
pub(crate) fn set_owner(file: impl AsFd, uid: Uid, gid: Gid) -> Result<(), Errno> {
    let uid = (uid != Uid::NONE).then(|| rustix::fs::Uid::from_raw(uid.0));
    let gid = (gid != Gid::NONE).then(|| rustix::fs::Gid::from_raw(gid.0));
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    Ok(rustix::fs::chownat(file, c"", uid, gid, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?)
}
