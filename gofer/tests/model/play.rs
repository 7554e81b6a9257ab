//! One case: a server, two clients and the model, kept in step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use gofer::{Connection, Limits, Policy, Server};
use gofer_protocol::codec::{Array, Data, SizedString, StringArrayBuf, decode};
use gofer_protocol::message::{
    CloseRequest, FGetXattrReply, FGetXattrRequest, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest,
    FStatRequest, Getdents64Request, LinkAtRequest, MkdirAtRequest, MknodAtRequest, OpenAtReply, OpenAtRequest,
    OpenCreateAtReply, OpenCreateAtRequest, PReadReply, PReadRequest, PWriteReply, PWriteRequest, ReadLinkAtReply,
    ReadLinkAtRequest, RenameAt2Request, RenameAtRequest, SetStatReply, SetStatRequest, SymlinkAtRequest,
    UnlinkAtRequest, WalkReply, WalkRequest, WalkStatReply, WalkStatRequest, WalkStatus,
};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode, Statx, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use tempfile::TempDir;

use crate::client::{Client, checked, entries, names};
use crate::operation::{NAMES, Operation, XATTRS};
use crate::tree::{Change, Control, Entry, Id, Kind, Open, Place, ROOT, Tree, safe};

const ACCESS: u32 = 3;
const TRUNCATE: u32 = 0o1000;
const REMOVE_DIRECTORY: u32 = 0x200;

/// A server, its clients, and what they should find.
pub(crate) struct Play {
    clients: [Client; 2],
    tree: Tree,
    connections: [Arc<Connection>; 2],
    dir: TempDir,
}

/// How a walk should end.
struct Walked {
    status: WalkStatus,
    found: Vec<(Id, Place)>,
}

impl Play {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = u16::try_from(dir.path().metadata().expect("metadata").permissions().mode() & 0o7777);
        let server = Server::new().expect("a server");
        let root = server.root(dir.path()).expect("a directory");
        let connect = || {
            let (ours, theirs) = UnixStream::pair().expect("a socket pair");
            let theirs = OwnedFd::from(theirs);
            let connected = server.connect(theirs, root.clone(), Policy::default(), Limits::default());
            (Client::new(ours), connected.expect("a thread"))
        };
        let ((first, one), (second, two)) = (connect(), connect());
        let clients = [first, second.over_a_channel()];
        Self { clients, tree: Tree::new(mode.expect("a mode")), connections: [one, two], dir }
    }

    /// Asks the server, and holds its answer and the host against the model.
    pub(crate) fn perform(&mut self, operation: &Operation) {
        self.ask(operation);
        self.compare_host(ROOT, self.dir.path());
    }

    /// The connections end when their clients leave.
    pub(crate) fn end(self) {
        drop(self.clients);
        self.connections.iter().for_each(|connection| connection.wait());
    }

    fn ask(&mut self, operation: &Operation) {
        use Operation as Op;
        match operation {
            Op::Walk { client, dir, path } => self.walk(*client, *dir, path),
            Op::WalkStat { client, dir, itself, path } => self.walk_stat(*client, *dir, *itself, path),
            Op::Stat { client, file } => self.stat(*client, *file),
            Op::StatOpen { client, open } => self.stat_open(*client, *open),
            Op::SetMode { client, file, mode } => self.set_mode(*client, *file, *mode),
            Op::SetSize { client, file, size } => self.set_size(*client, *file, *size),
            Op::Mkdir { client, dir, name, mode } => self.mkdir(*client, *dir, *name, *mode),
            Op::Mknod { client, dir, name, mode } => self.mknod(*client, *dir, *name, *mode),
            Op::Symlink { client, dir, name, target } => self.symlink(*client, *dir, *name, *target),
            Op::Link { client, dir, target, name } => self.link(*client, *dir, *target, *name),
            Op::Create { client, dir, name, mode, access } => self.create(*client, *dir, *name, *mode, *access),
            Op::Open { client, file, flags } => self.open(*client, *file, *flags),
            Op::Close { client, file } => self.close(*client, *file),
            Op::CloseOpen { client, open } => self.close_open(*client, *open),
            Op::Write { client, open, offset, data } => self.write(*client, *open, *offset, data),
            Op::Read { client, open, offset, count } => self.read(*client, *open, *offset, *count),
            Op::List { client, open } => self.list(*client, *open),
            Op::ReadLink { client, file } => self.read_link(*client, *file),
            Op::Unlink { client, dir, name, directory } => self.unlink(*client, *dir, *name, *directory),
            Op::Rename { client, old, new } => self.rename(*client, *old, *new, None),
            Op::NoReplace { client, old, new } => self.rename(*client, *old, *new, Some(1)),
            Op::Exchange { client, old, new } => self.rename(*client, *old, *new, Some(2)),
            Op::SetXattr { client, file, name, value } => self.set_xattr(*client, *file, *name, *value),
            Op::Xattr { client, file, name } => self.xattr(*client, *file, *name),
            Op::RemoveXattr { client, file, name } => self.remove_xattr(*client, *file, *name),
            Op::ListXattr { client, file } => self.list_xattr(*client, *file),
        }
    }

    fn control(&self, client: usize, index: usize) -> Control {
        let controls = &self.clients[client].controls;
        controls[index % controls.len()]
    }

    fn opened(&self, client: usize, index: usize) -> Option<Open> {
        let opens = &self.clients[client].opens;
        opens.get(index % opens.len().max(1)).copied()
    }

    fn walk(&mut self, client: usize, dir: usize, path: &[usize]) {
        let start = self.control(client, dir);
        let expected = self.walked(&start, path);
        let path = components(path.iter().map(|name| NAMES[*name]));
        let answer = self.clients[client].ask(&WalkRequest { dir_fd: start.fd, path: path.as_array() });
        let answer = answer.map(|payload| {
            let WalkReply { status, inodes } = decode(&payload).expect("a whole reply");
            (status, inodes.iter().collect::<Vec<_>>())
        });
        let (Ok((status, inodes)), Ok(walked)) = (&answer, &expected) else {
            return same(answer.map(drop), expected.map(drop));
        };
        assert_eq!((*status, inodes.len()), (walked.status, walked.found.len()));
        for (inode, (id, place)) in inodes.iter().zip(&walked.found) {
            self.adopt(client, inode, *id, *place);
        }
    }

    fn walked(&self, start: &Control, path: &[usize]) -> Result<Walked, Errno> {
        self.tree.entries(start.inode)?;
        let mut walked = Walked { status: WalkStatus::SUCCESS, found: Vec::new() };
        for name in path.iter().map(|name| NAMES[*name]) {
            safe(name)?;
            let (current, place) = walked.found.last().copied().unwrap_or((start.inode, start.place));
            let entry = (current, name);
            match self.tree.inodes[current].kind {
                Kind::Link(_) => {
                    walked.status = WalkStatus::SYMLINK;
                    break;
                }
                Kind::File(_) => return Err(Errno::ENOTDIR),
                Kind::Dir(_) => {}
            }
            let Some(next) = self.tree.find(entry).filter(|_| place != Place::Deleted) else {
                walked.status = WalkStatus::MISSING;
                break;
            };
            walked.found.push((next, Place::At(current, name)));
        }
        Ok(walked)
    }

    fn walk_stat(&mut self, client: usize, dir: usize, itself: bool, path: &[usize]) {
        let start = self.control(client, dir);
        let expected = self.stats(&start, itself, path);
        let first = itself.then_some("");
        let path = components(first.into_iter().chain(path.iter().map(|name| NAMES[*name])));
        let answer = self.clients[client].ask(&WalkStatRequest { dir_fd: start.fd, path: path.as_array() });
        let answer = answer.map(|payload| {
            let WalkStatReply { stats } = decode(&payload).expect("a whole reply");
            stats.iter().collect::<Vec<_>>()
        });
        let (Ok(stats), Ok(ids)) = (&answer, &expected) else { return same(answer.map(drop), expected.map(drop)) };
        assert_eq!(stats.len(), ids.len());
        for (stat, id) in stats.iter().zip(ids) {
            self.check(stat, *id);
        }
    }

    fn stats(&self, start: &Control, itself: bool, path: &[usize]) -> Result<Vec<Id>, Errno> {
        path.iter().try_for_each(|name| safe(NAMES[*name]))?;
        let mut found: Vec<Id> = itself.then_some(start.inode).into_iter().collect();
        if path.is_empty() {
            return Ok(found);
        }
        self.tree.entries(start.inode)?;
        let mut current = start.inode;
        for name in path.iter().map(|name| NAMES[*name]) {
            match self.tree.inodes[current].kind {
                Kind::Link(_) => break,
                Kind::File(_) => return Err(Errno::ENOTDIR),
                Kind::Dir(_) => {}
            }
            let Some(next) = self.tree.find((current, name)) else { break };
            found.push(next);
            current = next;
        }
        Ok(found)
    }

    fn stat(&mut self, client: usize, file: usize) {
        let Control { fd, inode, .. } = self.control(client, file);
        let stat: Statx = self.clients[client].get(&FStatRequest { fd }).expect("attributes");
        self.check(&stat, inode);
    }

    fn stat_open(&mut self, client: usize, open: usize) {
        let Some(Open { fd, control, .. }) = self.opened(client, open) else { return };
        let stat: Statx = self.clients[client].get(&FStatRequest { fd }).expect("attributes");
        self.check(&stat, control.inode);
    }

    fn set_mode(&mut self, client: usize, file: usize, mode: u16) {
        let Control { fd, inode, .. } = self.control(client, file);
        let inode = &mut self.tree.inodes[inode];
        let expected = match inode.kind {
            Kind::Link(_) => (StatxMask::MODE, Errno::EOPNOTSUPP.raw()),
            _ => {
                inode.mode = mode;
                (StatxMask(0), 0)
            }
        };
        let request = SetStatRequest { mode: mode.into(), ..nothing(fd, StatxMask::MODE) };
        let reply: SetStatReply = self.clients[client].get(&request).expect("a reply");
        assert_eq!((reply.failure_mask, reply.failure_errno), expected);
    }

    fn set_size(&mut self, client: usize, file: usize, size: u64) {
        let Control { fd, inode, .. } = self.control(client, file);
        let expected = match &mut self.tree.inodes[inode].kind {
            Kind::File(content) => {
                content.resize(usize::try_from(size).expect("small"), 0);
                (StatxMask(0), 0)
            }
            Kind::Dir(_) => (StatxMask::SIZE, Errno::EISDIR.raw()),
            Kind::Link(_) => (StatxMask::SIZE, Errno::ELOOP.raw()),
        };
        let request = SetStatRequest { size, ..nothing(fd, StatxMask::SIZE) };
        let reply: SetStatReply = self.clients[client].get(&request).expect("a reply");
        assert_eq!((reply.failure_mask, reply.failure_errno), expected);
    }

    fn mkdir(&mut self, client: usize, dir: usize, name: usize, mode: u16) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let expected = self.made(&dir, name, Kind::Dir(BTreeMap::new()), mode);
        let request = MkdirAtRequest { create: create(dir.fd, FileType::Directory, mode), name: string(name) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    fn mknod(&mut self, client: usize, dir: usize, name: usize, mode: u16) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let expected = self.made(&dir, name, Kind::File(Vec::new()), mode);
        let create = create(dir.fd, FileType::Regular, mode);
        let request = MknodAtRequest { create, minor: 0, major: 0, name: string(name) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    fn symlink(&mut self, client: usize, dir: usize, name: usize, target: usize) {
        let (dir, name, target) = (self.control(client, dir), NAMES[name], NAMES[target]);
        let expected = self.made(&dir, name, Kind::Link(target), 0o777);
        let (uid, gid) = (Uid::NONE, Gid::NONE);
        let request = SymlinkAtRequest { dir_fd: dir.fd, uid, gid, name: string(name), target: string(target) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    fn link(&mut self, client: usize, dir: usize, target: usize, name: usize) {
        let (dir, target, name) = (self.control(client, dir), self.control(client, target), NAMES[name]);
        let entry = (dir.inode, name);
        let expected = self.linkable(&dir, &target, name).and_then(|()| self.tree.link(entry, target.inode));
        let request = LinkAtRequest { dir_fd: dir.fd, target: target.fd, name: string(name) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, entry);
    }

    fn linkable(&self, dir: &Control, target: &Control, name: &str) -> Result<(), Errno> {
        safe(name)?;
        self.tree.entries(dir.inode)?;
        if self.tree.is_dir(target.inode) {
            return Err(Errno::EPERM);
        }
        target.alive()?;
        dir.alive()
    }

    fn create(&mut self, client: usize, dir: usize, name: usize, mode: u16, access: u32) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let expected = self.made(&dir, name, Kind::File(Vec::new()), mode);
        let create = create(dir.fd, FileType::Regular, mode);
        let request = OpenCreateAtRequest { create, flags: access, name: string(name) };
        let answer: Result<OpenCreateAtReply, Errno> = self.clients[client].get(&request);
        let open_fd = answer.map(|reply| reply.open_fd);
        self.adopt_if_made(client, answer.map(|reply| reply.child), expected, (dir.inode, name));
        if let (Ok(fd), Some(control)) = (open_fd, self.clients[client].controls.last().copied()) {
            self.clients[client].opens.push(Open { fd: checked(fd), access, control });
        }
    }

    fn made(&mut self, dir: &Control, name: &'static str, kind: Kind, mode: u16) -> Result<Id, Errno> {
        self.tree.changeable(dir, name)?;
        self.tree.add((dir.inode, name), kind, mode)
    }

    fn adopt_if_made(&mut self, client: usize, answer: Result<Inode, Errno>, expected: Result<Id, Errno>, at: Entry) {
        match (answer, expected) {
            (Ok(inode), Ok(id)) => self.adopt(client, &inode, id, Place::At(at.0, at.1)),
            (answer, expected) => same(answer.map(drop), expected.map(drop)),
        }
    }

    fn open(&mut self, client: usize, file: usize, flags: u32) {
        let control = self.control(client, file);
        let changes = flags & (ACCESS | TRUNCATE) != 0;
        let expected = match &mut self.tree.inodes[control.inode].kind {
            Kind::Dir(_) if changes => Err(Errno::EISDIR),
            Kind::Link(_) => Err(Errno::EINVAL),
            Kind::File(content) if flags & TRUNCATE != 0 => {
                content.clear();
                Ok(())
            }
            Kind::Dir(_) | Kind::File(_) => Ok(()),
        };
        let answer: Result<OpenAtReply, Errno> = self.clients[client].get(&OpenAtRequest { fd: control.fd, flags });
        same(answer.map(drop), expected);
        if let Ok(OpenAtReply { open_fd }) = answer {
            self.clients[client].opens.push(Open { fd: checked(open_fd), access: flags & ACCESS, control });
        }
    }

    /// Not the root, so that there always is something to start from.
    fn close(&mut self, client: usize, file: usize) {
        let controls = &mut self.clients[client].controls;
        if controls.len() > 1 {
            let closed = controls.remove(1 + file % (controls.len() - 1)).fd;
            self.closed(client, closed);
        }
    }

    fn close_open(&mut self, client: usize, open: usize) {
        let opens = &mut self.clients[client].opens;
        if !opens.is_empty() {
            let closed = opens.remove(open % opens.len()).fd;
            self.closed(client, closed);
        }
    }

    fn closed(&mut self, client: usize, fd: FdId) {
        let fds = [fd];
        let client = &mut self.clients[client];
        client.tell(&CloseRequest { fds: Array::new(&fds).expect("one") }).expect("close never fails");
        assert_eq!(client.ask(&FStatRequest { fd }), Err(Errno::EBADF));
    }

    fn write(&mut self, client: usize, open: usize, offset: u64, data: &[u8]) {
        let Some(Open { fd, access, control }) = self.opened(client, open) else { return };
        let expected = match &mut self.tree.inodes[control.inode].kind {
            Kind::File(content) if matches!(access, 1 | 2) => {
                overwrite(content, usize::try_from(offset).expect("small"), data);
                Ok(data.len() as u64)
            }
            _ => Err(Errno::EBADF),
        };
        let data = Data::new(data).expect("short");
        let answer: Result<PWriteReply, Errno> = self.clients[client].get(&PWriteRequest { offset, fd, data });
        same(answer.map(|reply| reply.count), expected);
    }

    fn read(&mut self, client: usize, open: usize, offset: u64, count: u32) {
        let Some(Open { fd, access, control }) = self.opened(client, open) else { return };
        let expected = match &self.tree.inodes[control.inode].kind {
            _ if !matches!(access, 0 | 2) => Err(Errno::EBADF),
            Kind::File(content) => {
                Ok(content.iter().skip(to_usize(offset)).take(to_usize(count.into())).copied().collect())
            }
            _ if count == 0 => Ok(Vec::new()),
            _ => Err(Errno::EISDIR),
        };
        let answer = self.clients[client].ask(&PReadRequest { offset, fd, count });
        let data = |payload: Vec<u8>| decode::<PReadReply<'_>>(&payload).expect("data").data.as_bytes().to_vec();
        same(answer.map(data), expected);
    }

    fn list(&mut self, client: usize, open: usize) {
        let Some(Open { fd, control, .. }) = self.opened(client, open) else { return };
        let expected = self.tree.entries(control.inode).and_then(|listed| control.alive().map(|()| listed));
        let expected = expected.map(|listed| {
            let described = |(name, id): (&&'static str, &Id)| {
                (
                    String::from(*name),
                    self.tree.inodes[*id].kind.file_type().dirent_type(),
                    self.tree.inodes[*id].number,
                )
            };
            listed.iter().map(described).collect::<Vec<_>>()
        });
        let ask =
            |client: &mut Client, count| client.ask(&Getdents64Request { dir_fd: fd, count }).map(|p| entries(&p));
        let answer = ask(&mut self.clients[client], -65_536);
        let (Ok(listed), Ok(known)) = (&answer, &expected) else { return same(answer.map(drop), expected.map(drop)) };
        assert_eq!(ask(&mut self.clients[client], 65_536), Ok(Vec::new()), "that was all");
        let found: BTreeSet<_> = listed.iter().map(|entry| &entry.0).collect();
        assert_eq!(found, known.iter().map(|entry| &entry.0).collect());
        for (name, file_type, number) in known {
            let entry = listed.iter().find(|entry| entry.0 == *name).expect("it is in both");
            assert_eq!(entry.1, *file_type, "type of {name}");
            assert!(number.is_none_or(|number| number == entry.2), "inode of {name}");
        }
    }

    fn read_link(&mut self, client: usize, file: usize) {
        let control = self.control(client, file);
        let expected = match self.tree.inodes[control.inode].kind {
            Kind::Link(target) => control.alive().map(|()| target.as_bytes().to_vec()),
            _ => Err(Errno::EINVAL),
        };
        let answer = self.clients[client].ask(&ReadLinkAtRequest { fd: control.fd });
        let target = |p: Vec<u8>| decode::<ReadLinkAtReply<'_>>(&p).expect("a target").target.as_bytes().to_vec();
        same(answer.map(target), expected);
    }

    fn unlink(&mut self, client: usize, dir: usize, name: usize, directory: bool) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let checked = self.tree.changeable(&dir, name);
        let expected = checked.and_then(|()| self.tree.remove((dir.inode, name), directory));
        let flags = if directory { REMOVE_DIRECTORY } else { 0 };
        let answer = self.clients[client].tell(&UnlinkAtRequest { dir_fd: dir.fd, flags, name: string(name) });
        same(answer, expected.map(drop));
        self.follow(expected);
    }

    fn rename(&mut self, client: usize, old: (usize, usize), new: (usize, usize), flags: Option<u32>) {
        let (old_dir, old_name) = (self.control(client, old.0), NAMES[old.1]);
        let (new_dir, new_name) = (self.control(client, new.0), NAMES[new.1]);
        let expected = self.renamed((&old_dir, old_name), (&new_dir, new_name), flags.unwrap_or(0));
        let (old_dir, new_dir) = (old_dir.fd, new_dir.fd);
        let (old_name, new_name) = (string(old_name), string(new_name));
        let client = &mut self.clients[client];
        let answer = match flags {
            None => client.tell(&RenameAtRequest { old_dir, new_dir, old_name, new_name }),
            Some(flags) => client.tell(&RenameAt2Request { old_dir, new_dir, old_name, new_name, flags }),
        };
        same(answer, expected.map(drop));
        self.follow(expected);
    }

    fn renamed(
        &mut self,
        (old_dir, old_name): (&Control, &'static str),
        (new_dir, new_name): (&Control, &'static str),
        flags: u32,
    ) -> Result<Change, Errno> {
        safe(old_name)?;
        safe(new_name)?;
        self.tree.entries(old_dir.inode)?;
        self.tree.entries(new_dir.inode)?;
        old_dir.alive()?;
        new_dir.alive()?;
        let (old, new) = ((old_dir.inode, old_name), (new_dir.inode, new_name));
        match flags {
            _ if old == new => Ok(Change::None),
            2 => self.tree.exchange(old, new),
            _ => self.tree.rename(old, new, flags == 0),
        }
    }

    /// Moves every descriptor's place along.
    fn follow(&mut self, change: Result<Change, Errno>) {
        let Ok(change) = change else { return };
        for client in &mut self.clients {
            let of_opens = client.opens.iter_mut().map(|open| &mut open.control);
            for control in client.controls.iter_mut().chain(of_opens) {
                control.place = change.follow(control.place);
            }
            client.compare_places();
        }
    }

    fn set_xattr(&mut self, client: usize, file: usize, name: usize, value: u8) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let expected = control.alive().and_then(|()| self.with_xattrs(control.inode)).map(|inode| {
            self.tree.inodes[inode].xattrs.insert(name, value);
        });
        let value = [value];
        let value = SizedString::new(&value).expect("short");
        let request = FSetXattrRequest { fd: control.fd, flags: 0, name: string(name), value };
        same(self.clients[client].tell(&request), expected);
    }

    fn xattr(&mut self, client: usize, file: usize, name: usize) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let value = self.tree.inodes[control.inode].xattrs.get(name).copied();
        let expected = control.alive().and_then(|()| value.ok_or(Errno::ENODATA)).map(|value| vec![value]);
        let request = FGetXattrRequest { fd: control.fd, buf_size: 0, name: string(name) };
        let answer = self.clients[client].ask(&request);
        let value = |p: Vec<u8>| decode::<FGetXattrReply<'_>>(&p).expect("a value").value.as_bytes().to_vec();
        same(answer.map(value), expected);
    }

    fn remove_xattr(&mut self, client: usize, file: usize, name: usize) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let expected = control
            .alive()
            .and_then(|()| self.with_xattrs(control.inode))
            .and_then(|inode| self.tree.inodes[inode].xattrs.remove(name).map(drop).ok_or(Errno::ENODATA));
        let request = FRemoveXattrRequest { fd: control.fd, name: string(name) };
        same(self.clients[client].tell(&request), expected);
    }

    fn list_xattr(&mut self, client: usize, file: usize) {
        let control = self.control(client, file);
        let known = self.tree.inodes[control.inode].xattrs.keys().map(|name| String::from(*name));
        let expected = control.alive().map(|()| known.collect::<BTreeSet<_>>());
        let answer = self.clients[client].ask(&FListXattrRequest { fd: control.fd, size: 0 });
        same(answer.map(|payload| names(&payload).into_iter().collect()), expected);
    }

    /// User attributes are for files and directories.
    fn with_xattrs(&self, inode: Id) -> Result<Id, Errno> {
        match self.tree.inodes[inode].kind {
            Kind::Link(_) => Err(Errno::EPERM),
            _ => Ok(inode),
        }
    }

    /// Keeps what the client was given.
    fn adopt(&mut self, client: usize, inode: &Inode, id: Id, place: Place) {
        self.check(&inode.stat, id);
        self.clients[client].controls.push(Control { fd: checked(inode.control_fd), inode: id, place });
    }

    /// Holds attributes against the model.
    fn check(&mut self, stat: &Statx, id: Id) {
        let links = self.tree.links(id);
        let inode = &mut self.tree.inodes[id];
        assert_eq!(stat.mode.file_type(), Some(inode.kind.file_type()));
        assert_eq!(stat.mode.permissions(), inode.mode);
        assert_eq!(*inode.number.get_or_insert(stat.ino), stat.ino, "an inode keeps its number");
        let size = match &inode.kind {
            Kind::File(content) => content.len(),
            Kind::Link(target) => target.len(),
            // Sizes and links of directories are the file system's own.
            Kind::Dir(_) => return,
        };
        assert_eq!((to_usize(stat.size), to_usize(stat.nlink.into())), (size, links));
    }

    /// Holds the host's view of everything below `path` against the model.
    fn compare_host(&self, dir: Id, path: &Path) {
        let known = self.tree.entries(dir).expect("a directory");
        let found: BTreeSet<_> = std::fs::read_dir(path)
            .expect("a listing")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("plain"))
            .collect();
        assert_eq!(found, known.keys().map(|name| String::from(*name)).collect(), "in {}", path.display());
        for (name, id) in known {
            let inode = &self.tree.inodes[*id];
            let path = path.join(name);
            let metadata = path.symlink_metadata().expect("metadata");
            assert_eq!(metadata.mode() & 0o7777, u32::from(inode.mode), "mode of {}", path.display());
            match &inode.kind {
                Kind::File(content) => {
                    assert!(metadata.is_file());
                    assert_eq!(to_usize(metadata.nlink()), self.tree.links(*id), "links of {}", path.display());
                    assert_eq!(&std::fs::read(&path).expect("content"), content, "content of {}", path.display());
                }
                Kind::Link(target) => assert_eq!(std::fs::read_link(&path).expect("a link"), Path::new(target)),
                Kind::Dir(_) => self.compare_host(*id, &path),
            }
        }
    }
}

/// Fails unless answer and model agree.
fn same<T: Debug + PartialEq>(answer: Result<T, Errno>, expected: Result<T, Errno>) {
    assert_eq!(answer, expected, "the server's answer, and the model's");
}

fn overwrite(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}

fn components<'n>(names: impl Iterator<Item = &'n str>) -> StringArrayBuf {
    StringArrayBuf::new(names.map(str::as_bytes)).expect("short names")
}

fn string(text: &str) -> SizedString<'_> {
    SizedString::new(text.as_bytes()).expect("a short name")
}

fn create(dir: FdId, file_type: FileType, mode: u16) -> CreateCommon {
    CreateCommon::new(dir, Uid::NONE, Gid::NONE, FileMode::new(file_type, mode))
}

fn nothing(fd: FdId, mask: StatxMask) -> SetStatRequest {
    let (atime, mtime) = (Timespec::default(), Timespec::default());
    SetStatRequest { fd, mask, mode: 0, uid: Uid::NONE, gid: Gid::NONE, size: 0, atime, mtime }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("small")
}
