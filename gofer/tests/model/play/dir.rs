//! Getdents64.

use std::collections::BTreeSet;

use gofer_protocol::message::Getdents64Request;

use super::{Play, same};
use crate::client::{Client, entries};
use crate::tree::{Id, Open};

impl Play {
    pub(super) fn list(&mut self, client: usize, open: usize) {
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
}
