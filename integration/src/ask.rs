//! Every message as a method, with its reply's types, on whatever carries requests.

use std::os::fd::OwnedFd;

use gofer_protocol::codec::{Array, Data, SizedString, StringArrayBuf};
use gofer_protocol::message::{
    AcceptRequest, BindAtReply, BindAtRequest, ChannelRequest, CloseRequest, ConnectRequest, ConnectWithCredsRequest,
    FAllocateRequest, FGetXattrReply, FGetXattrRequest, FListXattrReply, FListXattrRequest, FRemoveXattrRequest,
    FSetXattrRequest, FStatFsRequest, FStatRequest, FSyncRequest, Getdents64Reply, Getdents64Request, LinkAtRequest,
    ListenRequest, MkdirAtRequest, MknodAtRequest, MountReply, MountRequest, OpenAtReply, OpenAtRequest,
    OpenCreateAtReply, OpenCreateAtRequest, PReadReply, PReadRequest, PWriteReply, PWriteRequest, ReadLinkAtReply,
    ReadLinkAtRequest, RenameAt2Request, RenameAtRequest, SetStatReply, SetStatRequest, SymlinkAtRequest,
    UnlinkAtRequest, WalkReply, WalkRequest, WalkStatReply, WalkStatRequest, WalkStatus,
};
use gofer_protocol::record::{CreateCommon, Dirent, FileType, Inode, StatFs, Statx, StatxMask};
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::{Errno, FdId, Gid, Request, Uid, Wire};

use crate::exchange::{Answer, Exchange};
use crate::offer::ChannelOffer;
use crate::parts::{change, encoded, new_in, string};

/// Every message as a method. Errors are the errnos that the server sent; an answer that does not decode, or with
/// descriptors that the message does not donate, fails the test.
#[allow(missing_docs, clippy::missing_errors_doc, reason = "the messages' own names; the errors are said above")]
pub trait Ask: Exchange {
    fn ask<'q, Q: Request + Wire<'q>>(&self, request: &Q) -> Result<Answer, Errno> {
        let answer = self.exchange(Q::MID.0, &encoded(request))?;
        assert!(answer.fds.len() <= Q::DONATIONS, "{:?} donated {} descriptors", Q::MID, answer.fds.len());
        Ok(answer)
    }

    /// The root's inode, and what was donated.
    fn mounted(&self) -> Result<(Inode, Vec<OwnedFd>), Errno> {
        let answer = self.ask(&MountRequest)?;
        Ok((answer.decode::<MountReply<'_>>().root, answer.fds))
    }

    /// As [`Ask::mounted`], where it must succeed; the root's control descriptor alone.
    fn mount(&self) -> FdId {
        self.mounted().expect("mount").0.control_fd
    }

    fn channel(&self) -> Result<ChannelOffer, Errno> {
        let answer = self.ask(&ChannelRequest)?;
        let place = answer.decode();
        let [memory, fd_socket] = answer.fds.try_into().expect("two descriptors");
        Ok(ChannelOffer { place, memory, fd_socket })
    }

    /// An honest client on a new channel of this connection.
    fn on_channel(&self) -> ClientChannel {
        self.channel().expect("a channel").connect()
    }

    fn fstat(&self, fd: FdId) -> Result<Statx, Errno> {
        self.ask(&FStatRequest { fd }).map(|answer| answer.decode())
    }

    fn set_stat(&self, change: &SetStatRequest) -> Result<SetStatReply, Errno> {
        self.ask(change).map(|answer| answer.decode())
    }

    /// SetStat of the mode alone.
    fn chmod(&self, fd: FdId, mode: u32) -> Result<SetStatReply, Errno> {
        self.set_stat(&SetStatRequest { mode, ..change(fd, StatxMask::MODE) })
    }

    fn fstat_fs(&self, fd: FdId) -> Result<StatFs, Errno> {
        self.ask(&FStatFsRequest { fd }).map(|answer| answer.decode())
    }

    fn walk(&self, dir_fd: FdId, path: &[impl AsRef<[u8]>]) -> Result<(WalkStatus, Vec<Inode>), Errno> {
        let path = StringArrayBuf::new(path.iter().map(AsRef::as_ref)).expect("a path that the wire takes");
        let answer = self.ask(&WalkRequest { dir_fd, path: path.as_array() })?;
        let WalkReply { status, inodes } = answer.decode();
        assert_eq!(answer.payload.len(), 3 + 152 * inodes.len());
        Ok((status, inodes.iter().collect()))
    }

    /// Walks components that exist, separated by slashes; the last one's inode.
    fn find(&self, dir_fd: FdId, path: &str) -> Inode {
        let components: Vec<_> = path.split('/').collect();
        let (_, inodes) = self.walk(dir_fd, &components).unwrap_or_else(|errno| panic!("walk to {path}: {errno:?}"));
        assert_eq!(inodes.len(), components.len(), "walk to {path} ended early");
        *inodes.last().expect("a component")
    }

    /// As [`Ask::find`]; the control descriptor alone.
    fn walk_to(&self, dir_fd: FdId, path: &str) -> FdId {
        self.find(dir_fd, path).control_fd
    }

    fn walk_stat(&self, dir_fd: FdId, path: &[impl AsRef<[u8]>]) -> Result<Vec<Statx>, Errno> {
        let path = StringArrayBuf::new(path.iter().map(AsRef::as_ref)).expect("a path that the wire takes");
        let answer = self.ask(&WalkStatRequest { dir_fd, path: path.as_array() })?;
        let WalkStatReply { stats } = answer.decode();
        assert_eq!(answer.payload.len(), 2 + 144 * stats.len());
        Ok(stats.iter().collect())
    }

    fn read_link(&self, fd: FdId) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(&ReadLinkAtRequest { fd })?;
        Ok(answer.decode::<ReadLinkAtReply<'_>>().target.as_bytes().to_vec())
    }

    fn open(&self, fd: FdId, flags: u32) -> Result<(FdId, Vec<OwnedFd>), Errno> {
        let answer = self.ask(&OpenAtRequest { fd, flags })?;
        let OpenAtReply { open_fd } = answer.decode();
        Ok((open_fd, answer.fds))
    }

    fn open_create(&self, create: CreateCommon, flags: u32, name: &str) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        let answer = self.ask(&OpenCreateAtRequest { create, flags, name: string(name) })?;
        let OpenCreateAtReply { child, open_fd } = answer.decode();
        Ok((child, open_fd, answer.fds))
    }

    /// As [`Ask::open_create`], of a file with mode 0644 to read and write.
    fn create(&self, dir_fd: FdId, name: &str) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        self.open_create(new_in(dir_fd, FileType::Regular, 0o644), 2, name)
    }

    fn close(&self, fds: &[FdId]) {
        let fds = Array::new(fds).expect("not too many");
        let answer = self.ask(&CloseRequest { fds }).expect("close never fails");
        assert!(answer.payload.is_empty());
    }

    fn fsync(&self, fds: &[FdId]) -> Result<(), Errno> {
        empty(&self.ask(&FSyncRequest { fds: Array::new(fds).expect("not too many") })?)
    }

    fn pwrite(&self, fd: FdId, offset: u64, data: &[u8]) -> Result<u64, Errno> {
        let data = Data::new(data).expect("a write below 4 GiB");
        let PWriteReply { count } = self.ask(&PWriteRequest { offset, fd, data })?.decode();
        Ok(count)
    }

    fn pread(&self, fd: FdId, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(&PReadRequest { offset, fd, count })?;
        let PReadReply { data } = answer.decode();
        assert_eq!(answer.payload.len(), 8 + data.as_bytes().len());
        Ok(data.as_bytes().to_vec())
    }

    fn fallocate(&self, fd: FdId, mode: u64, offset: u64, length: u64) -> Result<(), Errno> {
        empty(&self.ask(&FAllocateRequest { fd, mode, offset, length })?)
    }

    fn mkdir(&self, create: CreateCommon, name: &str) -> Result<Inode, Errno> {
        inode(&self.ask(&MkdirAtRequest { create, name: string(name) })?)
    }

    fn mknod(&self, create: CreateCommon, (major, minor): (u32, u32), name: &str) -> Result<Inode, Errno> {
        inode(&self.ask(&MknodAtRequest { create, minor, major, name: string(name) })?)
    }

    /// SymlinkAt without an owner: the server's own.
    fn symlink(&self, dir_fd: FdId, name: &str, target: impl AsRef<[u8]>) -> Result<Inode, Errno> {
        self.symlink_as(dir_fd, (Uid::NONE, Gid::NONE), name, target)
    }

    fn symlink_as(
        &self,
        dir_fd: FdId,
        (uid, gid): (Uid, Gid),
        name: &str,
        target: impl AsRef<[u8]>,
    ) -> Result<Inode, Errno> {
        let target = SizedString::new(target.as_ref()).expect("at most 65,535 bytes");
        inode(&self.ask(&SymlinkAtRequest { dir_fd, uid, gid, name: string(name), target })?)
    }

    fn link(&self, dir_fd: FdId, target: FdId, name: &str) -> Result<Inode, Errno> {
        inode(&self.ask(&LinkAtRequest { dir_fd, target, name: string(name) })?)
    }

    /// UnlinkAt of anything but a directory.
    fn unlink(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        self.unlink_with(dir_fd, name, 0)
    }

    /// UnlinkAt of a directory.
    fn rmdir(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        const REMOVE_DIRECTORY: u32 = 0x200;
        self.unlink_with(dir_fd, name, REMOVE_DIRECTORY)
    }

    fn unlink_with(&self, dir_fd: FdId, name: &str, flags: u32) -> Result<(), Errno> {
        empty(&self.ask(&UnlinkAtRequest { dir_fd, flags, name: string(name) })?)
    }

    fn rename(&self, old: (FdId, &str), new: (FdId, &str)) -> Result<(), Errno> {
        let (old_name, new_name) = (string(old.1), string(new.1));
        empty(&self.ask(&RenameAtRequest { old_dir: old.0, new_dir: new.0, old_name, new_name })?)
    }

    fn rename2(&self, old: (FdId, &str), new: (FdId, &str), flags: u32) -> Result<(), Errno> {
        let (old_name, new_name) = (string(old.1), string(new.1));
        empty(&self.ask(&RenameAt2Request { old_dir: old.0, new_dir: new.0, old_name, new_name, flags })?)
    }

    fn getdents(&self, dir_fd: FdId, count: i32) -> Result<Vec<Entry>, Errno> {
        let answer = self.ask(&Getdents64Request { dir_fd, count })?;
        let Getdents64Reply { dirents } = answer.decode();
        let entry = |dirent: Dirent<'_>| Entry {
            ino: dirent.ino,
            device: (dirent.dev_major, dirent.dev_minor),
            off: dirent.off,
            entry_type: dirent.entry_type,
            name: dirent.name.as_bytes().to_vec(),
        };
        let entries: Vec<_> = dirents.iter().map(entry).collect();
        assert_eq!(answer.payload.len(), 2 + entries.iter().map(|entry| 27 + entry.name.len()).sum::<usize>());
        Ok(entries)
    }

    /// Lists as clients do: rewinds, then goes on until nothing comes.
    fn list(&self, dir_fd: FdId) -> Vec<Entry> {
        let mut all = self.getdents(dir_fd, -65_536).expect("a listing");
        loop {
            let more = self.getdents(dir_fd, 65_536).expect("more of a listing");
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    fn get_xattr(&self, fd: FdId, buf_size: u32, name: &str) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(&FGetXattrRequest { fd, buf_size, name: string(name) })?;
        Ok(answer.decode::<FGetXattrReply<'_>>().value.as_bytes().to_vec())
    }

    fn set_xattr(&self, fd: FdId, flags: u32, name: &str, value: &[u8]) -> Result<(), Errno> {
        let value = SizedString::new(value).expect("at most 65,535 bytes");
        empty(&self.ask(&FSetXattrRequest { fd, flags, name: string(name), value })?)
    }

    fn list_xattr(&self, fd: FdId, size: u64) -> Result<Vec<String>, Errno> {
        let answer = self.ask(&FListXattrRequest { fd, size })?;
        let names = answer.decode::<FListXattrReply<'_>>().names;
        Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn remove_xattr(&self, fd: FdId, name: &str) -> Result<(), Errno> {
        empty(&self.ask(&FRemoveXattrRequest { fd, name: string(name) })?)
    }

    /// The socket's file, the bound socket, and the one descriptor that comes along.
    fn bind(&self, create: CreateCommon, sock_type: u32, name: &str) -> Result<(Inode, FdId, OwnedFd), Errno> {
        let answer = self.ask(&BindAtRequest { create, sock_type, name: string(name) })?;
        let BindAtReply { child, bound_fd } = answer.decode();
        Ok((child, bound_fd, only(answer.fds)))
    }

    fn listen(&self, fd: FdId, backlog: i32) -> Result<(), Errno> {
        empty(&self.ask(&ListenRequest { fd, backlog })?)
    }

    fn accept(&self, fd: FdId) -> Result<OwnedFd, Errno> {
        let answer = self.ask(&AcceptRequest { fd })?;
        assert_eq!(answer.payload, [0, 0], "the peer's address is hidden");
        Ok(only(answer.fds))
    }

    fn connect(&self, fd: FdId, sock_type: u32) -> Result<OwnedFd, Errno> {
        let answer = self.ask(&ConnectRequest { fd, sock_type })?;
        assert!(answer.payload.is_empty());
        Ok(only(answer.fds))
    }

    fn connect_as(&self, fd: FdId, sock_type: u32, (uid, gid): (Uid, Gid)) -> Result<OwnedFd, Errno> {
        let padding = gofer_protocol::codec::Padding;
        let answer = self.ask(&ConnectWithCredsRequest { fd, sock_type, padding, uid, gid })?;
        assert!(answer.payload.is_empty());
        Ok(only(answer.fds))
    }
}

impl<T: Exchange + ?Sized> Ask for T {}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as on the wire")]
pub struct Entry {
    pub ino: u64,
    pub device: (u32, u32),
    pub off: u64,
    pub entry_type: u8,
    pub name: Vec<u8>,
}

fn empty(answer: &Answer) -> Result<(), Errno> {
    assert!(answer.payload.is_empty(), "a success without content");
    assert!(answer.fds.is_empty(), "a success without descriptors");
    Ok(())
}

fn inode(answer: &Answer) -> Result<Inode, Errno> {
    assert_eq!(answer.payload.len(), 152);
    Ok(answer.decode())
}

fn only(fds: Vec<OwnedFd>) -> OwnedFd {
    let [fd] = <[OwnedFd; 1]>::try_from(fds).expect("exactly one descriptor");
    fd
}
