//! MkdirAt, MknodAt, SymlinkAt, LinkAt.

use std::collections::BTreeMap;

use gofer_protocol::message::{LinkAtRequest, MkdirAtRequest, MknodAtRequest, SymlinkAtRequest};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{Play, same, string};
use crate::operation::NAMES;
use crate::tree::{Control, Entry, Id, Kind, Place, safe};

impl Play {
    pub(super) fn mkdir(&mut self, client: usize, dir: usize, name: usize, mode: u16) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let expected = self.made(&dir, name, Kind::Dir(BTreeMap::new()), mode);
        let request = MkdirAtRequest { create: create(dir.fd, FileType::Directory, mode), name: string(name) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    pub(super) fn mknod(&mut self, client: usize, dir: usize, name: usize, mode: u16) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let expected = self.made(&dir, name, Kind::File(Vec::new()), mode);
        let create = create(dir.fd, FileType::Regular, mode);
        let request = MknodAtRequest { create, minor: 0, major: 0, name: string(name) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    pub(super) fn symlink(&mut self, client: usize, dir: usize, name: usize, target: usize) {
        let (dir, name, target) = (self.control(client, dir), NAMES[name], NAMES[target]);
        let expected = self.made(&dir, name, Kind::Link(target), 0o777);
        let (uid, gid) = (Uid::NONE, Gid::NONE);
        let request = SymlinkAtRequest { dir_fd: dir.fd, uid, gid, name: string(name), target: string(target) };
        let answer: Result<Inode, Errno> = self.clients[client].get(&request);
        self.adopt_if_made(client, answer, expected, (dir.inode, name));
    }

    pub(super) fn link(&mut self, client: usize, dir: usize, target: usize, name: usize) {
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

    pub(super) fn made(&mut self, dir: &Control, name: &'static str, kind: Kind, mode: u16) -> Result<Id, Errno> {
        self.tree.changeable(dir, name)?;
        self.tree.add((dir.inode, name), kind, mode)
    }

    pub(super) fn adopt_if_made(
        &mut self,
        client: usize,
        answer: Result<Inode, Errno>,
        expected: Result<Id, Errno>,
        at: Entry,
    ) {
        match (answer, expected) {
            (Ok(inode), Ok(id)) => self.adopt(client, &inode, id, Place::At(at.0, at.1)),
            (answer, expected) => same(answer.map(drop), expected.map(drop)),
        }
    }
}

pub(super) fn create(dir: FdId, file_type: FileType, mode: u16) -> CreateCommon {
    CreateCommon::new(dir, Uid::NONE, Gid::NONE, FileMode::new(file_type, mode))
}
