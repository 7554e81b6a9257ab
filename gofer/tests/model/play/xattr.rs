//! FGetXattr, FSetXattr, FListXattr, FRemoveXattr.

use std::collections::BTreeSet;

use gofer_protocol::Errno;
use gofer_protocol::codec::{SizedString, decode};
use gofer_protocol::message::{
    FGetXattrReply, FGetXattrRequest, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest,
};

use super::{Play, same, string};
use crate::client::names;
use crate::operation::XATTRS;
use crate::tree::{Id, Kind};

impl Play {
    pub(super) fn set_xattr(&mut self, client: usize, file: usize, name: usize, value: u8) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let expected = control.alive().and_then(|()| self.with_xattrs(control.inode)).map(|inode| {
            self.tree.inodes[inode].xattrs.insert(name, value);
        });
        let value = [value];
        let value = SizedString::new(&value).expect("short");
        let request = FSetXattrRequest { fd: control.fd, flags: 0, name: string(name), value };
        same(self.clients[client].tell(&request), expected);
    }

    pub(super) fn xattr(&mut self, client: usize, file: usize, name: usize) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let value = self.tree.inodes[control.inode].xattrs.get(name).copied();
        let expected = control.alive().and_then(|()| value.ok_or(Errno::ENODATA)).map(|value| vec![value]);
        let request = FGetXattrRequest { fd: control.fd, buf_size: 0, name: string(name) };
        let answer = self.clients[client].ask(&request);
        let value = |p: Vec<u8>| decode::<FGetXattrReply<'_>>(&p).expect("a value").value.as_bytes().to_vec();
        same(answer.map(value), expected);
    }

    pub(super) fn remove_xattr(&mut self, client: usize, file: usize, name: usize) {
        let (control, name) = (self.control(client, file), XATTRS[name]);
        let expected = control
            .alive()
            .and_then(|()| self.with_xattrs(control.inode))
            .and_then(|inode| self.tree.inodes[inode].xattrs.remove(name).map(drop).ok_or(Errno::ENODATA));
        let request = FRemoveXattrRequest { fd: control.fd, name: string(name) };
        same(self.clients[client].tell(&request), expected);
    }

    pub(super) fn list_xattr(&mut self, client: usize, file: usize) {
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
}
