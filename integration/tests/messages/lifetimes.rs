//! How long descriptors, nodes and inodes live, and who shares them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gofer_integration::{Ask, Exchange, Listening, Raw, new_in, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use super::{READ, READ_WRITE, files};

/// One server, two clients of one tree.
struct Shared {
    first: Raw,
    second: Raw,
    roots: [FdId; 2],
    _server: Listening,
}

impl Shared {
    fn with(prepare: impl FnOnce(&Path)) -> Self {
        let server = Listening::with(&[], prepare);
        let ((first, one), (second, two)) = (server.client(), server.client());
        Self { first, second, roots: [one, two], _server: server }
    }

    fn clients(&self) -> [(&dyn Exchange, FdId); 2] {
        [(&self.first, self.roots[0]), (&self.second, self.roots[1])]
    }
}

#[test]
fn numbers_count_up_and_are_never_used_again() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let mut last = t.root;
            for _ in 0..200 {
                let fd = t.client.walk_to(t.root, "f");
                let (open, _) = t.client.open(fd, READ).expect("open");
                assert!(fd > last && open > fd);
                t.client.close(&[fd, open]);
                last = open;
            }
        },
    );
}

#[test]
fn an_open_descriptor_keeps_its_file_from_being_forgotten() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(control, READ_WRITE).expect("open");
            t.client.close(&[control, t.root]);
            assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
            let root = t.client.mounted().expect("mount").0.control_fd;
            // Still tracked: the removal reaches it.
            t.client.unlink(root, "f").expect("unlink");
            assert_eq!(t.client.fstat(open).expect("stat").nlink, 0);
        },
    );
}

#[test]
fn a_control_descriptor_keeps_its_inodes_number_from_meaning_another_file() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let held = t.client.find(t.root, "f");
            std::fs::remove_file(t.host("f")).expect("remove");
            for number in 0..50 {
                let name = format!("new-{number}");
                files(t.served.path(), &[&name]);
                assert_ne!(t.metadata(&name).ino(), held.stat.ino);
            }
            assert_eq!(t.client.fstat(held.control_fd).expect("stat").ino, held.stat.ino);
        },
    );
}

#[test]
fn the_type_of_a_descriptor_stays_whatever_has_its_name() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            std::fs::remove_file(t.host("f")).expect("remove");
            std::fs::create_dir(t.host("f")).expect("a directory");
            assert_eq!(t.client.fstat(fd).expect("stat").mode.file_type(), Some(FileType::Regular));
            assert_eq!(t.client.walk(fd, &["x"]), Err(Errno::ENOTDIR));
            assert_eq!(t.client.mkdir(new_in(fd, FileType::Directory, 0o700), "x"), Err(Errno::ENOTDIR));
            assert!(t.client.open(fd, READ_WRITE).is_ok());
            assert_eq!(t.client.find(t.root, "f").stat.mode.file_type(), Some(FileType::Directory));
            // A directory under a name that is tracked as a file's is removed as what it is.
            assert_eq!(t.client.unlink(t.root, "f"), Err(Errno::EISDIR));
            assert_eq!(t.client.rmdir(t.root, "f"), Ok(()));
        },
    );
}

#[test]
fn numbers_are_a_connections_own() {
    let shared = Shared::with(|dir| files(dir, &["f"]));
    let [(first, root), (second, _)] = shared.clients();
    let fd = first.walk_to(root, "f");
    assert_eq!(second.fstat(fd), Err(Errno::EBADF));
    second.close(&[fd]);
    assert!(first.fstat(fd).is_ok());
}

#[test]
fn what_one_connection_removes_is_removed_for_the_other() {
    let shared = Shared::with(|dir| files(dir, &["f", "g"]));
    let [(first, one), (second, two)] = shared.clients();
    let (f, g) = (second.walk_to(two, "f"), second.walk_to(two, "g"));
    first.unlink(one, "f").expect("unlink");
    assert_eq!(second.get_xattr(f, 0, "user.k"), Err(Errno::EINVAL));
    first.rename((one, "g"), (one, "h")).expect("rename");
    assert_eq!(second.get_xattr(g, 0, "user.k"), Err(Errno::ENODATA));
    first.unlink(one, "h").expect("unlink");
    assert_eq!(second.get_xattr(g, 0, "user.k"), Err(Errno::EINVAL), "it followed the rename");
}

#[test]
fn a_connection_that_ends_takes_only_its_own_along() {
    let shared = Shared::with(|dir| files(dir, &["f"]));
    let fd = shared.second.walk_to(shared.roots[1], "f");
    let Shared { first, second, _server, .. } = shared;
    let _ = first.walk_to(FdId(1), "f");
    drop(first);
    let client: &dyn Exchange = &second;
    assert!(client.fstat(fd).is_ok());
    assert!(client.open(fd, READ_WRITE).is_ok());
}
