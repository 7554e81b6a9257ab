//! Another process of the host swaps names for symbolic links, again and again, while requests run.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gofer_integration::client::creation;
use gofer_integration::raw::string;
use gofer_integration::{Actor, Client, Outside, Requests, Served, each_way};
use gofer_protocol::message::{BindAtRequest, MkdirAtRequest, MknodAtRequest, OpenCreateAtRequest, WalkStatus};
use gofer_protocol::record::{CreateCommon, FileType, Inode};
use gofer_protocol::{FdId, Gid, Uid};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};

/// How often a request is tried against the other process. Enough for each of its outcomes to come up.
const TRIES: usize = 1500;

/// Swaps two names atomically for as long as it lives.
fn swap(dir: &Path, one: &str, other: &str) -> Actor {
    let (one, other): (PathBuf, PathBuf) = (dir.join(one), dir.join(other));
    Actor::repeat(move || {
        // One of the two may be missing at times.
        let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
    })
}

/// A directory `name` with a file `inner`, and a symbolic link `link` to the one outside.
fn directory_and_link(dir: &Path, outside: &Outside) {
    fs::create_dir(dir.join("name")).expect("a directory");
    fs::write(dir.join("name/inner"), "inside").expect("a file");
    symlink(outside.path().join("dir"), dir.join("link")).expect("a link");
}

/// Threat: escape by symlink swap, in walks.
#[test]
fn a_walk_never_leaves_the_tree_while_a_directory_is_swapped_for_a_link() {
    let outside = Outside::new();
    let served = Served::with(&[], |dir| directory_and_link(dir, &outside));
    let swapping = swap(served.path(), "name", "link");
    let (walked_in, stopped) = (Cell::new(0), Cell::new(0));
    each_way(&served.client, |client| {
        for _ in 0..TRIES {
            let (status, inodes) = client.walk(served.root, &[b"name", b"inner"]).expect("a walk");
            assert!(inodes.iter().all(|inode| !outside.holds(&inode.stat)), "walked outside");
            let count = if status == WalkStatus::SYMLINK { &stopped } else { &walked_in };
            count.set(count.get() + 1);
            let stats = client.walk_stat(served.root, &[b"name", b"inner"]).expect("a walk");
            assert!(stats.iter().all(|stat| !outside.holds(stat)), "saw attributes from outside");
            client.close(&inodes.iter().map(|inode| inode.control_fd).collect::<Vec<_>>());
        }
    });
    assert!(swapping.rounds() > 0 && walked_in.get() > 0 && stopped.get() > 0, "the race was not run");
    drop(swapping);
    outside.assert_untouched();
}

/// Threat: escape by symlink swap, when names are made and removed below the directory that is swapped.
#[test]
fn changes_below_a_directory_stay_in_it_while_it_is_swapped_for_a_link() {
    let outside = Outside::new();
    let served = Served::with(&["--host-uds", "all"], |dir| directory_and_link(dir, &outside));
    let swapping = swap(served.path(), "name", "link");
    each_way(&served.client, |client| {
        let Some(dir) = directory_named(client, served.root, "name") else { panic!("never a directory") };
        let inner = client.child(dir, "inner").control_fd;
        for _ in 0..TRIES / 5 {
            let made = [
                client.mkdir(dir, "d").expect("mkdir"),
                client.create(dir, "f").expect("create").0,
                client.symlink(dir, "l", "x").expect("symlink"),
                client.link(dir, inner, "h").expect("link"),
                client.bind(dir, "s").expect("bind").0,
            ];
            assert!(made.iter().all(|inode| !outside.holds(&inode.stat)));
            client.rename((dir, "f"), (dir, "g")).expect("rename");
            for name in ["g", "l", "h", "s"] {
                client.unlink(dir, name).expect("unlink");
            }
            client.rmdir(dir, "d").expect("rmdir");
            client.close(&made.map(|inode| inode.control_fd));
        }
    });
    drop(swapping);
    outside.assert_untouched();
}

/// Threat: escape by symlink swap, between the making of a name and what the server does with it next.
#[test]
fn what_was_just_made_is_not_mistaken_for_a_link_that_took_its_name() {
    let outside = Outside::new();
    let served = Served::with(&["--host-uds", "all"], |dir| {
        symlink(outside.path().join("secret"), dir.join("link")).expect("a link");
    });
    let path = served.path().to_path_buf();
    let swapping = swap(served.path(), "name", "link");
    each_way(&served.client, |client| {
        for _ in 0..TRIES / 5 {
            for make in [mkdir, mknod, create, bind] {
                // An owner, so that the server has something to do to the name.
                let made = make(client, served.root, Uid(4711), Gid(4711));
                if let Some(inode) = made {
                    assert!(!outside.holds(&inode.stat), "reached a file outside");
                    client.close(&[inode.control_fd]);
                }
                clear(&path, &outside);
            }
        }
    });
    assert!(swapping.rounds() > 0);
    drop(swapping);
    outside.assert_untouched();
}

type Make = fn(&dyn Client, FdId, Uid, Gid) -> Option<Inode>;
const _: [Make; 4] = [mkdir, mknod, create, bind];

fn owned(dir: FdId, uid: Uid, gid: Gid, file_type: FileType) -> CreateCommon {
    CreateCommon::new(dir, uid, gid, creation(dir, file_type, 0o700).mode)
}

fn mkdir(client: &dyn Client, dir: FdId, uid: Uid, gid: Gid) -> Option<Inode> {
    let create = owned(dir, uid, gid, FileType::Directory);
    client.ask(&MkdirAtRequest { create, name: string("name") }).ok().map(|answer| answer.decode())
}

fn mknod(client: &dyn Client, dir: FdId, uid: Uid, gid: Gid) -> Option<Inode> {
    let create = owned(dir, uid, gid, FileType::Regular);
    let request = MknodAtRequest { create, minor: 0, major: 0, name: string("name") };
    client.ask(&request).ok().map(|answer| answer.decode())
}

fn create(client: &dyn Client, dir: FdId, uid: Uid, gid: Gid) -> Option<Inode> {
    let create = owned(dir, uid, gid, FileType::Regular);
    let answer = client.ask(&OpenCreateAtRequest { create, flags: 2, name: string("name") }).ok()?;
    answer.fds.iter().for_each(|fd| assert_eq!(fstat(fd).expect("metadata").st_size, 0, "the new file, and no other"));
    Some(answer.decode::<gofer_protocol::message::OpenCreateAtReply>().child)
}

fn bind(client: &dyn Client, dir: FdId, uid: Uid, gid: Gid) -> Option<Inode> {
    let create = owned(dir, uid, gid, FileType::Socket);
    let answer = client.ask(&BindAtRequest { create, sock_type: 1, name: string("name") }).ok()?;
    Some(answer.decode::<gofer_protocol::message::BindAtReply>().child)
}

/// Back to a directory with nothing but the link in it.
fn clear(dir: &Path, outside: &Outside) {
    for name in ["name", "link"] {
        let path = dir.join(name);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let _ = if metadata.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
    }
    // Under one of the two names it may be back already.
    let _ = symlink(outside.path().join("secret"), dir.join("link"));
}

/// Threat: escape by symlink swap, when files are opened, truncated and changed.
#[test]
fn opening_a_file_never_opens_the_link_that_it_is_swapped_for() {
    let outside = Outside::new();
    let served = Served::with(&[], |dir| {
        fs::write(dir.join("name"), "inside").expect("a file");
        symlink(outside.path().join("secret"), dir.join("link")).expect("a link");
    });
    let swapping = swap(served.path(), "name", "link");
    let opened = Cell::new(0);
    each_way(&served.client, |client| {
        for _ in 0..TRIES {
            let file = client.child(served.root, "name").control_fd;
            let outcome = client.set_stat(file, |set| {
                set.mask = gofer_protocol::record::StatxMask(0x27a & !0x200);
                (set.mode, set.uid, set.gid) = (0o640, Uid(4711), Gid(4711));
            });
            outcome.expect("setting attributes of whatever it is");
            // O_RDWR | O_TRUNC.
            if let Ok((open, fds)) = client.open(file, 0o1002) {
                for fd in &fds {
                    let is = fstat(fd).expect("metadata");
                    assert!(!outside.holds_identity(is.st_dev, is.st_ino), "opened a file outside");
                }
                opened.set(opened.get() + 1);
                client.close(&[open]);
            }
            client.close(&[file]);
        }
    });
    assert!(swapping.rounds() > 0 && opened.get() > 0, "the race was not run");
    drop(swapping);
    outside.assert_untouched();
}

/// A control descriptor on `name` at a moment when it is a directory.
fn directory_named(client: &dyn Client, root: FdId, name: &str) -> Option<FdId> {
    (0..10_000).find_map(|_| {
        let inode = client.child(root, name);
        let is_directory = inode.stat.mode.file_type() == Some(FileType::Directory);
        if !is_directory {
            client.close(&[inode.control_fd]);
        }
        is_directory.then_some(inode.control_fd)
    })
}
