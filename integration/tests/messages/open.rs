//! OpenAt, OpenCreateAt, Close, Flush.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use gofer_integration::{Ask, new_in, nothing, over_both};
use gofer_protocol::message::FlushRequest;
use gofer_protocol::record::{CreateCommon, FileMode, FileType};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::fs::OFlags;

use super::{READ, READ_WRITE, TRUNCATE, WRITE, access, files, identity, never_waits, status};

/// The access mode that neither reads nor writes.
const NEITHER: u32 = 3;

#[test]
fn a_regular_file_is_opened_and_donated_with_the_access_asked_for() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let expected = [(READ, OFlags::RDONLY), (WRITE, OFlags::WRONLY), (READ_WRITE, OFlags::RDWR)];
            for (flags, mode) in expected {
                let (open, donated) = t.client.open(control, flags).expect("open");
                assert_eq!(donated.len(), 1);
                assert_eq!(access(&donated[0]), mode);
                assert!(never_waits(&donated[0]));
                assert_eq!(identity(&donated[0]).1, t.metadata("f").ino());
                let reads = t.client.pread(open, 0, 8).is_ok();
                let writes = t.client.pwrite(open, 0, b"f").is_ok();
                assert_eq!((reads, writes), (flags != WRITE, flags != READ));
            }
        },
    );
}

#[test]
fn reading_or_writing_against_the_access_mode_is_ebadf() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            for (flags, reads, writes) in [(READ, true, false), (WRITE, false, true), (NEITHER, false, false)] {
                let (open, _) = t.client.open(control, flags).expect("open");
                let ebadf = |allowed| if allowed { None } else { Some(Errno::EBADF) };
                assert_eq!(t.client.pread(open, 0, 1).err(), ebadf(reads), "{flags}");
                assert_eq!(t.client.pwrite(open, 0, b"f").err(), ebadf(writes), "{flags}");
                assert_eq!(t.client.fallocate(open, 0, 0, 1).err(), ebadf(writes), "{flags}");
            }
        },
    );
}

#[test]
fn all_flags_but_access_mode_and_truncation_are_dropped() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            // O_CREAT, O_EXCL, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_SYNC, O_TMPFILE, O_PATH.
            for dropped in [0o100, 0o200, 0o2000, 0o20_0000, 0o40_0000, 0o4_0000, 0o401_0000, 0o2020_0000, 0o1000_0000]
            {
                let (open, donated) = t.client.open(control, READ_WRITE | dropped).expect("open");
                let large = OFlags::from_bits_retain(0o10_0000);
                assert_eq!(status(&donated[0]) - large, OFlags::RDWR | OFlags::NONBLOCK, "0o{dropped:o}");
                assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()), "0o{dropped:o}");
            }
            assert!(t.client.open(t.root, !(3 | TRUNCATE)).is_ok());
        },
    );
}

#[test]
fn truncation_happens_at_open_even_for_readers() {
    over_both(
        &[],
        |dir| files(dir, &["f", "g"]),
        |t| {
            for (name, flags) in [("f", READ_WRITE | TRUNCATE), ("g", TRUNCATE)] {
                let control = t.client.walk_to(t.root, name);
                assert_eq!(t.metadata(name).len(), 1);
                t.client.open(control, flags).expect("open");
                assert_eq!(t.metadata(name).len(), 0);
            }
        },
    );
}

#[test]
fn a_directory_is_opened_for_reading_only_and_not_donated() {
    over_both(
        &[],
        |dir| std::fs::create_dir(dir.join("d")).expect("a directory"),
        |t| {
            let control = t.client.walk_to(t.root, "d");
            for flags in [WRITE, READ_WRITE, NEITHER, TRUNCATE, WRITE | TRUNCATE] {
                assert_eq!(t.client.open(control, flags).map(drop), Err(Errno::EISDIR), "{flags}");
            }
            for fd in [control, t.root] {
                let (_, donated) = t.client.open(fd, READ).expect("open");
                assert!(donated.is_empty());
            }
        },
    );
}

#[test]
fn a_symlink_is_not_opened() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            symlink("f", dir.join("l")).expect("a link");
        },
        |t| {
            let control = t.client.walk_to(t.root, "l");
            for flags in [READ, WRITE, READ_WRITE | TRUNCATE] {
                assert_eq!(t.client.open(control, flags).map(drop), Err(Errno::EINVAL));
            }
            assert_eq!(t.metadata("f").len(), 1);
        },
    );
}

#[test]
fn an_open_file_outlives_its_control_descriptor_and_its_name() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(control, READ_WRITE).expect("open");
            t.client.close(&[control]);
            std::fs::remove_file(t.host("f")).expect("remove");
            assert_eq!(t.client.pwrite(open, 1, b"ine"), Ok(3));
            assert_eq!(t.client.pread(open, 0, 99), Ok(b"fine".to_vec()));
            assert_eq!(t.client.fstat(open).expect("stat").nlink, 0);
            assert_eq!(t.client.fsync(&[open]), Ok(()));
        },
    );
}

#[test]
fn a_created_file_is_open_donated_and_what_was_asked_for() {
    over_both(&[], nothing, |t| {
        let mode = FileMode::new(FileType::Regular, 0o640);
        let create = CreateCommon::new(t.root, Uid(1000), Gid(1001), mode);
        let (child, open, donated) = t.client.open_create(create, READ_WRITE, "new").expect("create");
        assert_eq!((t.permissions("new"), t.owner("new")), (0o640, (1000, 1001)));
        assert_eq!(child.stat, t.client.fstat(child.control_fd).expect("stat"));
        assert_eq!((child.stat.size, child.stat.nlink, child.stat.mode), (0, 1, mode));
        assert_eq!((child.stat.uid, child.stat.gid), (1000, 1001));
        let [fd] = <[std::os::fd::OwnedFd; 1]>::try_from(donated).expect("one descriptor");
        assert_eq!(access(&fd), OFlags::RDWR);
        assert!(never_waits(&fd));
        assert_eq!(t.client.pwrite(open, 0, b"hello"), Ok(5));
        let mut content = String::new();
        std::fs::File::from(fd).read_to_string(&mut content).expect("read");
        assert_eq!(content, "hello");
        // The control descriptor is a whole one.
        assert_eq!(t.client.find(t.root, "new").stat.ino, child.stat.ino);
        assert!(t.client.open(child.control_fd, READ).is_ok());
    });
}

#[test]
fn a_created_file_is_open_with_the_access_asked_for_whatever_its_mode() {
    over_both(&[], nothing, |t| {
        for (flags, reads, writes) in [(READ, true, false), (WRITE, false, true), (READ_WRITE, true, true)] {
            for mode in [0, 0o400, 0o200, 0o777] {
                let name = format!("{flags}-{mode:o}");
                let create = new_in(t.root, FileType::Regular, mode);
                let (_, open, donated) = t.client.open_create(create, flags, &name).expect("create");
                assert_eq!(donated.len(), 1);
                assert_eq!(t.client.pread(open, 0, 1).is_ok(), reads, "{name}");
                assert_eq!(t.client.pwrite(open, 0, b"x").is_ok(), writes, "{name}");
                assert_eq!(t.permissions(&name), u32::from(mode), "no umask: {name}");
            }
        }
    });
}

#[test]
fn creation_drops_all_flags_but_the_access_mode() {
    over_both(&[], nothing, |t| {
        // The server's own: the name must not be a link, and nothing waits.
        let expected = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let create = new_in(t.root, FileType::Regular, 0o644);
        let (_, _, donated) = t.client.open_create(create, !NEITHER | READ_WRITE, "f").expect("create");
        assert_eq!(status(&donated[0]) - OFlags::from_bits_retain(0o10_0000), expected);
    });
}

#[test]
fn type_bits_of_a_created_files_mode_are_dropped() {
    over_both(&[], nothing, |t| {
        for bits in [0, 0o4_0000, 0o12_0000, 0o17_0000] {
            let name = format!("{bits:o}");
            let create = CreateCommon::new(t.root, Uid::NONE, Gid::NONE, FileMode(bits | 0o600));
            let (child, ..) = t.client.open_create(create, READ_WRITE, &name).expect("create");
            assert_eq!(child.stat.mode, FileMode::new(FileType::Regular, 0o600));
            assert_eq!(t.metadata(&name).permissions().mode(), 0o10_0600);
        }
    });
}

#[test]
fn an_owner_clears_setuid_and_setgid_of_a_created_file_and_no_owner_keeps_them() {
    over_both(&[], nothing, |t| {
        let mode = FileMode::new(FileType::Regular, 0o6755);
        let owned = CreateCommon::new(t.root, Uid(1), Gid(1), mode);
        let (child, ..) = t.client.open_create(owned, READ_WRITE, "owned").expect("create");
        assert_eq!((t.permissions("owned"), child.stat.mode.permissions()), (0o755, 0o755));
        let (child, ..) =
            t.client.open_create(new_in(t.root, FileType::Regular, 0o6755), READ, "kept").expect("create");
        assert_eq!((t.permissions("kept"), child.stat.mode.permissions()), (0o6755, 0o6755));
    });
}

#[test]
fn a_file_created_without_a_group_inherits_that_of_a_setgid_directory() {
    over_both(
        &[],
        |dir| {
            std::fs::create_dir(dir.join("d")).expect("a directory");
            chown(dir.join("d"), Some(0), Some(77)).expect("a group");
            std::fs::set_permissions(dir.join("d"), std::fs::Permissions::from_mode(0o2777)).expect("a mode");
        },
        |t| {
            let dir = t.client.walk_to(t.root, "d");
            let (child, ..) = t.client.open_create(new_in(dir, FileType::Regular, 0o600), READ, "f").expect("create");
            assert_eq!((child.stat.gid, t.owner("d/f").1), (77, 77));
        },
    );
}

#[test]
fn what_exists_is_not_created_again_not_even_a_dangling_link() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
            symlink("f", dir.join("link")).expect("a link");
            symlink("nowhere", dir.join("dangling")).expect("a link");
        },
        |t| {
            for name in ["f", "d", "link", "dangling"] {
                let create = new_in(t.root, FileType::Regular, 0o600);
                assert_eq!(t.client.open_create(create, READ_WRITE, name).map(drop), Err(Errno::EEXIST), "{name}");
            }
            assert_eq!(t.permissions("f"), 0o644);
            assert!(!t.exists("nowhere"));
        },
    );
}

#[test]
fn files_are_created_in_directories_only() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            symlink(".", dir.join("l")).expect("a link");
        },
        |t| {
            for name in ["f", "l"] {
                let create = new_in(t.client.walk_to(t.root, name), FileType::Regular, 0o600);
                assert_eq!(t.client.open_create(create, READ_WRITE, "new").map(drop), Err(Errno::ENOTDIR), "{name}");
            }
            assert!(!t.exists("new"));
        },
    );
}

#[test]
fn close_takes_any_number_of_any_descriptors_and_never_fails() {
    over_both(
        &[],
        |dir| files(dir, &["f", "g"]),
        |t| {
            let (f, g) = (t.client.walk_to(t.root, "f"), t.client.walk_to(t.root, "g"));
            let (open, _) = t.client.open(f, READ).expect("open");
            t.client.close(&[]);
            t.client.close(&[FdId(0), FdId(u64::MAX), FdId(1 << 40), f, f, open, FdId(0), g, f]);
            for fd in [f, g, open] {
                assert_eq!(t.client.fstat(fd), Err(Errno::EBADF));
            }
            t.client.close(&vec![f; 65_535]);
            assert!(t.client.fstat(t.root).is_ok());
        },
    );
}

#[test]
fn close_gives_the_hosts_descriptors_back() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let before = t.descriptors();
            let mut held = Vec::new();
            for _ in 0..20 {
                let control = t.client.walk_to(t.root, "f");
                let (open, _) = t.client.open(control, READ_WRITE).expect("open");
                held.extend([control, open]);
            }
            assert_eq!(t.descriptors(), before + 40);
            t.client.close(&held);
            assert_eq!(t.descriptors(), before);
        },
    );
}

#[test]
fn flush_is_not_served() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let (open, _) = t.client.open(t.client.walk_to(t.root, "f"), READ).expect("open");
            assert_eq!(t.client.ask(&FlushRequest { fd: open }).map(drop), Err(Errno::EOPNOTSUPP));
        },
    );
}
