//! One well-formed request of every message, to be spoiled in one respect at a time.

use gofer_protocol::codec::{Array, Data, Padding, SizedString, StringArrayBuf};
use gofer_protocol::message::{
    AcceptRequest, BindAtRequest, ChannelRequest, CloseRequest, ConnectRequest, ConnectWithCredsRequest,
    FAllocateRequest, FGetXattrRequest, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest, FStatFsRequest,
    FStatRequest, FSyncRequest, Getdents64Request, LinkAtRequest, ListenRequest, MkdirAtRequest, MknodAtRequest,
    MountRequest, OpenAtRequest, OpenCreateAtRequest, PReadRequest, PWriteRequest, ReadLinkAtRequest, RenameAt2Request,
    RenameAtRequest, SymlinkAtRequest, UnlinkAtRequest, WalkRequest, WalkStatRequest,
};
use gofer_protocol::record::{FileType, StatxMask};
use gofer_protocol::{FdId, Gid, Mid, Request, Uid, Wire};

use crate::parts::{change, encoded, new_in};

/// A request that lacks nothing.
#[derive(Clone, Debug)]
pub struct Specimen {
    /// Its message.
    pub mid: Mid,
    /// All bytes that its layout needs, and no more.
    pub payload: Vec<u8>,
    /// What its descriptor must be.
    pub takes: Takes,
    /// Whether it has a name that must be a safe one.
    pub named: bool,
}

/// What a request's descriptor must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the kinds of descriptors")]
pub enum Takes {
    /// It has none.
    None,
    /// Whatever there is, even nothing.
    Anything,
    Control,
    Open,
    ControlOrOpen,
    Bound,
}

/// A request of every message that is served, each with `fd` for every descriptor and `name` for every name.
///
/// # Panics
/// If the name does not fit a message.
#[must_use]
pub fn specimens(fd: FdId, name: &[u8]) -> Vec<Specimen> {
    let name = SizedString::new(name).expect("a name that the wire takes");
    let path = StringArrayBuf::new([name.as_bytes()]).expect("a path that the wire takes");
    let (uid, gid) = (Uid::NONE, Gid::NONE);
    let create = new_in(fd, FileType::Regular, 0o600);
    let fds = [fd];
    let fds = Array::new(&fds).expect("one");
    let data = Data::new(b"data").expect("short");
    vec![
        specimen(&MountRequest, Takes::None, false),
        specimen(&ChannelRequest, Takes::None, false),
        specimen(&FStatRequest { fd }, Takes::ControlOrOpen, false),
        specimen(&change(fd, StatxMask::default()), Takes::Control, false),
        // Walk judges its names one by one, on the way.
        specimen(&WalkRequest { dir_fd: fd, path: path.as_array() }, Takes::Control, false),
        specimen(&WalkStatRequest { dir_fd: fd, path: path.as_array() }, Takes::Control, name.as_bytes() != b""),
        specimen(&OpenAtRequest { fd, flags: 0 }, Takes::Control, false),
        specimen(&OpenCreateAtRequest { create, flags: 2, name }, Takes::Control, true),
        specimen(&CloseRequest { fds }, Takes::Anything, false),
        specimen(&FSyncRequest { fds }, Takes::Open, false),
        specimen(&PWriteRequest { offset: 0, fd, data }, Takes::Open, false),
        specimen(&PReadRequest { offset: 0, fd, count: 1 }, Takes::Open, false),
        specimen(&MkdirAtRequest { create, name }, Takes::Control, true),
        specimen(&MknodAtRequest { create, minor: 0, major: 0, name }, Takes::Control, true),
        specimen(&SymlinkAtRequest { dir_fd: fd, uid, gid, name, target: name }, Takes::Control, true),
        specimen(&LinkAtRequest { dir_fd: fd, target: fd, name }, Takes::Control, true),
        specimen(&FStatFsRequest { fd }, Takes::Control, false),
        specimen(&FAllocateRequest { fd, mode: 0, offset: 0, length: 1 }, Takes::Open, false),
        specimen(&ReadLinkAtRequest { fd }, Takes::Control, false),
        specimen(&ConnectRequest { fd, sock_type: 1 }, Takes::Control, false),
        specimen(&UnlinkAtRequest { dir_fd: fd, flags: 0, name }, Takes::Control, true),
        specimen(&RenameAtRequest { old_dir: fd, new_dir: fd, old_name: name, new_name: name }, Takes::Control, true),
        specimen(&Getdents64Request { dir_fd: fd, count: 65_536 }, Takes::Open, false),
        specimen(&FGetXattrRequest { fd, buf_size: 0, name }, Takes::Control, false),
        specimen(&FSetXattrRequest { fd, flags: 0, name, value: name }, Takes::Control, false),
        specimen(&FListXattrRequest { fd, size: 0 }, Takes::Control, false),
        specimen(&FRemoveXattrRequest { fd, name }, Takes::Control, false),
        specimen(&BindAtRequest { create, sock_type: 1, name }, Takes::Control, true),
        specimen(&ListenRequest { fd, backlog: 1 }, Takes::Bound, false),
        specimen(&AcceptRequest { fd }, Takes::Bound, false),
        specimen(&ConnectWithCredsRequest { fd, sock_type: 1, padding: Padding, uid, gid }, Takes::Control, false),
        specimen(
            &RenameAt2Request { old_dir: fd, new_dir: fd, old_name: name, new_name: name, flags: 0 },
            Takes::Control,
            true,
        ),
    ]
}

fn specimen<'q, Q: Request + Wire<'q>>(request: &Q, takes: Takes, named: bool) -> Specimen {
    Specimen { mid: Q::MID, payload: encoded(request), takes, named }
}
