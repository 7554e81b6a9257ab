//! Walk, WalkStat, ReadLinkAt.

use gofer_protocol::Errno;
use gofer_protocol::codec::{StringArrayBuf, decode};
use gofer_protocol::message::{
    ReadLinkAtReply, ReadLinkAtRequest, WalkReply, WalkRequest, WalkStatReply, WalkStatRequest, WalkStatus,
};

use super::{Play, same};
use crate::operation::NAMES;
use crate::tree::{Control, Id, Kind, Place, safe};

/// How a walk should end.
struct Walked {
    status: WalkStatus,
    found: Vec<(Id, Place)>,
}

impl Play {
    pub(super) fn walk(&mut self, client: usize, dir: usize, path: &[usize]) {
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

    pub(super) fn walk_stat(&mut self, client: usize, dir: usize, itself: bool, path: &[usize]) {
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

    pub(super) fn read_link(&mut self, client: usize, file: usize) {
        let control = self.control(client, file);
        let expected = match self.tree.inodes[control.inode].kind {
            Kind::Link(target) => control.alive().map(|()| target.as_bytes().to_vec()),
            _ => Err(Errno::EINVAL),
        };
        let answer = self.clients[client].ask(&ReadLinkAtRequest { fd: control.fd });
        let target = |p: Vec<u8>| decode::<ReadLinkAtReply<'_>>(&p).expect("a target").target.as_bytes().to_vec();
        same(answer.map(target), expected);
    }
}

fn components<'n>(names: impl Iterator<Item = &'n str>) -> StringArrayBuf {
    StringArrayBuf::new(names.map(str::as_bytes)).expect("short names")
}
