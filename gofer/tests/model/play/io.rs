//! PRead, PWrite.

use gofer_protocol::Errno;
use gofer_protocol::codec::{Data, decode};
use gofer_protocol::message::{PReadReply, PReadRequest, PWriteReply, PWriteRequest};

use super::{Play, same, to_usize};
use crate::tree::{Kind, Open};

impl Play {
    pub(super) fn write(&mut self, client: usize, open: usize, offset: u64, data: &[u8]) {
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

    pub(super) fn read(&mut self, client: usize, open: usize, offset: u64, count: u32) {
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
