//! Walk, WalkStat, ReadLinkAt.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use gofer_integration::{Ask, nothing, over_both};
use gofer_protocol::message::WalkStatus;
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use super::{fifo, files, node, null_device, socket_file};

/// d/e/f is a file, l a link to d, and one of each other type.
fn landscape(dir: &Path) {
    std::fs::create_dir_all(dir.join("d/e")).expect("directories");
    std::fs::write(dir.join("d/e/f"), "content").expect("a file");
    files(dir, &["file"]);
    symlink("d", dir.join("l")).expect("a link");
    symlink("nowhere", dir.join("dangling")).expect("a link");
    fifo(&dir.join("fifo"));
    socket_file(&dir.join("socket"));
    null_device(&dir.join("null"));
    node(&dir.join("block"), rustix::fs::FileType::BlockDevice, (7, 0));
}

#[test]
fn every_component_gets_a_control_descriptor_of_its_own() {
    over_both(&[], landscape, |t| {
        let (status, inodes) = t.client.walk(t.root, &["d", "e", "f"]).expect("walk");
        assert_eq!(status, WalkStatus::SUCCESS);
        let expected = [("d", FileType::Directory), ("d/e", FileType::Directory), ("d/e/f", FileType::Regular)];
        assert_eq!(inodes.len(), 3);
        for (inode, (path, file_type)) in inodes.iter().zip(expected) {
            assert_eq!(inode.stat.ino, t.metadata(path).ino());
            assert_eq!(inode.stat.mode.file_type(), Some(file_type));
            assert_eq!(t.client.fstat(inode.control_fd), Ok(inode.stat));
        }
        let mut numbers: Vec<_> = inodes.iter().map(|inode| inode.control_fd).collect();
        numbers.push(t.root);
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), 4);
        // Twice the same walk, other numbers, the same files.
        let again = t.client.find(t.root, "d/e/f");
        assert_ne!(again.control_fd, inodes[2].control_fd);
        assert_eq!(again.stat.ino, inodes[2].stat.ino);
    });
}

#[test]
fn an_empty_path_is_success_and_hands_out_nothing() {
    over_both(&[], landscape, |t| {
        assert_eq!(t.client.walk(t.root, &[""; 0]), Ok((WalkStatus::SUCCESS, Vec::new())));
        assert_eq!(t.client.walk_stat(t.root, &[""; 0]), Ok(Vec::new()));
    });
}

#[test]
fn a_walk_starts_at_a_directory() {
    over_both(&[], landscape, |t| {
        for name in ["file", "l", "fifo", "socket", "null"] {
            let fd = t.client.walk_to(t.root, name);
            for path in [&[][..], &["x"]] {
                assert_eq!(t.client.walk(fd, path), Err(Errno::ENOTDIR), "{name} {path:?}");
            }
        }
        assert_eq!(t.client.walk(FdId(0), &["d"]), Err(Errno::EBADF));
        assert_eq!(t.client.walk(FdId(u64::MAX), &["d"]), Err(Errno::EBADF));
    });
}

#[test]
fn a_missing_component_ends_a_walk_with_what_was_found_so_far() {
    over_both(&[], landscape, |t| {
        assert_eq!(t.client.walk(t.root, &["missing"]), Ok((WalkStatus::MISSING, Vec::new())));
        let (status, inodes) = t.client.walk(t.root, &["d", "missing", "f"]).expect("walk");
        assert_eq!((status, inodes.len()), (WalkStatus::MISSING, 1));
        // What comes behind it is not even looked at.
        let (status, inodes) = t.client.walk(t.root, &["d", "missing", "..", "a/b", ""]).expect("walk");
        assert_eq!((status, inodes.len()), (WalkStatus::MISSING, 1));
    });
}

#[test]
fn a_symlink_ends_a_walk_and_is_the_last_that_is_handed_out() {
    over_both(&[], landscape, |t| {
        for link in ["l", "dangling"] {
            let (status, inodes) = t.client.walk(t.root, &[link, "e"]).expect("walk");
            assert_eq!((status, inodes.len()), (WalkStatus::SYMLINK, 1));
            assert_eq!(inodes[0].stat.mode.file_type(), Some(FileType::Symlink));
            let (status, inodes) = t.client.walk(t.root, &[link]).expect("walk");
            assert_eq!((status, inodes.len()), (WalkStatus::SUCCESS, 1), "as the last component it is like any other");
        }
        // The next name is judged before the link is.
        assert_eq!(t.client.walk(t.root, &["l", ".."]), Err(Errno::EINVAL));
        let (status, _) = t.client.walk(t.root, &["l", "e", ".."]).expect("walk");
        assert_eq!(status, WalkStatus::SYMLINK);
    });
}

#[test]
fn a_walk_through_what_is_no_directory_fails() {
    over_both(&[], landscape, |t| {
        for name in ["file", "fifo", "socket", "null"] {
            assert_eq!(t.client.walk(t.root, &[name, "x"]), Err(Errno::ENOTDIR), "{name}");
            assert_eq!(t.client.walk_stat(t.root, &[name, "x"]), Err(Errno::ENOTDIR), "{name}");
        }
        assert_eq!(t.client.walk(t.root, &["d", "e", "f", "x"]), Err(Errno::ENOTDIR));
    });
}

#[test]
fn an_unsafe_name_fails_a_walk() {
    over_both(&[], landscape, |t| {
        for bad in [&b""[..], b".", b"..", b"/", b"d/e", b"/d", b"d/", b"d\0", b"\0"] {
            assert_eq!(t.client.walk(t.root, &[bad]), Err(Errno::EINVAL), "{bad:?}");
            assert_eq!(t.client.walk(t.root, &[b"d", bad]), Err(Errno::EINVAL), "{bad:?}");
        }
    });
}

#[test]
fn names_are_bytes_and_the_host_judges_their_length() {
    over_both(
        &[],
        |dir| {
            std::fs::write(dir.join(std::ffi::OsStr::from_bytes(b"\xff\xfe\x80")), "").expect("a file");
            files(dir, &["n".repeat(255).as_str(), "...", " ", "a\\b", "-rf", "\n"]);
        },
        |t| {
            for name in [&b"\xff\xfe\x80"[..], &[b'n'; 255], b"...", b" ", b"a\\b", b"-rf", b"\n"] {
                let (status, inodes) = t.client.walk(t.root, &[name]).expect("walk");
                assert_eq!((status, inodes.len()), (WalkStatus::SUCCESS, 1), "{name:?}");
            }
            for length in [256, 4096, 65_535] {
                let name = "n".repeat(length);
                assert_eq!(t.client.walk(t.root, &[&name]), Err(Errno::ENAMETOOLONG), "{length}");
                assert_eq!(t.client.walk_stat(t.root, &[&name]), Err(Errno::ENAMETOOLONG), "{length}");
            }
        },
    );
}

#[test]
fn block_devices_are_not_served() {
    over_both(&[], landscape, |t| {
        for path in [&["block"][..], &["block", "x"]] {
            assert_eq!(t.client.walk(t.root, path), Err(Errno::EPERM));
            assert_eq!(t.client.walk_stat(t.root, path), Err(Errno::EPERM));
        }
        // But they are listed, as everything is.
        let (open, _) = t.client.open(t.client.find(t.root, "d").control_fd, 0).expect("open");
        t.client.close(&[open]);
        let (mount, _) = t.client.mounted().expect("mount");
        let (open, _) = t.client.open(mount.control_fd, 0).expect("open");
        assert!(t.client.list(open).iter().any(|entry| entry.name == b"block" && entry.entry_type == 6));
    });
}

#[test]
fn sockets_fifos_and_devices_are_walked_to_whatever_policy_says() {
    over_both(&["--host-uds=none", "--host-fifo=none"], landscape, |t| {
        for (name, file_type) in
            [("fifo", FileType::Fifo), ("socket", FileType::Socket), ("null", FileType::CharDevice)]
        {
            assert_eq!(t.client.find(t.root, name).stat.mode.file_type(), Some(file_type));
            assert_eq!(t.client.walk_stat(t.root, &[name]).map(|stats| stats.len()), Ok(1));
        }
    });
}

#[test]
fn a_walk_that_fails_leaves_no_descriptor_behind() {
    over_both(&[], landscape, |t| {
        let before = t.client.find(t.root, "d").control_fd;
        let held = t.descriptors();
        for path in [&["d", "e", ".."][..], &["d", "e", "f", "x"], &["d", "e", "", "f"]] {
            assert!(t.client.walk(t.root, path).is_err());
        }
        assert!(t.client.walk(t.root, &["block"]).is_err());
        assert_eq!(t.descriptors(), held);
        for guess in before.0 + 1..before.0 + 20 {
            assert_eq!(t.client.fstat(FdId(guess)), Err(Errno::EBADF), "number {guess}");
        }
    });
}

#[test]
fn a_walk_whose_longest_reply_would_not_fit_is_eio() {
    over_both(&[], nothing, |t| {
        // 3 + 152 n bytes, in 2,093,056.
        let path = vec!["a"; 13_771];
        assert_eq!(t.client.walk(t.root, &path), Err(Errno::EIO));
        assert_eq!(t.client.walk(t.root, &path[1..]), Ok((WalkStatus::MISSING, Vec::new())));
        // 2 + 144 n bytes.
        let path = vec!["a"; 14_536];
        assert_eq!(t.client.walk_stat(t.root, &path), Err(Errno::EIO));
        assert_eq!(t.client.walk_stat(t.root, &path[1..]), Ok(Vec::new()));
    });
}

#[test]
fn a_deep_walk_reaches_its_end_in_one_request() {
    let depth = 200;
    over_both(
        &[],
        |dir| std::fs::create_dir_all(dir.join(vec!["x"; depth].join("/"))).expect("directories"),
        |t| {
            let (status, inodes) = t.client.walk(t.root, &vec!["x"; depth]).expect("walk");
            assert_eq!((status, inodes.len()), (WalkStatus::SUCCESS, depth));
            let stats = t.client.walk_stat(t.root, &vec!["x"; depth]).expect("walk");
            assert_eq!(stats, inodes.iter().map(|inode| inode.stat).collect::<Vec<_>>());
        },
    );
}

#[test]
fn walk_stat_says_what_a_walk_would_and_an_empty_first_name_is_the_start() {
    over_both(&[], landscape, |t| {
        let root = t.client.fstat(t.root).expect("stat");
        let (_, inodes) = t.client.walk(t.root, &["d", "e", "f"]).expect("walk");
        let walked: Vec<_> = inodes.iter().map(|inode| inode.stat).collect();
        assert_eq!(t.client.walk_stat(t.root, &["d", "e", "f"]), Ok(walked.clone()));
        assert_eq!(t.client.walk_stat(t.root, &["", "d", "e", "f"]), Ok([&[root][..], &walked].concat()));
        assert_eq!(t.client.walk_stat(t.root, &[""]), Ok(vec![root]));
    });
}

#[test]
fn walk_stat_checks_all_names_before_anything() {
    over_both(&[], landscape, |t| {
        for path in [
            &["", ""][..],
            &["d", ""],
            &["missing", ".."],
            &["l", "e", "a/b"],
            &["file", "x", "."],
            &["", "d", "", "e"],
            &["."],
            &[".."],
            &["d\0"],
        ] {
            assert_eq!(t.client.walk_stat(t.root, path), Err(Errno::EINVAL), "{path:?}");
        }
        // Also before the descriptor.
        assert_eq!(t.client.walk_stat(FdId(0), &[".."]), Err(Errno::EINVAL));
        assert_eq!(t.client.walk_stat(FdId(0), &[""]), Err(Errno::EBADF));
    });
}

#[test]
fn walk_stat_ends_early_at_a_missing_component_and_behind_a_symlink() {
    over_both(&[], landscape, |t| {
        let count = |path: &[&str]| t.client.walk_stat(t.root, path).map(|stats| stats.len());
        assert_eq!(count(&["missing"]), Ok(0));
        assert_eq!(count(&["d", "missing", "x"]), Ok(1));
        assert_eq!(count(&["", "missing"]), Ok(1));
        assert_eq!(count(&["l", "e"]), Ok(1));
        assert_eq!(count(&["d", "e", "f"]), Ok(3));
        let stats = t.client.walk_stat(t.root, &["l"]).expect("walk");
        assert_eq!(stats[0].mode.file_type(), Some(FileType::Symlink));
    });
}

#[test]
fn walk_stat_from_what_is_no_directory_goes_nowhere() {
    over_both(&[], landscape, |t| {
        for name in ["file", "l", "fifo", "socket", "null"] {
            let found = t.client.find(t.root, name);
            assert_eq!(t.client.walk_stat(found.control_fd, &[""; 0]), Ok(Vec::new()), "{name}");
            assert_eq!(t.client.walk_stat(found.control_fd, &[""]), Ok(vec![found.stat]), "{name}");
            assert_eq!(t.client.walk_stat(found.control_fd, &["x"]), Err(Errno::ENOTDIR), "{name}");
            assert_eq!(t.client.walk_stat(found.control_fd, &["", "x"]), Err(Errno::ENOTDIR), "{name}");
        }
    });
}

#[test]
fn walk_stat_leaves_no_descriptor_behind() {
    over_both(&[], landscape, |t| {
        let last = t.client.find(t.root, "d").control_fd;
        let held = t.descriptors();
        for _ in 0..10 {
            t.client.walk_stat(t.root, &["", "d", "e", "f"]).expect("walk");
            assert!(t.client.walk_stat(t.root, &["d", "e", "f", "x"]).is_err());
        }
        assert_eq!(t.descriptors(), held);
        assert_eq!(t.client.find(t.root, "d").control_fd, FdId(last.0 + 1));
    });
}

#[test]
fn the_target_of_a_symlink_is_given_as_it_is_stored() {
    let long = "x/".repeat(2047) + "y";
    let targets = ["d", "nowhere", "/etc/passwd", "../../..", ".", "a//b/", "l", long.as_str()];
    over_both(
        &[],
        |dir| {
            for (number, target) in targets.iter().enumerate() {
                symlink(target, dir.join(number.to_string())).expect("a link");
            }
            symlink(std::ffi::OsStr::from_bytes(b"\xff\n\x80"), dir.join("bytes")).expect("a link");
        },
        |t| {
            for (number, target) in targets.iter().enumerate() {
                let link = t.client.find(t.root, &number.to_string());
                assert_eq!(t.client.read_link(link.control_fd), Ok(target.as_bytes().to_vec()));
                assert_eq!(link.stat.size, target.len() as u64);
            }
            let link = t.client.walk_to(t.root, "bytes");
            assert_eq!(t.client.read_link(link), Ok(b"\xff\n\x80".to_vec()));
        },
    );
}

#[test]
fn only_symlinks_have_a_target() {
    over_both(&[], landscape, |t| {
        for name in ["file", "d", "fifo", "socket", "null"] {
            let fd = t.client.walk_to(t.root, name);
            assert_eq!(t.client.read_link(fd), Err(Errno::EINVAL), "{name}");
        }
        assert_eq!(t.client.read_link(FdId(0)), Err(Errno::EBADF));
        let (open, _) = t.client.open(t.client.walk_to(t.root, "file"), 0).expect("open");
        assert_eq!(t.client.read_link(open), Err(Errno::EINVAL));
    });
}
