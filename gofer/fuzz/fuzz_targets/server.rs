//! Whatever a client asks for, in whatever order, the server answers every request once, no handler panics, nothing
//! outside of the served directory changes, and no descriptor is left when the client is gone.
#![no_main]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use arbitrary::Arbitrary;
use gofer::{CharDevices, HostFifo, HostSockets, Limits, Policy, Server};
use gofer_protocol::codec::{Array, Data, SizedString, StringArrayBuf, decode};
use gofer_protocol::message::*;
use gofer_protocol::record::{CreateCommon, FileMode, StatxMask, Timespec};
use gofer_protocol::transport::SocketHeader;
use gofer_protocol::{Errno, FdId, Gid, Mid, Request, Uid, Wire};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Session {
    read_only: bool,
    strict: bool,
    donate_mount_point: bool,
    max_fds: u8,
    asks: Vec<Ask>,
}

/// Small numbers are likely to be descriptors.
type Id = u8;

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Name(u8);

#[derive(Arbitrary, Debug)]
enum Ask {
    Mount,
    Channel,
    FStat(Id),
    SetStat(Id, u32, u16, u16, u32, i64),
    Walk(Id, Vec<Name>),
    WalkStat(Id, Vec<Name>),
    ReadLink(Id),
    Open(Id, u32),
    Create(Id, Name, u16, u32),
    Close(Vec<Id>),
    FSync(Vec<Id>),
    PWrite(Id, u64, Vec<u8>),
    PRead(Id, u64, u32),
    FAllocate(Id, u64, u16, u32),
    Mkdir(Id, Name, u16),
    Mknod(Id, Name, u16, bool),
    Symlink(Id, Name, Vec<u8>),
    Link(Id, Id, Name),
    FStatFs(Id),
    Unlink(Id, Name, bool),
    Rename(Id, Name, Id, Name, u8),
    List(Id, i32),
    GetXattr(Id, u8, u32),
    SetXattr(Id, u8, u32, Vec<u8>),
    ListXattr(Id, u64),
    RemoveXattr(Id, u8),
    Bind(Id, Name, u8),
    Listen(Id, i32),
    Accept(Id),
    Connect(Id, u8),
    ConnectWithCreds(Id, u8, i8),
    Raw(u16, Vec<u8>),
}

fuzz_target!(|session: Session| {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(dir.path().join("secret"), "outside").unwrap();
    fs::write(root.join("a"), "inside").unwrap();
    fs::create_dir(root.join("b")).unwrap();
    std::os::unix::fs::symlink("../secret", root.join("c")).unwrap();

    let before = descriptors();
    let server = Server::new().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mount = server.root(&root).unwrap();
    let limits = Limits { fds: usize::from(session.max_fds), ..Limits::default() };
    let connection = server.connect(theirs.into(), mount, policy(&session), limits).unwrap();
    for ask in &session.asks {
        exchange(&ours, ask);
    }
    drop(ours);
    connection.wait();
    drop((connection, server));
    assert_eq!(descriptors(), before);

    assert_eq!(fs::read(dir.path().join("secret")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
});

fn policy(session: &Session) -> Policy {
    if session.strict {
        return Policy { read_only: session.read_only, ..Policy::default() };
    }
    Policy {
        read_only: session.read_only,
        host_sockets: HostSockets::All,
        host_fifo: HostFifo::Open,
        char_devices: CharDevices::Passthrough,
        donate_mount_point: session.donate_mount_point,
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn exchange(mut socket: &UnixStream, ask: &Ask) {
    let (mid, payload) = encode(ask);
    let header = SocketHeader::new(payload.len().try_into().unwrap(), mid);
    let mut frame = Vec::new();
    header.put(&mut frame);
    frame.extend_from_slice(&payload);
    socket.write_all(&frame).unwrap();

    let mut header = [0; SocketHeader::LEN];
    socket.read_exact(&mut header).unwrap();
    let header: SocketHeader = decode(&header).unwrap();
    let mut payload = vec![0; header.payload_len()];
    socket.read_exact(&mut payload).unwrap();
    if header.mid == Mid::ERROR {
        let ErrorReply { errno } = decode(&payload).unwrap();
        assert_ne!(errno, Errno::EREMOTEIO.raw(), "a panic, in {ask:?}");
        assert!((1..4096).contains(&errno));
    } else {
        assert_eq!(header.mid, mid);
    }
}

fn encode(ask: &Ask) -> (Mid, Vec<u8>) {
    let fd = |id: Id| FdId(id.into());
    let common = |dir, mode| CreateCommon::new(fd(dir), Uid::NONE, Gid::NONE, FileMode(mode));
    match *ask {
        Ask::Mount => request(&MountRequest),
        Ask::Channel => request(&ChannelRequest),
        Ask::FStat(id) => request(&FStatRequest { fd: fd(id) }),
        Ask::SetStat(id, mask, mode, owner, size, time) => {
            let time = Timespec { seconds: time, nanoseconds: time };
            request(&SetStatRequest {
                mask: StatxMask(mask & StatxMask::SETTABLE.0),
                mode: mode.into(),
                uid: Uid(owner.into()),
                gid: Gid(owner.into()),
                size: size.into(),
                atime: time,
                mtime: time,
                ..SetStatRequest::nothing(fd(id))
            })
        }
        Ask::Walk(id, ref path) => request(&WalkRequest { dir_fd: fd(id), path: strings(path).as_array() }),
        Ask::WalkStat(id, ref path) => request(&WalkStatRequest { dir_fd: fd(id), path: strings(path).as_array() }),
        Ask::ReadLink(id) => request(&ReadLinkAtRequest { fd: fd(id) }),
        Ask::Open(id, flags) => request(&OpenAtRequest { fd: fd(id), flags }),
        Ask::Create(dir, name, mode, flags) => {
            request(&OpenCreateAtRequest { create: common(dir, mode), flags, name: string(&name.bytes()) })
        }
        Ask::Close(ref ids) => request(&CloseRequest { fds: Array::new(&numbers(ids)).unwrap() }),
        Ask::FSync(ref ids) => request(&FSyncRequest { fds: Array::new(&numbers(ids)).unwrap() }),
        Ask::PWrite(id, offset, ref data) => {
            // Sparse, so that the disk does not fill up.
            request(&PWriteRequest { offset: offset % (1 << 40), fd: fd(id), data: Data::new(data).unwrap() })
        }
        Ask::PRead(id, offset, count) => request(&PReadRequest { offset, fd: fd(id), count }),
        Ask::FAllocate(id, mode, offset, length) => request(&FAllocateRequest {
            fd: fd(id),
            mode: mode % 4,
            offset: offset.into(),
            length: u64::from(length) % 100_000,
        }),
        Ask::Mkdir(dir, name, mode) => {
            request(&MkdirAtRequest { create: common(dir, mode), name: string(&name.bytes()) })
        }
        Ask::Mknod(dir, name, mode, device) => {
            let minor = device.into();
            request(&MknodAtRequest { create: common(dir, mode), minor, major: 0, name: string(&name.bytes()) })
        }
        Ask::Symlink(dir, name, ref target) => request(&SymlinkAtRequest {
            dir_fd: fd(dir),
            uid: Uid::NONE,
            gid: Gid::NONE,
            name: string(&name.bytes()),
            target: string(target),
        }),
        Ask::Link(dir, target, name) => {
            request(&LinkAtRequest { dir_fd: fd(dir), target: fd(target), name: string(&name.bytes()) })
        }
        Ask::FStatFs(id) => request(&FStatFsRequest { fd: fd(id) }),
        Ask::Unlink(dir, name, directory) => {
            let flags = u32::from(directory) * 0x200;
            request(&UnlinkAtRequest { dir_fd: fd(dir), flags, name: string(&name.bytes()) })
        }
        Ask::Rename(old_dir, old, new_dir, new, flags) => request(&RenameAt2Request {
            old_dir: fd(old_dir),
            new_dir: fd(new_dir),
            old_name: string(&old.bytes()),
            new_name: string(&new.bytes()),
            flags: u32::from(flags % 4),
        }),
        Ask::List(id, count) => request(&Getdents64Request { dir_fd: fd(id), count }),
        Ask::GetXattr(id, name, buf_size) => {
            request(&FGetXattrRequest { fd: fd(id), buf_size, name: string(attribute(name)) })
        }
        Ask::SetXattr(id, name, flags, ref value) => request(&FSetXattrRequest {
            fd: fd(id),
            flags: flags % 4,
            name: string(attribute(name)),
            value: string(value),
        }),
        Ask::ListXattr(id, size) => request(&FListXattrRequest { fd: fd(id), size }),
        Ask::RemoveXattr(id, name) => request(&FRemoveXattrRequest { fd: fd(id), name: string(attribute(name)) }),
        Ask::Bind(dir, name, kind) => {
            let sock_type = u32::from(kind % 7);
            request(&BindAtRequest { create: common(dir, 0o700), sock_type, name: string(&name.bytes()) })
        }
        Ask::Listen(id, backlog) => request(&ListenRequest { fd: fd(id), backlog }),
        Ask::Accept(id) => request(&AcceptRequest { fd: fd(id) }),
        Ask::Connect(id, kind) => request(&ConnectRequest { fd: fd(id), sock_type: u32::from(kind % 7) }),
        Ask::ConnectWithCreds(id, kind, who) => request(&ConnectWithCredsRequest {
            fd: fd(id),
            sock_type: u32::from(kind % 7),
            padding: Default::default(),
            uid: Uid(i32::from(who).cast_unsigned()),
            gid: Gid(i32::from(who).cast_unsigned()),
        }),
        Ask::Raw(mid, ref payload) => (Mid(mid % 40 + 1), payload.clone()),
    }
}

fn request<'q, Q: Request + Wire<'q>>(request: &Q) -> (Mid, Vec<u8>) {
    let mut payload = Vec::new();
    request.put(&mut payload);
    (Q::MID, payload)
}

impl Name {
    /// Few, so that they meet again, and some that no directory takes.
    fn bytes(self) -> Vec<u8> {
        match self.0 % 16 {
            0 => b"..".to_vec(),
            1 => b"x/y".to_vec(),
            2 => vec![b'n'; 255],
            3 => vec![b'n'; 256],
            4 => b"0".to_vec(),
            5 => b"self".to_vec(),
            6 => vec![b's'; 107],
            7 => Vec::new(),
            other => vec![b'a' + (other - 8) % 4],
        }
    }
}

fn attribute(name: u8) -> &'static [u8] {
    match name % 6 {
        0 => b"",
        1 => b"user.a",
        2 => b"user.b",
        3 => b"security.capability",
        4 => b"system.posix_acl_access",
        _ => b"trusted.x",
    }
}

fn strings(names: &[Name]) -> StringArrayBuf {
    let names: Vec<_> = names.iter().map(|name| name.bytes()).collect();
    StringArrayBuf::new(names.iter().map(Vec::as_slice)).unwrap()
}

fn numbers(ids: &[Id]) -> Vec<FdId> {
    ids.iter().map(|id| FdId((*id).into())).collect()
}

fn string(bytes: &[u8]) -> SizedString<'_> {
    SizedString::new(bytes.get(..65_535).unwrap_or(bytes)).unwrap()
}
