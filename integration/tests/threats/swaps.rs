//! Another process of the host swaps names for symbolic links, again and again, while requests run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gofer_integration::wait::PATIENCE;
use gofer_integration::{Actor, Ask, Exchange, Outside, change, new_in, over_both};
use gofer_protocol::message::{SetStatRequest, WalkStatus};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode, StatxMask};
use gofer_protocol::{FdId, Gid, Uid};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};

/// How often a request is tried against the other process, at least.
const TRIES: usize = 1500;

/// Tries a request often enough, and goes on, for a while, until the attempt says that the race was run: on a busy
/// machine the other process may not have had its turn yet.
fn contend(tries: usize, mut attempt: impl FnMut() -> bool) {
    let start = Instant::now();
    for tried in 1.. {
        let run = attempt();
        if tried >= tries && (run || start.elapsed() > PATIENCE) {
            return;
        }
    }
}

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
    over_both(
        &[],
        |dir| directory_and_link(dir, &outside),
        |t| {
            let swapping = swap(t.path(), "name", "link");
            let (mut walked_in, mut stopped) = (0, 0);
            contend(TRIES, || {
                let (status, inodes) = t.client.walk(t.root, &["name", "inner"]).expect("a walk");
                assert!(inodes.iter().all(|inode| !outside.holds(&inode.stat)), "walked outside");
                *if status == WalkStatus::SYMLINK { &mut stopped } else { &mut walked_in } += 1;
                let stats = t.client.walk_stat(t.root, &["name", "inner"]).expect("a walk");
                assert!(stats.iter().all(|stat| !outside.holds(stat)), "saw attributes from outside");
                t.client.close(&inodes.iter().map(|inode| inode.control_fd).collect::<Vec<_>>());
                walked_in > 0 && stopped > 0
            });
            assert!(swapping.rounds() > 0 && walked_in > 0 && stopped > 0, "the race was not run");
            drop(swapping);
            outside.assert_untouched();
        },
    );
}

/// Threat: escape by symlink swap, when names are made and removed below the directory that is swapped.
#[test]
fn changes_below_a_directory_stay_in_it_while_it_is_swapped_for_a_link() {
    let outside = Outside::new();
    over_both(
        &["--host-uds", "all"],
        |dir| directory_and_link(dir, &outside),
        |t| {
            let swapping = swap(t.path(), "name", "link");
            let dir = directory_named(t.client, t.root, "name").expect("never a directory");
            let inner = t.client.walk_to(dir, "inner");
            for _ in 0..TRIES / 5 {
                let made = [
                    t.client.mkdir(new_in(dir, FileType::Directory, 0o755), "d").expect("mkdir"),
                    t.client.create(dir, "f").expect("create").0,
                    t.client.symlink(dir, "l", "x").expect("symlink"),
                    t.client.link(dir, inner, "h").expect("link"),
                    t.client.bind(new_in(dir, FileType::Socket, 0o755), 1, "s").expect("bind").0,
                ];
                assert!(made.iter().all(|inode| !outside.holds(&inode.stat)));
                t.client.rename((dir, "f"), (dir, "g")).expect("rename");
                for name in ["g", "l", "h", "s"] {
                    t.client.unlink(dir, name).expect("unlink");
                }
                t.client.rmdir(dir, "d").expect("rmdir");
                t.client.close(&made.map(|inode| inode.control_fd));
            }
            drop(swapping);
            outside.assert_untouched();
        },
    );
}

/// Threat: escape by symlink swap, between the making of a name and what the server does with it next.
#[test]
fn what_was_just_made_is_not_mistaken_for_a_link_that_took_its_name() {
    let outside = Outside::new();
    over_both(
        &["--host-uds", "all"],
        |dir| {
            symlink(outside.path().join("secret"), dir.join("link")).expect("a link");
        },
        |t| {
            let path = t.path().to_path_buf();
            let swapping = swap(t.path(), "name", "link");
            contend(TRIES / 5, || {
                for make in MAKES {
                    if let Some(inode) = make(t.client, t.root) {
                        assert!(!outside.holds(&inode.stat), "reached a file outside");
                        t.client.close(&[inode.control_fd]);
                    }
                    clear(&path, &outside);
                }
                swapping.rounds() > 0
            });
            assert!(swapping.rounds() > 0);
            drop(swapping);
            outside.assert_untouched();
        },
    );
}

type Make = fn(&dyn Exchange, FdId) -> Option<Inode>;

/// With an owner, so that the server has something to do to the name.
const MAKES: [Make; 4] = [
    |client, dir| client.mkdir(owned(dir, FileType::Directory), "name").ok(),
    |client, dir| client.mknod(owned(dir, FileType::Regular), (0, 0), "name").ok(),
    |client, dir| {
        let (child, _, donated) = client.open_create(owned(dir, FileType::Regular), 2, "name").ok()?;
        let sizes = donated.iter().map(|fd| fstat(fd).expect("metadata").st_size);
        sizes.for_each(|size| assert_eq!(size, 0, "the new file, and no other"));
        Some(child)
    },
    |client, dir| client.bind(owned(dir, FileType::Socket), 1, "name").ok().map(|(child, ..)| child),
];

fn owned(dir: FdId, file_type: FileType) -> CreateCommon {
    CreateCommon::new(dir, Uid(4711), Gid(4711), FileMode::new(file_type, 0o700))
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
    over_both(
        &[],
        |dir| {
            fs::write(dir.join("name"), "inside").expect("a file");
            symlink(outside.path().join("secret"), dir.join("link")).expect("a link");
        },
        |t| {
            let swapping = swap(t.path(), "name", "link");
            let mut opened = 0;
            contend(TRIES, || {
                let file = t.client.walk_to(t.root, "name");
                let (mode, uid, gid) = (0o640, Uid(4711), Gid(4711));
                let all = SetStatRequest { mode, uid, gid, ..change(file, StatxMask(0x27a & !0x200)) };
                t.client.set_stat(&all).expect("setting attributes of whatever it is");
                // O_RDWR | O_TRUNC.
                if let Ok((open, fds)) = t.client.open(file, 0o1002) {
                    for fd in &fds {
                        let is = fstat(fd).expect("metadata");
                        assert!(!outside.holds_identity(is.st_dev, is.st_ino), "opened a file outside");
                    }
                    opened += 1;
                    t.client.close(&[open]);
                }
                t.client.close(&[file]);
                swapping.rounds() > 0 && opened > 0
            });
            assert!(swapping.rounds() > 0 && opened > 0, "the race was not run");
            drop(swapping);
            outside.assert_untouched();
        },
    );
}

/// A control descriptor on `name` at a moment when it is a directory.
fn directory_named(client: &dyn Exchange, root: FdId, name: &str) -> Option<FdId> {
    (0..10_000).find_map(|_| {
        let inode = client.find(root, name);
        let is_directory = inode.stat.mode.file_type() == Some(FileType::Directory);
        if !is_directory {
            client.close(&[inode.control_fd]);
        }
        is_directory.then_some(inode.control_fd)
    })
}
