//! UnlinkAt, RenameAt, RenameAt2.

use gofer_protocol::Errno;
use gofer_protocol::message::{RenameAt2Request, RenameAtRequest, UnlinkAtRequest};

use super::{Play, same, string};
use crate::operation::NAMES;
use crate::tree::{Change, Control, safe};

const REMOVE_DIRECTORY: u32 = 0x200;

impl Play {
    pub(super) fn unlink(&mut self, client: usize, dir: usize, name: usize, directory: bool) {
        let (dir, name) = (self.control(client, dir), NAMES[name]);
        let checked = self.tree.changeable(&dir, name);
        let expected = checked.and_then(|()| self.tree.remove((dir.inode, name), directory));
        let flags = if directory { REMOVE_DIRECTORY } else { 0 };
        let answer = self.clients[client].tell(&UnlinkAtRequest { dir_fd: dir.fd, flags, name: string(name) });
        same(answer, expected.map(drop));
        self.follow(expected);
    }

    pub(super) fn rename(&mut self, client: usize, old: (usize, usize), new: (usize, usize), flags: Option<u32>) {
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
}
