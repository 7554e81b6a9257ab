//! OpenAt, OpenCreateAt, Close.

use gofer_protocol::codec::Array;
use gofer_protocol::message::{
    CloseRequest, FStatRequest, OpenAtReply, OpenAtRequest, OpenCreateAtReply, OpenCreateAtRequest,
};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use super::create::create;
use super::{Play, same, string};
use crate::client::checked;
use crate::operation::NAMES;
use crate::tree::{Kind, Open};

const ACCESS: u32 = 3;
const TRUNCATE: u32 = 0o1000;

impl Play {
    pub(super) fn create(&mut self, client: usize, dir: usize, name: usize, mode: u16, access: u32) {
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

    pub(super) fn open(&mut self, client: usize, file: usize, flags: u32) {
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
    pub(super) fn close(&mut self, client: usize, file: usize) {
        let controls = &mut self.clients[client].controls;
        if controls.len() > 1 {
            let closed = controls.remove(1 + file % (controls.len() - 1)).fd;
            self.closed(client, closed);
        }
    }

    pub(super) fn close_open(&mut self, client: usize, open: usize) {
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
}
