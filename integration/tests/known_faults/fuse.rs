//! A FUSE file system for tests: one flat directory, whose names may be as long as FUSE lets them be.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, RenameFlags,
    ReplyAttr, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, Request,
};
use gofer_integration::say;
use tempfile::TempDir;

/// Inode of the first name; the second has the next.
const FIRST: u64 = 2;
const TTL: Duration = Duration::ZERO;

/// A mounted file system. Unmounted on drop, before its directory goes.
pub(crate) struct Flat {
    _session: BackgroundSession,
    at: TempDir,
    names: Names,
    /// Names of the extended attributes that were set.
    pub(crate) attributes: Names,
}

type Names = Arc<Mutex<Vec<OsString>>>;

impl Flat {
    /// Mounts it with these names; none, said aloud, where FUSE is not to be had.
    pub(crate) fn mount(names: &[Vec<u8>]) -> Option<Self> {
        let at = tempfile::tempdir().expect("a directory");
        let names: Vec<OsString> = names.iter().map(|name| OsStr::from_bytes(name).to_owned()).collect();
        let (names, attributes) = (Arc::new(Mutex::new(names)), Names::default());
        let system = System { names: Arc::clone(&names), attributes: Arc::clone(&attributes) };
        match fuser::spawn_mount(system, at.path(), &Config::default()) {
            Ok(session) => Some(Self { _session: session, at, names, attributes }),
            Err(error) => {
                say::skipped(format_args!("needs FUSE: {error}"));
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }

    /// The names that it has now.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        lock(&self.names).iter().map(|name| name.as_bytes().to_vec()).collect()
    }
}

struct System {
    names: Names,
    attributes: Names,
}

fn lock(names: &Names) -> MutexGuard<'_, Vec<OsString>> {
    names.lock().expect("no panic before")
}

fn attributes(ino: u64) -> FileAttr {
    let directory = ino == INodeNo::ROOT.0;
    FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if directory { FileType::Directory } else { FileType::RegularFile },
        perm: if directory { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: 4096,
    }
}

impl System {
    fn inode(&self, name: &OsStr) -> Option<u64> {
        lock(&self.names).iter().position(|known| known == name).map(|at| at as u64 + FIRST)
    }
}

impl Filesystem for System {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.inode(name) {
            Some(ino) => reply.entry(&TTL, &attributes(ino), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &attributes(ino.0));
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let skipped = usize::try_from(offset).expect("an offset of ours");
        for (ino, name) in (FIRST..).zip(lock(&self.names).iter()).skip(skipped) {
            if reply.add(INodeNo(ino), ino - FIRST + 1, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        match lock(&self.names).iter_mut().find(|known| *known == name) {
            Some(known) => {
                new_name.clone_into(known);
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setxattr(&self, _: &Request, _: INodeNo, name: &OsStr, _: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        lock(&self.attributes).push(name.to_owned());
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1_000, 900, 800, 700, 600, 512, 1_000, 4_096);
    }
}
