//! Listing a directory: one call for many entries, and none for each.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use gofer_protocol::Errno;
use gofer_protocol::codec::SizedString;
use gofer_protocol::record::{Dirent, DirentsBuf};
use rustix::fs::{AtFlags, RawDir, RawDirEntry, SeekFrom, StatxFlags};

use super::mounts::{MountNames, MountTable};

/// Bytes that one `getdents64(2)` asks for at most. On the stack, so bounded.
const BUFFER: usize = 8192;

/// Host records are at least this long, and a multiple of 8.
const SHORTEST_RECORD: usize = 24;

/// Longest entry on the wire for the shortest record: 27 bytes and a name of four.
const LONGEST_PER_SHORTEST: usize = Dirent::FIXED_LEN + 4;

/// Reads in a row that may yield nothing but dropped entries. A FUSE server can say `.` for ever.
const MOST_FRUITLESS: u32 = 256;

/// A buffer of this size holds any record with a name of up to 255 bytes.
const ANY_USUAL_RECORD: usize = 280;

/// How the entries' device numbers are learned: fixed for a directory that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    /// The directory's own, but for mount points, on the mount with this id.
    Shared { major: u32, minor: u32, mount: u64 },
    /// Each entry may have its own: ask for every one.
    Own,
}

impl Devices {
    /// Asks the file system of `dir` which of the two it is.
    pub(crate) fn of(dir: impl AsFd) -> Self {
        Self::shared(dir).unwrap_or(Self::Own)
    }

    fn shared(dir: impl AsFd) -> Option<Self> {
        const MOUNT_ID: StatxFlags = StatxFlags::MNT_ID;
        let fs = rustix::fs::fstatfs(&dir).ok()?;
        if !one_device_per_file_system(u64::try_from(fs.f_type).ok()?) {
            return None;
        }
        let stat = rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, MOUNT_ID).ok()?;
        // Linux 5.8 and later tell.
        (stat.stx_mask & MOUNT_ID.bits() != 0).then_some(Self::Shared {
            major: stat.stx_dev_major,
            minor: stat.stx_dev_minor,
            mount: stat.stx_mnt_id,
        })
    }
}

/// File systems whose inodes all report the device of their superblock (magic numbers: `statfs(2)`).
///
/// Not btrfs, where each subvolume has its own; not overlayfs, whose files may report a lower layer's; not FUSE, NFS
/// and other remote ones, where the server decides.
fn one_device_per_file_system(magic: u64) -> bool {
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    const F2FS: u64 = 0xf2f5_2010;
    const SQUASHFS: u64 = 0x7371_7368;
    const EROFS: u64 = 0xe0f5_e1e2;
    const ISOFS: u64 = 0x9660;
    matches!(magic, EXT | XFS | TMPFS | RAMFS | F2FS | SQUASHFS | EROFS | ISOFS)
}

/// Goes back to the first entry.
pub(crate) fn rewind(dir: impl AsFd) -> Result<(), Errno> {
    rustix::fs::seek(dir, SeekFrom::Start(0))?;
    Ok(())
}

/// Reads entries from where `dir` stands until the records come to `budget` bytes or the directory ends.
///
/// Everything that is read is written: no entry is lost at the edge of a reply, because no more is asked for than is
/// sure to fit. `.` and `..` are dropped and do not count.
///
/// # Errors
/// Those of the host.
pub(crate) fn list(
    dir: BorrowedFd<'_>,
    budget: usize,
    devices: Devices,
    mounts: &MountTable,
    out: &mut DirentsBuf<'_>,
) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let names = mounts.current();
    let mut used = 0;
    let mut fruitless = 0;
    while used < budget {
        let wanted = (budget - used).min(BUFFER).min(sure_to_fit(out));
        let before = out.len();
        match read_once(dir, buffer.get_mut(..wanted).unwrap_or_default(), devices, names.as_deref(), out) {
            Ok(None) => return Ok(()),
            Ok(Some(bytes)) => used += bytes,
            // The next record is longer than what is left.
            Err(Errno::EINVAL) if wanted < ANY_USUAL_RECORD || !out.is_empty() => return Ok(()),
            // A name beyond 255 bytes, which FUSE allows, needs more than the client meant to spend; to answer with
            // nothing would mean "end of directory".
            Err(Errno::EINVAL) if wanted < BUFFER && out.room() > BUFFER * 2 => {
                if read_once(dir, &mut buffer, devices, names.as_deref(), out)?.is_none() || out.len() > before {
                    return Ok(());
                }
            }
            Err(errno) => return Err(errno),
        }
        fruitless = if out.len() == before { fruitless + 1 } else { 0 };
        if fruitless > MOST_FRUITLESS {
            return if out.is_empty() { Err(Errno::EIO) } else { Ok(()) };
        }
    }
    Ok(())
}

/// Bytes of host records that cannot exceed the reply's room, whatever their names are.
fn sure_to_fit(out: &DirentsBuf<'_>) -> usize {
    let by_room = out.room() / LONGEST_PER_SHORTEST * SHORTEST_RECORD;
    by_room.min(out.entries_left() * SHORTEST_RECORD)
}

/// One `getdents64(2)`: bytes of the records that count, or none at the end of the directory.
fn read_once(
    dir: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    devices: Devices,
    names: Option<&MountNames>,
    out: &mut DirentsBuf<'_>,
) -> Result<Option<usize>, Errno> {
    let mut entries = RawDir::new(dir, buffer);
    let mut used = 0;
    let Some(mut entry) = entries.next() else { return Ok(None) };
    loop {
        used += push(dir, &entry?, devices, names, out);
        if entries.is_buffer_empty() {
            return Ok(Some(used));
        }
        match entries.next() {
            Some(next) => entry = next,
            None => return Ok(Some(used)),
        }
    }
}

/// Adds one entry and says how long its record was; 0 for one that is dropped.
fn push(
    dir: BorrowedFd<'_>,
    entry: &RawDirEntry<'_>,
    devices: Devices,
    names: Option<&MountNames>,
    out: &mut DirentsBuf<'_>,
) -> usize {
    let bytes = entry.file_name().to_bytes();
    let Some(name) = SizedString::new(bytes).filter(|_| !matches!(bytes, b"." | b"..")) else { return 0 };
    let known = match (devices, names) {
        (Devices::Shared { major, minor, mount }, Some(names)) if !names.may_be_mount_point(mount, bytes) => {
            Some(Identity { ino: entry.ino(), major, minor, entry_type: dirent_type(entry.file_type()) })
        }
        _ => identity(dir, entry),
    };
    // An entry that vanished meanwhile is no entry.
    let Some(Identity { ino, major, minor, entry_type }) = known else { return 0 };
    let off = entry.next_entry_cookie();
    out.push(&Dirent { ino, dev_minor: minor, dev_major: major, off, entry_type, name });
    record_len(bytes.len())
}

/// What an entry is, as a walk to it would have it.
struct Identity {
    ino: u64,
    major: u32,
    minor: u32,
    entry_type: u8,
}

/// Asks for one entry. The record only knows what is below a mount point; of a btrfs subvolume it has the number of the
/// root that it leads to, and of an overlay's file perhaps one of a layer.
fn identity(dir: BorrowedFd<'_>, entry: &RawDirEntry<'_>) -> Option<Identity> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = rustix::fs::statx(dir, entry.file_name(), flags, StatxFlags::INO | StatxFlags::TYPE).ok()?;
    let file_type = rustix::fs::FileType::from_raw_mode(stat.stx_mode.into());
    Some(Identity {
        ino: stat.stx_ino,
        major: stat.stx_dev_major,
        minor: stat.stx_dev_minor,
        entry_type: dirent_type(file_type),
    })
}

/// `d_reclen`: 19 bytes, the name, a NUL, up to a multiple of 8.
fn record_len(name_len: usize) -> usize {
    (19 + name_len + 1).next_multiple_of(8)
}

fn dirent_type(file_type: rustix::fs::FileType) -> u8 {
    use gofer_protocol::record::FileType as Type;
    use rustix::fs::FileType as Host;
    match file_type {
        Host::RegularFile => Type::Regular.dirent_type(),
        Host::Directory => Type::Directory.dirent_type(),
        Host::Symlink => Type::Symlink.dirent_type(),
        Host::Fifo => Type::Fifo.dirent_type(),
        Host::Socket => Type::Socket.dirent_type(),
        Host::CharacterDevice => Type::CharDevice.dirent_type(),
        Host::BlockDevice => Type::BlockDevice.dirent_type(),
        Host::Unknown => 0,
    }
}
