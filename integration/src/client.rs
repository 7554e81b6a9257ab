//! What tests ask of a server, in the same words over the socket and over a channel.

use std::os::fd::OwnedFd;

use gofer_protocol::codec::{Array, Data, SizedString, StringArrayBuf};
use gofer_protocol::message::{
    BindAtReply, BindAtRequest, CloseRequest, ConnectRequest, ErrorReply, FStatRequest, Getdents64Reply,
    Getdents64Request, LinkAtRequest, MkdirAtRequest, OpenAtReply, OpenAtRequest, OpenCreateAtReply,
    OpenCreateAtRequest, PReadReply, PReadRequest, PWriteReply, PWriteRequest, RenameAtRequest, SetStatReply,
    SetStatRequest, SymlinkAtRequest, UnlinkAtRequest, WalkReply, WalkRequest, WalkStatReply, WalkStatRequest,
    WalkStatus,
};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode, Statx, StatxMask, Timespec};
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::{Errno, FdId, Gid, Mid, Request, Uid, Wire};

use crate::{Answer, Raw};

/// A way to ask: the socket or a channel.
pub trait Client {
    /// Sends a request and receives its answer, none if there will be no more.
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer>;
}

impl Client for Raw {
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer> {
        self.send(mid, payload);
        self.receive()
    }
}

/// A client on a channel.
#[derive(Debug)]
pub struct RawChannel(pub ClientChannel);

impl Client for RawChannel {
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer> {
        assert!(payload.len() <= self.0.max_payload(), "the request does not fit the window");
        let reply = self.0.request(mid, &[payload]).ok()?;
        let mut fds = [None, None];
        self.0.receive_fds(&reply, &mut fds);
        let mut payload = Vec::new();
        self.0.append_payload_to(0, reply.payload_len, &mut payload).expect("a reply within the window");
        Some(Answer { mid: Mid(reply.mid), payload, fds: fds.into_iter().flatten().collect() })
    }
}

impl Raw {
    /// A client on a new channel of this connection.
    ///
    /// # Panics
    /// If there is none to be had.
    #[must_use]
    pub fn on_channel(&self) -> RawChannel {
        RawChannel(self.channel().expect("a channel").connect())
    }
}

/// Requests by name. Those that return an error return the errno that the server sent; all panic if there is no answer.
#[allow(missing_docs, reason = "the protocol's own names")]
#[allow(clippy::missing_errors_doc, clippy::missing_panics_doc, reason = "said above, for all")]
pub trait Requests: Client {
    fn exchange(&self, mid: u16, payload: &[u8]) -> Result<Answer, Errno> {
        let answer = self.try_exchange(mid, payload).expect("an answer, not the end of the connection");
        if answer.mid == Mid::ERROR {
            assert!(answer.fds.is_empty(), "an error donates nothing");
            let ErrorReply { errno } = answer.decode();
            return Err(Errno::from_wire(errno));
        }
        assert_eq!(answer.mid, Mid(mid), "the answer to another request");
        Ok(answer)
    }

    fn ask<'q, Q: Request + Wire<'q>>(&self, request: &Q) -> Result<Answer, Errno> {
        self.exchange(Q::MID.0, &encoded(request))
    }

    fn walk(&self, dir_fd: FdId, path: &[&[u8]]) -> Result<(WalkStatus, Vec<Inode>), Errno> {
        let path = StringArrayBuf::new(path.iter().copied()).expect("a path that the wire takes");
        let answer = self.ask(&WalkRequest { dir_fd, path: path.as_array() })?;
        let WalkReply { status, inodes } = answer.decode();
        Ok((status, inodes.iter().collect()))
    }

    fn walk_stat(&self, dir_fd: FdId, path: &[&[u8]]) -> Result<Vec<Statx>, Errno> {
        let path = StringArrayBuf::new(path.iter().copied()).expect("a path that the wire takes");
        let answer = self.ask(&WalkStatRequest { dir_fd, path: path.as_array() })?;
        Ok(answer.decode::<WalkStatReply<'_>>().stats.iter().collect())
    }

    /// One name that must exist.
    fn child(&self, dir_fd: FdId, name: &str) -> Inode {
        let (_, inodes) = self.walk(dir_fd, &[name.as_bytes()]).unwrap_or_else(|errno| panic!("{name}: {errno:?}"));
        inodes.first().copied().unwrap_or_else(|| panic!("{name} is not there"))
    }

    fn fstat(&self, fd: FdId) -> Result<Statx, Errno> {
        self.ask(&FStatRequest { fd }).map(|answer| answer.decode())
    }

    fn open(&self, fd: FdId, flags: u32) -> Result<(FdId, Vec<OwnedFd>), Errno> {
        let answer = self.ask(&OpenAtRequest { fd, flags })?;
        let OpenAtReply { open_fd } = answer.decode();
        Ok((open_fd, answer.fds))
    }

    fn create(&self, dir_fd: FdId, name: &str) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        let create = creation(dir_fd, FileType::Regular, 0o644);
        let answer = self.ask(&OpenCreateAtRequest { create, flags: 2, name: string(name) })?;
        let OpenCreateAtReply { child, open_fd } = answer.decode();
        Ok((child, open_fd, answer.fds))
    }

    fn mkdir(&self, dir_fd: FdId, name: &str) -> Result<Inode, Errno> {
        let create = creation(dir_fd, FileType::Directory, 0o755);
        self.ask(&MkdirAtRequest { create, name: string(name) }).map(|answer| answer.decode())
    }

    fn symlink(&self, dir_fd: FdId, name: &str, target: &str) -> Result<Inode, Errno> {
        let (uid, gid) = (Uid::NONE, Gid::NONE);
        let request = SymlinkAtRequest { dir_fd, uid, gid, name: string(name), target: string(target) };
        self.ask(&request).map(|answer| answer.decode())
    }

    fn link(&self, dir_fd: FdId, target: FdId, name: &str) -> Result<Inode, Errno> {
        self.ask(&LinkAtRequest { dir_fd, target, name: string(name) }).map(|answer| answer.decode())
    }

    fn unlink(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        self.ask(&UnlinkAtRequest { dir_fd, flags: 0, name: string(name) }).map(drop)
    }

    fn rmdir(&self, dir_fd: FdId, name: &str) -> Result<(), Errno> {
        self.ask(&UnlinkAtRequest { dir_fd, flags: 0x200, name: string(name) }).map(drop)
    }

    fn rename(&self, (old_dir, old_name): (FdId, &str), (new_dir, new_name): (FdId, &str)) -> Result<(), Errno> {
        let (old_name, new_name) = (string(old_name), string(new_name));
        self.ask(&RenameAtRequest { old_dir, new_dir, old_name, new_name }).map(drop)
    }

    /// SetStat of what `change` adds to an empty request.
    fn set_stat(&self, fd: FdId, change: impl FnOnce(&mut SetStatRequest)) -> Result<SetStatReply, Errno> {
        let mut request = SetStatRequest {
            fd,
            mask: StatxMask::default(),
            mode: 0,
            uid: Uid::NONE,
            gid: Gid::NONE,
            size: 0,
            atime: Timespec::OMIT,
            mtime: Timespec::OMIT,
        };
        change(&mut request);
        self.ask(&request).map(|answer| answer.decode())
    }

    fn bind(&self, dir_fd: FdId, name: &str) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        let create = creation(dir_fd, FileType::Socket, 0o755);
        let answer = self.ask(&BindAtRequest { create, sock_type: 1, name: string(name) })?;
        let BindAtReply { child, bound_fd } = answer.decode();
        Ok((child, bound_fd, answer.fds))
    }

    fn connect(&self, fd: FdId) -> Result<Vec<OwnedFd>, Errno> {
        self.ask(&ConnectRequest { fd, sock_type: 1 }).map(|answer| answer.fds)
    }

    fn pread(&self, fd: FdId, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(&PReadRequest { offset, fd, count })?;
        Ok(answer.decode::<PReadReply<'_>>().data.as_bytes().to_vec())
    }

    fn pwrite(&self, fd: FdId, offset: u64, data: &[u8]) -> Result<u64, Errno> {
        let data = Data::new(data).expect("less than 4 GiB");
        let answer = self.ask(&PWriteRequest { offset, fd, data })?;
        let PWriteReply { count } = answer.decode();
        Ok(count)
    }

    /// One Getdents64: names and inodes.
    fn list(&self, dir_fd: FdId, count: i32) -> Result<Vec<(Vec<u8>, u64)>, Errno> {
        let answer = self.ask(&Getdents64Request { dir_fd, count })?;
        let Getdents64Reply { dirents } = answer.decode();
        Ok(dirents.iter().map(|entry| (entry.name.as_bytes().to_vec(), entry.ino)).collect())
    }

    fn close(&self, fds: &[FdId]) {
        let fds = Array::new(fds).expect("not too many");
        self.ask(&CloseRequest { fds }).expect("close never fails");
    }
}

impl<C: Client + ?Sized> Requests for C {}

/// Does the same over the socket and over a channel.
pub fn each_way(socket: &Raw, mut test: impl FnMut(&dyn Client)) {
    test(socket);
    test(&socket.on_channel());
}

/// The prefix of creation requests, without an owner.
#[must_use]
pub fn creation(dir_fd: FdId, file_type: FileType, permissions: u16) -> CreateCommon {
    CreateCommon::new(dir_fd, Uid::NONE, Gid::NONE, FileMode::new(file_type, permissions))
}

/// A request's payload.
#[must_use]
pub fn encoded<'q>(request: &impl Wire<'q>) -> Vec<u8> {
    let mut payload = Vec::new();
    request.put(&mut payload);
    payload
}

fn string(text: &str) -> SizedString<'_> {
    crate::raw::string(text)
}
