//! One case: a server, two clients and the model, kept in step.

mod attr;
mod create;
mod dir;
mod io;
mod open;
mod remove;
mod walk;
mod xattr;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use gofer::{Connection, Limits, Policy, Server};
use gofer_protocol::Errno;
use gofer_protocol::codec::SizedString;
use gofer_protocol::record::{Inode, Statx};
use tempfile::TempDir;

use crate::client::{Client, checked};
use crate::operation::Operation;
use crate::tree::{Control, Id, Kind, Open, Place, ROOT, Tree};

/// A server, its clients, and what they should find.
pub(crate) struct Play {
    clients: [Client; 2],
    tree: Tree,
    connections: [Arc<Connection>; 2],
    dir: TempDir,
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
#[expect(clippy::needless_pass_by_value, reason = "both are used up by being compared")]
fn same<T: Debug + PartialEq>(answer: Result<T, Errno>, expected: Result<T, Errno>) {
    assert_eq!(answer, expected, "the server's answer, and the model's");
}

fn string(text: &str) -> SizedString<'_> {
    SizedString::new(text.as_bytes()).expect("a short name")
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("small")
}
