//! Descriptors and the identity of files: nothing leaks, and a held file stays that file whatever its name becomes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use gofer_integration::child::{can_be_nobody, give_to_nobody};
use gofer_integration::{Ask, Served, change, new_in, nothing};
use gofer_protocol::message::{SetStatReply, SetStatRequest};
use gofer_protocol::record::{CreateCommon, FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};

const STREAM: u32 = 1;
const RDWR: u32 = 2;

/// Descriptors of the server that lead to removed files.
fn deleted(served: &Served) -> usize {
    let gone = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("(deleted)");
    served.gofer.descriptors().iter().filter(|path| gone(path)).count()
}

fn socket_in(dir: FdId) -> CreateCommon {
    new_in(dir, FileType::Socket, 0o755)
}

fn succeeded(result: Result<SetStatReply, Errno>) {
    assert_eq!(result, Ok(SetStatReply { failure_mask: StatxMask::default(), failure_errno: 0 }));
}

/// Row B29.
#[test]
fn a_thousand_files_created_and_removed_leave_no_descriptor() {
    let served = Served::new();
    let before = served.descriptors();
    for number in 0..1000 {
        let name = format!("f{number}");
        let (child, open, donated) = served.client.create(served.root, &name).expect("create");
        drop(donated);
        let walked = served.client.walk_to(served.root, &name);
        served.client.close(&[open]);
        served.client.unlink(served.root, &name).expect("unlink");
        served.client.close(&[child.control_fd, walked]);
    }
    assert_eq!((served.descriptors(), deleted(&served)), (before, 0));
}

/// Row B31.
#[test]
fn four_thousand_sockets_bound_and_removed_leave_no_descriptor_and_no_name() {
    let served = Served::with(&["--host-uds=create"], nothing);
    let before = served.descriptors();
    for number in 0..4096 {
        let name = format!("s{number}");
        let (child, bound, donated) = served.client.bind(socket_in(served.root), STREAM, &name).expect("bind");
        drop(donated);
        served.client.close(&[child.control_fd, bound]);
        served.client.unlink(served.root, &name).expect("unlink");
    }
    assert_eq!(served.descriptors(), before);
    assert_eq!(fs::read_dir(served.path()).expect("the root").count(), 0);
}

/// Row B32.
#[test]
fn a_bind_that_fails_late_leaves_neither_a_file_nor_a_descriptor() {
    if !can_be_nobody() {
        return;
    }
    let served = Served::by_nobody(&["--host-uds=create"], nothing);
    let before = served.descriptors();
    for _ in 0..10 {
        let create = CreateCommon::new(served.root, Uid(0), Gid(0), socket_in(served.root).mode);
        let bound = served.client.bind(create, STREAM, "s");
        assert_eq!(bound.map(|_| ()), Err(Errno::EPERM), "it may not give files away");
        assert_eq!(fs::read_dir(served.path()).expect("the root").count(), 0);
    }
    assert_eq!(served.descriptors(), before);
    assert!(served.client.bind(socket_in(served.root), STREAM, "s").is_ok(), "and the name is free");
}

/// Row B37.
#[test]
fn a_file_that_was_unlinked_while_open_is_resized_written_read_and_synced() {
    let served = Served::new();
    let (child, open, _) = served.client.create(served.root, "f").expect("create");
    served.client.unlink(served.root, "f").expect("unlink");
    let file = child.control_fd;
    succeeded(served.client.set_stat(&SetStatRequest { size: 131_072, ..change(file, StatxMask::SIZE) }));
    assert_eq!(served.client.pwrite(open, 131_070, b"tail"), Ok(4));
    assert_eq!(served.client.pread(open, 131_068, 100).as_deref(), Ok(&b"\0\0tail"[..]));
    assert!(served.client.fsync(&[open]).is_ok());
    assert_eq!(served.client.fstat(file).expect("stat").size, 131_074);
}

/// Row B38.
#[test]
fn attributes_of_an_open_but_removed_file_are_served_and_changed() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "content").expect("a file"));
    let file = served.client.walk_to(served.root, "f");
    let (open, _) = served.client.open(file, RDWR).expect("open");
    served.client.unlink(served.root, "f").expect("unlink");
    // What has the name by now is not touched.
    fs::write(served.path().join("f"), "other").expect("another file");

    assert_eq!(served.client.fstat(file).expect("stat").nlink, 0);
    assert_eq!(served.client.fstat(open).expect("stat").nlink, 0);
    let (mask, time) = (StatxMask::ATIME.or(StatxMask::MTIME), Timespec { seconds: 1_000, nanoseconds: 5 });
    succeeded(served.client.chmod(file, 0o640));
    succeeded(served.client.set_stat(&SetStatRequest { atime: time, mtime: time, ..change(file, mask) }));
    succeeded(served.client.set_stat(&SetStatRequest { size: 3, ..change(file, StatxMask::SIZE) }));
    if can_be_nobody() {
        let mask = StatxMask::UID.or(StatxMask::GID);
        succeeded(served.client.set_stat(&SetStatRequest { uid: Uid(12), gid: Gid(34), ..change(file, mask) }));
        let stat = served.client.fstat(file).expect("stat");
        assert_eq!((stat.uid, stat.gid), (12, 34));
    }
    assert!(served.client.fallocate(open, 0, 0, 4096).is_ok());
    let stat = served.client.fstat(file).expect("stat");
    assert_eq!((stat.mode.permissions(), stat.size), (0o640, 4096));
    assert_eq!(served.client.fstat(open).expect("stat").mode, stat.mode);

    // By name nothing is done for it, and extended attributes count as such.
    assert_eq!(served.client.get_xattr(file, 0, "user.a"), Err(Errno::EINVAL));
    assert_eq!(served.client.link(served.root, file, "l").map(|_| ()), Err(Errno::EINVAL));
    let other = fs::metadata(served.path().join("f")).expect("the other file");
    assert_eq!((other.len(), other.uid()), (5, rustix::process::geteuid().as_raw()));
}

/// Row B41.
#[test]
fn a_directory_replaces_an_empty_directory_and_nothing_else() {
    let served = Served::with(&[], |dir| {
        for name in ["a", "empty", "full", "full/x", "c"] {
            fs::create_dir(dir.join(name)).expect("a directory");
        }
        fs::write(dir.join("file"), "").expect("a file");
        fs::write(dir.join("a/inside"), "").expect("a file");
    });
    let rename = |old, new| served.client.rename((served.root, old), (served.root, new));
    let replaced = served.client.walk_to(served.root, "empty");
    assert_eq!(rename("a", "empty"), Ok(()));
    assert!(served.path().join("empty/inside").exists() && !served.path().join("a").exists());
    assert_eq!(served.client.fstat(replaced).expect("what was replaced").nlink, 0);
    assert_eq!(
        served.client.mkdir(new_in(replaced, FileType::Directory, 0o755), "x").map(|_| ()),
        Err(Errno::EINVAL),
        "it is gone"
    );

    assert!(matches!(rename("c", "full"), Err(Errno::ENOTEMPTY | Errno::EEXIST)));
    assert_eq!(rename("file", "c"), Err(Errno::EISDIR));
    assert_eq!(rename("c", "file"), Err(Errno::ENOTDIR));
}

/// Row B42.
#[test]
fn a_file_that_is_open_for_writing_stays_so_through_a_chmod_and_a_rename() {
    if !can_be_nobody() {
        return;
    }
    let served = Served::by_nobody(&[], |dir| {
        fs::write(dir.join("f"), "").expect("a file");
        give_to_nobody(dir);
    });
    let file = served.client.walk_to(served.root, "f");
    let (open, _) = served.client.open(file, 1).expect("open");
    succeeded(served.client.chmod(file, 0o444));
    assert_eq!(served.client.open(file, 1).map(|_| ()), Err(Errno::EACCES), "the mode does count here");
    served.client.rename((served.root, "f"), (served.root, "g")).expect("rename");
    assert_eq!(served.client.pwrite(open, 0, b"more"), Ok(4));
    assert_eq!(fs::read(served.path().join("g")).expect("the file"), b"more");
}

/// Row B42, for the size: a client that opened for writing may truncate after a chmod.
#[test]
fn a_size_that_could_be_set_once_can_be_set_after_a_chmod() {
    if !can_be_nobody() {
        return;
    }
    let served = Served::by_nobody(&[], |dir| {
        fs::write(dir.join("f"), "content").expect("a file");
        give_to_nobody(dir);
    });
    let file = served.client.walk_to(served.root, "f");
    let resize = |size| served.client.set_stat(&SetStatRequest { size, ..change(file, StatxMask::SIZE) });
    succeeded(resize(5));
    succeeded(served.client.chmod(file, 0o444));
    succeeded(resize(3));
    assert_eq!(fs::read(served.path().join("f")).expect("the file"), b"con");
}

/// Row B46.
#[test]
fn a_thousand_hard_links_made_and_removed_leave_no_descriptor() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "").expect("a file"));
    let before = served.descriptors();
    let target = served.client.walk_to(served.root, "f");
    let links: Vec<FdId> = (0..1000)
        .map(|number| served.client.link(served.root, target, &format!("l{number}")).expect("link").control_fd)
        .collect();
    assert_eq!(served.client.fstat(target).expect("stat").nlink, 1001);
    served.client.close(&links);
    for number in 0..1000 {
        served.client.unlink(served.root, &format!("l{number}")).expect("unlink");
    }
    served.client.unlink(served.root, "f").expect("unlink");
    served.client.close(&[target]);
    assert_eq!((served.descriptors(), deleted(&served)), (before, 0));
}

/// Row B48, as far as a client sees it.
#[test]
fn two_names_of_one_file_are_one_file_whichever_was_changed() {
    let served = Served::with(&[], |dir| {
        fs::write(dir.join("a"), "content").expect("a file");
        fs::hard_link(dir.join("a"), dir.join("b")).expect("a link");
    });
    let (a, b) = (served.client.walk_to(served.root, "a"), served.client.walk_to(served.root, "b"));
    let same = || {
        let (a, b) = (served.client.fstat(a).expect("stat"), served.client.fstat(b).expect("stat"));
        assert_eq!(a, b);
        assert_eq!((a.ino, a.dev_major, a.dev_minor, a.nlink), (b.ino, b.dev_major, b.dev_minor, 2));
        a
    };
    same();
    succeeded(served.client.chmod(a, 0o600));
    succeeded(served.client.set_stat(&SetStatRequest { size: 2, ..change(a, StatxMask::SIZE) }));
    let (open, _) = served.client.open(a, 1).expect("open");
    assert_eq!(served.client.pwrite(open, 2, b"!!"), Ok(2));
    let stat = same();
    assert_eq!((stat.mode.permissions(), stat.size), (0o600, 4));
    let (open, _) = served.client.open(b, 0).expect("open");
    assert_eq!(served.client.pread(open, 0, 10).as_deref(), Ok(&b"co!!"[..]));
}

/// Row B56.
#[test]
fn after_an_atomic_replace_on_the_host_the_old_descriptor_serves_the_old_file_and_a_new_walk_the_new_one() {
    let served = Served::with(&[], |dir| fs::write(dir.join("v"), "old").expect("a file"));
    let old = served.client.walk_to(served.root, "v");
    let ino = served.client.fstat(old).expect("stat").ino;
    fs::write(served.path().join("tmp"), "new").expect("a file");
    fs::rename(served.path().join("tmp"), served.path().join("v")).expect("replace");

    let stat = served.client.fstat(old).expect("the old file, not an error");
    assert_eq!((stat.ino, stat.nlink), (ino, 0));
    let (open, _) = served.client.open(old, 0).expect("open");
    assert_eq!(served.client.pread(open, 0, 10).as_deref(), Ok(&b"old"[..]));

    let new = served.client.walk_to(served.root, "v");
    let stat = served.client.fstat(new).expect("stat");
    assert_eq!((stat.ino != ino, stat.nlink), (true, 1));
    let (open, _) = served.client.open(new, 0).expect("open");
    assert_eq!(served.client.pread(open, 0, 10).as_deref(), Ok(&b"new"[..]));
}
