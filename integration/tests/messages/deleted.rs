//! What can still be done with a file that the server removed, message by message.

use std::path::Path;

use gofer_integration::{Ask, Trial, change, new_in, over_both};
use gofer_protocol::message::{SetStatReply, SetStatRequest, WalkStatus};
use gofer_protocol::record::{FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{READ, READ_WRITE, files, socket_file};

const ANYONE: (Uid, Gid) = (Uid::NONE, Gid::NONE);
const APPLIED: SetStatReply = SetStatReply { failure_mask: StatxMask(0), failure_errno: 0 };

/// A file f and one to replace it, a directory d, a link l, a socket s, an attribute on each that takes one.
fn landscape(dir: &Path) {
    files(dir, &["f", "new"]);
    std::fs::create_dir(dir.join("d")).expect("a directory");
    std::os::unix::fs::symlink("f", dir.join("l")).expect("a link");
    socket_file(&dir.join("s"));
    for name in ["f", "d"] {
        rustix::fs::setxattr(dir.join(name), "user.k", b"v", rustix::fs::XattrFlags::empty()).expect("an attribute");
    }
}

fn removed(t: &Trial<'_>, name: &str) -> FdId {
    let fd = t.client.walk_to(t.root, name);
    if name == "d" { t.client.rmdir(t.root, name) } else { t.client.unlink(t.root, name) }.expect("unlink");
    fd
}

#[test]
fn data_and_attributes_of_a_removed_file_are_still_there() {
    over_both(&[], landscape, |t| {
        let control = t.client.walk_to(t.root, "f");
        let (open, _) = t.client.open(control, READ_WRITE).expect("open");
        t.client.unlink(t.root, "f").expect("unlink");
        for fd in [control, open] {
            let stat = t.client.fstat(fd).expect("stat");
            assert_eq!((stat.nlink, stat.size), (0, 1));
        }
        assert!(t.client.fstat_fs(control).is_ok());
        assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
        assert_eq!(t.client.pwrite(open, 1, b"g"), Ok(1));
        assert_eq!(t.client.fallocate(open, 0, 0, 100), Ok(()));
        assert_eq!(t.client.fsync(&[open]), Ok(()));
        let mask = StatxMask::SETTABLE;
        let times = Timespec { seconds: 9, nanoseconds: 9 };
        let request = SetStatRequest {
            mode: 0o600,
            size: 3,
            uid: Uid(1),
            gid: Gid(2),
            atime: times,
            mtime: times,
            ..change(control, mask)
        };
        assert_eq!(t.client.set_stat(&request), Ok(APPLIED));
        let stat = t.client.fstat(open).expect("stat");
        assert_eq!((stat.mode.permissions(), stat.size, stat.uid, stat.gid, stat.mtime.seconds), (0o600, 3, 1, 2, 9));
        // Clients open removed files to save them.
        let (again, donated) = t.client.open(control, READ).expect("open");
        assert_eq!(donated.len(), 1);
        assert_eq!(t.client.pread(again, 0, 9), Ok(b"fg\0".to_vec()));
        t.client.close(&[open, again, control]);
        assert_eq!(t.client.fstat(control), Err(Errno::EBADF));
    });
}

#[test]
fn what_a_rename_replaced_is_removed_like_any_other() {
    over_both(&[], landscape, |t| {
        let control = t.client.walk_to(t.root, "f");
        let (open, _) = t.client.open(control, READ).expect("open");
        t.client.rename((t.root, "new"), (t.root, "f")).expect("rename");
        assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()), "not what replaced it");
        assert_eq!(t.client.link(t.root, control, "x"), Err(Errno::EINVAL));
        assert_eq!(t.client.get_xattr(control, 0, "user.k"), Err(Errno::EINVAL));
    });
}

#[test]
fn nothing_is_found_in_a_removed_directory() {
    over_both(&[], landscape, |t| {
        let fd = removed(t, "d");
        assert_eq!(t.client.walk(fd, &["x"]), Ok((WalkStatus::MISSING, Vec::new())));
        assert_eq!(t.client.walk(fd, &[""; 0]), Ok((WalkStatus::SUCCESS, Vec::new())));
        assert_eq!(t.client.walk_stat(fd, &["x"]), Ok(Vec::new()));
        let stat = t.client.fstat(fd).expect("stat");
        assert_eq!(t.client.walk_stat(fd, &[""]), Ok(vec![stat]));
        assert_eq!(t.client.walk_stat(fd, &["", "x"]), Ok(vec![stat]));
        assert!(t.client.fstat_fs(fd).is_ok());
    });
}

#[test]
fn nothing_is_made_in_or_moved_to_or_from_a_removed_directory() {
    over_both(&["--host-uds=all"], landscape, |t| {
        let target = t.client.walk_to(t.root, "f");
        let dir = removed(t, "d");
        let new = |file_type| new_in(dir, file_type, 0o700);
        assert_eq!(t.client.open_create(new(FileType::Regular), 2, "x").map(drop), Err(Errno::EINVAL));
        assert_eq!(t.client.mkdir(new(FileType::Directory), "x"), Err(Errno::EINVAL));
        assert_eq!(t.client.mknod(new(FileType::Regular), (0, 0), "x"), Err(Errno::EINVAL));
        assert_eq!(t.client.mknod(new(FileType::Fifo), (0, 0), "x"), Err(Errno::EINVAL), "before the type");
        assert_eq!(t.client.symlink(dir, "x", b"y"), Err(Errno::EINVAL));
        assert_eq!(t.client.link(dir, target, "x"), Err(Errno::EINVAL));
        assert_eq!(t.client.bind(new(FileType::Socket), 1, "x").map(drop), Err(Errno::EINVAL));
        assert_eq!(t.client.unlink(dir, "x"), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((dir, "x"), (t.root, "y")), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((t.root, "f"), (dir, "y")), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((dir, "x"), (dir, "x")), Err(Errno::EINVAL), "not even onto itself");
        assert_eq!(t.client.rename2((t.root, "f"), (dir, "y"), 2), Err(Errno::EINVAL));
        assert!(t.exists("f"));
    });
}

#[test]
fn a_bind_in_a_removed_directory_is_einval_before_policy_has_a_say() {
    over_both(&[], landscape, |t| {
        let dir = removed(t, "d");
        assert_eq!(t.client.bind(new_in(dir, FileType::Socket, 0o700), 1, "x").map(drop), Err(Errno::EINVAL));
    });
}

/// Defect D9.
#[test]
fn listings_targets_and_attributes_of_what_was_removed_are_einval() {
    over_both(&[], landscape, |t| {
        let dir = t.client.walk_to(t.root, "d");
        let (open, _) = t.client.open(dir, READ).expect("open");
        removed(t, "d");
        assert_eq!(t.client.getdents(open, -65_536), Err(Errno::EINVAL));
        assert_eq!(t.client.getdents(open, 65_536), Err(Errno::EINVAL));
        let link = removed(t, "l");
        assert_eq!(t.client.read_link(link), Err(Errno::EINVAL));
        let file = removed(t, "f");
        for fd in [dir, link, file] {
            for name in ["user.k", "trusted.x", "security.x"] {
                assert_eq!(t.client.get_xattr(fd, 0, name), Err(Errno::EINVAL));
                assert_eq!(t.client.set_xattr(fd, 0, name, b"w"), Err(Errno::EINVAL));
                assert_eq!(t.client.remove_xattr(fd, name), Err(Errno::EINVAL));
            }
            assert_eq!(t.client.list_xattr(fd, 0), Err(Errno::EINVAL));
        }
    });
}

#[test]
fn a_removed_socket_is_not_connected_to_and_one_that_was_bound_does_not_accept() {
    over_both(&["--host-uds=all"], landscape, |t| {
        let fd = removed(t, "s");
        for sock_type in [1, 99] {
            assert_eq!(t.client.connect(fd, sock_type).map(drop), Err(Errno::EINVAL));
            assert_eq!(t.client.connect_as(fd, sock_type, ANYONE).map(drop), Err(Errno::EINVAL));
        }
        let (_, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o700), 1, "bound").expect("bind");
        t.client.unlink(t.root, "bound").expect("unlink");
        assert_eq!(t.client.listen(bound, 1), Err(Errno::EINVAL));
        assert_eq!(t.client.accept(bound).map(drop), Err(Errno::EINVAL));
    });
}

#[test]
fn what_policy_forbids_of_a_removed_socket_is_einval_all_the_same() {
    over_both(&[], landscape, |t| {
        let fd = removed(t, "s");
        assert_eq!(t.client.connect(fd, 1).map(drop), Err(Errno::EINVAL));
    });
}

/// Defect D1.
#[test]
fn attributes_of_a_removed_link_or_socket_are_its_own_whatever_has_its_name_now() {
    over_both(&[], landscape, |t| {
        for name in ["l", "s"] {
            let fd = removed(t, name);
            t.client.symlink(t.root, name, b"f").expect("symlink");
            let before = t.metadata("f");
            let mask = StatxMask::MODE.or(StatxMask::MTIME).or(StatxMask::UID);
            let mtime = Timespec { seconds: 5, nanoseconds: 0 };
            let request = SetStatRequest { mode: 0o777, uid: Uid(7), mtime, ..change(fd, mask) };
            let reply = t.client.set_stat(&request).expect("a reply");
            assert_eq!(reply.failure_mask.0, if name == "l" { StatxMask::MODE.0 } else { 0 }, "{name}");
            let stat = t.client.fstat(fd).expect("stat");
            assert_eq!((stat.uid, stat.mtime.seconds), (7, 5), "{name}");
            use std::os::unix::fs::MetadataExt;
            let after = t.metadata("f");
            assert_eq!((before.mode(), before.uid(), before.mtime()), (after.mode(), after.uid(), after.mtime()));
            assert_eq!(t.owner(name).0, 0, "{name}: nor the new link");
        }
    });
}

#[test]
fn what_is_tracked_below_a_removed_directory_is_removed_too() {
    over_both(
        &[],
        |dir| {
            std::fs::create_dir(dir.join("d")).expect("a directory");
            files(dir, &["d/f"]);
        },
        |t| {
            let (dir, file) = (t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "d/f"));
            // Behind the server's back, so that it does not know.
            std::fs::remove_file(t.host("d/f")).expect("remove");
            assert!(t.client.get_xattr(file, 0, "user.k") == Err(Errno::ENODATA), "not noticed");
            t.client.rmdir(t.root, "d").expect("unlink");
            assert_eq!(t.client.get_xattr(file, 0, "user.k"), Err(Errno::EINVAL));
            assert_eq!(t.client.get_xattr(dir, 0, "user.k"), Err(Errno::EINVAL));
            assert!(t.client.fstat(file).is_ok());
        },
    );
}

#[test]
fn a_removal_by_another_process_orphans_the_file_and_nothing_else() {
    over_both(&[], landscape, |t| {
        let fd = t.client.walk_to(t.root, "f");
        std::fs::remove_file(t.host("f")).expect("remove");
        assert_eq!(t.client.fstat(fd).expect("stat").nlink, 0);
        assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Ok(b"v".to_vec()));
        let (open, _) = t.client.open(fd, READ).expect("open");
        assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
        assert_eq!(t.client.unlink(t.root, "f"), Err(Errno::ENOENT));
    });
}
