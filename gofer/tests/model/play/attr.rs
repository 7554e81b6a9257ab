//! FStat, SetStat.

use gofer_protocol::message::{FStatRequest, SetStatReply, SetStatRequest};
use gofer_protocol::record::{Statx, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::Play;
use crate::tree::{Control, Kind, Open};

impl Play {
    pub(super) fn stat(&mut self, client: usize, file: usize) {
        let Control { fd, inode, .. } = self.control(client, file);
        let stat: Statx = self.clients[client].get(&FStatRequest { fd }).expect("attributes");
        self.check(&stat, inode);
    }

    pub(super) fn stat_open(&mut self, client: usize, open: usize) {
        let Some(Open { fd, control, .. }) = self.opened(client, open) else { return };
        let stat: Statx = self.clients[client].get(&FStatRequest { fd }).expect("attributes");
        self.check(&stat, control.inode);
    }

    pub(super) fn set_mode(&mut self, client: usize, file: usize, mode: u16) {
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

    pub(super) fn set_size(&mut self, client: usize, file: usize, size: u64) {
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
}

fn nothing(fd: FdId, mask: StatxMask) -> SetStatRequest {
    let (atime, mtime) = (Timespec::default(), Timespec::default());
    SetStatRequest { fd, mask, mode: 0, uid: Uid::NONE, gid: Gid::NONE, size: 0, atime, mtime }
}
