//! One method for each request that many tests make, on [`Raw`]: typed, and without an opinion on the answer.

use std::os::fd::OwnedFd;

use gofer_protocol::codec::{Data, StringArrayBuf};
use gofer_protocol::message::{
    BindAtReply, BindAtRequest, ConnectRequest, FStatFsRequest, Getdents64Reply, Getdents64Request, LinkAtRequest,
    MkdirAtRequest, MknodAtRequest, PReadReply, PReadRequest, PWriteReply, PWriteRequest, RenameAtRequest,
    SetStatReply, SetStatRequest, SymlinkAtRequest, UnlinkAtRequest, WalkStatReply, WalkStatRequest,
};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode, StatFs, Statx, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use crate::Raw;
use crate::raw::string;

/// One entry of a listing, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Inode number.
    pub ino: u64,
    /// Device, major and minor.
    pub device: (u32, u32),
    /// As in `dirent.h`.
    pub entry_type: u8,
    /// Any bytes.
    pub name: Vec<u8>,
}

/// A SetStat that changes nothing yet: its mask is empty.
#[must_use]
pub fn set_stat(fd: FdId) -> SetStatRequest {
    SetStatRequest {
        fd,
        mask: StatxMask::default(),
        mode: 0,
        uid: Uid::NONE,
        gid: Gid::NONE,
        size: 0,
        atime: Timespec::default(),
        mtime: Timespec::default(),
    }
}

/// What a creation shares, without an owner.
#[must_use]
pub fn common(dir_fd: FdId, file_type: FileType, permissions: u16) -> CreateCommon {
    CreateCommon::new(dir_fd, Uid::NONE, Gid::NONE, FileMode::new(file_type, permissions))
}

/// Each returns the errno that the server sent, if it did.
#[allow(clippy::missing_errors_doc, reason = "said once, above")]
impl Raw {
    /// `MkdirAt`.
    pub fn mkdir(&self, dir: FdId, name: &str, permissions: u16) -> Result<Inode, Errno> {
        let create = common(dir, FileType::Directory, permissions);
        self.ask(&MkdirAtRequest { create, name: string(name) }).map(|answer| answer.decode())
    }

    /// `MknodAt`, with a device number as (major, minor).
    pub fn mknod(&self, dir: FdId, name: &str, mode: FileMode, device: (u32, u32)) -> Result<Inode, Errno> {
        let create = CreateCommon::new(dir, Uid::NONE, Gid::NONE, mode);
        let (major, minor) = device;
        self.ask(&MknodAtRequest { create, minor, major, name: string(name) }).map(|answer| answer.decode())
    }

    /// `SymlinkAt`.
    pub fn symlink(&self, dir_fd: FdId, name: &str, target: &str) -> Result<Inode, Errno> {
        let (name, target) = (string(name), string(target));
        self.ask(&SymlinkAtRequest { dir_fd, uid: Uid::NONE, gid: Gid::NONE, name, target })
            .map(|answer| answer.decode())
    }

    /// `LinkAt`.
    pub fn link(&self, target: FdId, dir_fd: FdId, name: &str) -> Result<Inode, Errno> {
        self.ask(&LinkAtRequest { dir_fd, target, name: string(name) }).map(|answer| answer.decode())
    }

    /// `UnlinkAt` of anything but a directory.
    pub fn unlink(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        self.ask(&UnlinkAtRequest { dir_fd, flags: 0, name: string(name) }).map(drop)
    }

    /// `UnlinkAt` of a directory.
    pub fn rmdir(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        self.ask(&UnlinkAtRequest { dir_fd, flags: 0x200, name: string(name) }).map(drop)
    }

    /// `RenameAt`.
    pub fn rename(&self, (old_dir, old): (FdId, &str), (new_dir, new): (FdId, &str)) -> Result<(), Errno> {
        self.ask(&RenameAtRequest { old_dir, new_dir, old_name: string(old), new_name: string(new) }).map(drop)
    }

    /// `BindAt` with mode 0755: the socket's file, the socket, and what was donated.
    pub fn bind(&self, dir: FdId, name: &str, sock_type: u32) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        let create = common(dir, FileType::Socket, 0o755);
        let answer = self.ask(&BindAtRequest { create, sock_type, name: string(name) })?;
        let BindAtReply { child, bound_fd } = answer.decode();
        Ok((child, bound_fd, answer.fds))
    }

    /// `Connect`: what was donated.
    pub fn connect(&self, fd: FdId, sock_type: u32) -> Result<Vec<OwnedFd>, Errno> {
        self.ask(&ConnectRequest { fd, sock_type }).map(|answer| answer.fds)
    }

    /// `PRead`.
    pub fn pread(&self, fd: FdId, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(&PReadRequest { offset, fd, count })?;
        Ok(answer.decode::<PReadReply<'_>>().data.as_bytes().to_vec())
    }

    /// `PWrite`: how many bytes went.
    ///
    /// # Panics
    /// If `data` is beyond 4 GiB.
    pub fn pwrite(&self, fd: FdId, offset: u64, data: &[u8]) -> Result<u64, Errno> {
        let data = Data::new(data).expect("less than 4 GiB");
        let PWriteReply { count } = self.ask(&PWriteRequest { offset, fd, data })?.decode();
        Ok(count)
    }

    /// `SetStat`; start from [`set_stat`].
    pub fn set_stat(&self, request: &SetStatRequest) -> Result<SetStatReply, Errno> {
        self.ask(request).map(|answer| answer.decode())
    }

    /// `SetStat` of the mode.
    pub fn chmod(&self, fd: FdId, mode: u32) -> Result<SetStatReply, Errno> {
        self.set_stat(&SetStatRequest { mask: StatxMask::MODE, mode, ..set_stat(fd) })
    }

    /// `FStatFS`.
    pub fn statfs(&self, fd: FdId) -> Result<StatFs, Errno> {
        self.ask(&FStatFsRequest { fd }).map(|answer| answer.decode())
    }

    /// `WalkStat`.
    ///
    /// # Panics
    /// If the wire does not take `path`.
    pub fn walk_stat(&self, dir_fd: FdId, path: &[&[u8]]) -> Result<Vec<Statx>, Errno> {
        let path = StringArrayBuf::new(path.iter().copied()).expect("a path that the wire takes");
        let answer = self.ask(&WalkStatRequest { dir_fd, path: path.as_array() })?;
        Ok(answer.decode::<WalkStatReply<'_>>().stats.iter().collect())
    }

    /// One `Getdents64` with a budget of `count`.
    pub fn list_some(&self, open_dir: FdId, count: i32) -> Result<Vec<Entry>, Errno> {
        let answer = self.ask(&Getdents64Request { dir_fd: open_dir, count })?;
        let entries = answer.decode::<Getdents64Reply<'_>>().dirents;
        let own = |entry: gofer_protocol::record::Dirent<'_>| Entry {
            ino: entry.ino,
            device: (entry.dev_major, entry.dev_minor),
            entry_type: entry.entry_type,
            name: entry.name.as_bytes().to_vec(),
        };
        Ok(entries.iter().map(own).collect())
    }

    /// A whole listing from the start, as a sandbox makes it: 65,536 bytes at a time.
    pub fn list(&self, open_dir: FdId) -> Result<Vec<Entry>, Errno> {
        let mut all = Vec::new();
        let mut some = self.list_some(open_dir, -65_536)?;
        while !some.is_empty() {
            all.append(&mut some);
            some = self.list_some(open_dir, 65_536)?;
        }
        Ok(all)
    }
}
