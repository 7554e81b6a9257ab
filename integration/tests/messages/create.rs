//! MkdirAt, MknodAt, SymlinkAt, LinkAt.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};

use gofer_integration::{Ask, new_in, nothing, over_both};
use gofer_protocol::codec::SizedString;
use gofer_protocol::message::{LinkAtRequest, SymlinkAtRequest};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{READ_WRITE, fifo, files, null_device, socket_file};

#[test]
fn a_directory_is_made_with_mode_and_owner_and_no_umask() {
    over_both(&[], nothing, |t| {
        let create = CreateCommon::new(t.root, Uid(5), Gid(6), FileMode::new(FileType::Directory, 0o777));
        let links = t.metadata("").nlink();
        let child = t.client.mkdir(create, "d").expect("mkdir");
        assert_eq!((t.permissions("d"), t.owner("d")), (0o777, (5, 6)));
        assert_eq!(t.metadata("").nlink(), links + 1);
        assert_eq!(t.client.fstat(child.control_fd), Ok(child.stat));
        assert_eq!(child.stat.mode.file_type(), Some(FileType::Directory));
        assert_eq!(t.client.find(t.root, "d").stat, child.stat);
        // It can be used as a directory at once.
        assert!(t.client.mkdir(new_in(child.control_fd, FileType::Directory, 0o700), "e").is_ok());
        assert!(t.exists("d/e"));
    });
}

#[test]
fn of_a_directorys_mode_the_kernel_keeps_permissions_and_sticky() {
    over_both(&[], nothing, |t| {
        // Type bits of anything do not matter either.
        for (number, bits) in [0u16, 0o4_0000, 0o10_0000, 0o14_0000].into_iter().enumerate() {
            let name = format!("d{number}");
            let create = CreateCommon::new(t.root, Uid::NONE, Gid::NONE, FileMode(bits | 0o7755));
            let child = t.client.mkdir(create, &name).expect("mkdir");
            assert_eq!((t.permissions(&name), child.stat.mode.permissions()), (0o1755, 0o1755));
        }
    });
}

#[test]
fn a_directory_in_a_setgid_directory_inherits_group_and_bit() {
    over_both(
        &[],
        |dir| {
            std::fs::create_dir(dir.join("shared")).expect("a directory");
            chown(dir.join("shared"), Some(0), Some(77)).expect("a group");
            std::fs::set_permissions(dir.join("shared"), std::fs::Permissions::from_mode(0o2777)).expect("a mode");
        },
        |t| {
            let dir = t.client.walk_to(t.root, "shared");
            let child = t.client.mkdir(new_in(dir, FileType::Directory, 0o750), "d").expect("mkdir");
            assert_eq!((t.permissions("shared/d"), t.owner("shared/d").1, child.stat.gid), (0o2750, 77, 77));
        },
    );
}

#[test]
fn a_regular_file_is_made_without_opening_it() {
    over_both(&[], nothing, |t| {
        let create = CreateCommon::new(t.root, Uid(1000), Gid(1001), FileMode::new(FileType::Regular, 0o666));
        let child = t.client.mknod(create, (0, 0), "f").expect("mknod");
        assert!(t.metadata("f").is_file());
        assert_eq!((t.permissions("f"), t.owner("f")), (0o666, (1000, 1001)));
        assert_eq!((child.stat.size, child.stat.nlink), (0, 1));
        assert!(t.client.open(child.control_fd, READ_WRITE).is_ok());
        // Numbers of a device mean nothing here.
        let child = t.client.mknod(new_in(t.root, FileType::Regular, 0o600), (1, 5), "g").expect("mknod");
        assert_eq!((child.stat.rdev_major, child.stat.rdev_minor), (0, 0));
    });
}

#[test]
fn an_owner_clears_setuid_and_setgid_of_a_made_file_and_no_owner_keeps_them() {
    over_both(&[], nothing, |t| {
        let owned = CreateCommon::new(t.root, Uid(1), Gid(1), FileMode::new(FileType::Regular, 0o6755));
        assert_eq!(t.client.mknod(owned, (0, 0), "f").map(|child| child.stat.mode.permissions()), Ok(0o755));
        let kept = new_in(t.root, FileType::Regular, 0o6755);
        assert_eq!(t.client.mknod(kept, (0, 0), "g").map(|child| child.stat.mode.permissions()), Ok(0o6755));
        assert_eq!((t.permissions("f"), t.permissions("g")), (0o755, 0o6755));
    });
}

#[test]
fn a_whiteout_is_the_only_device_that_is_made() {
    over_both(&[], nothing, |t| {
        let device = |name, number| t.client.mknod(new_in(t.root, FileType::CharDevice, 0o600), number, name);
        let child = device("whiteout", (0, 0)).expect("mknod");
        assert!(t.metadata("whiteout").file_type().is_char_device());
        assert_eq!((t.metadata("whiteout").rdev(), child.stat.mode.file_type()), (0, Some(FileType::CharDevice)));
        for number in [(1, 3), (0, 1), (1, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(device("device", number), Err(Errno::EPERM), "{number:?}");
        }
        assert!(!t.exists("device"));
    });
}

#[test]
fn every_other_type_is_eperm_and_that_is_said_after_all_other_checks() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            for bits in [0, 0x1000, 0x3000, 0x4000, 0x5000, 0x6000, 0x7000, 0x9000, 0xa000, 0xc000, 0xe000, 0xf000] {
                let mknod = |fd, name| {
                    t.client.mknod(CreateCommon::new(fd, Uid(0), Gid(0), FileMode(bits | 0o600)), (0, 0), name)
                };
                assert_eq!(mknod(t.root, "new"), Err(Errno::EPERM), "0x{bits:x}");
                assert_eq!(mknod(t.root, "f"), Err(Errno::EPERM), "0x{bits:x}");
                assert_eq!(mknod(FdId(0), ".."), Err(Errno::EINVAL), "0x{bits:x}");
                assert_eq!(mknod(FdId(0), "new"), Err(Errno::EBADF), "0x{bits:x}");
                assert_eq!(mknod(t.client.walk_to(t.root, "f"), "new"), Err(Errno::ENOTDIR), "0x{bits:x}");
            }
            assert!(!t.exists("new"));
        },
    );
}

#[test]
fn a_symlink_keeps_its_target_unresolved_and_its_owner_is_its_own() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let long = [b'x'; 4095];
            for (name, target) in [
                ("a", &b"f"[..]),
                ("b", b"/etc/passwd"),
                ("c", b"../../x"),
                ("d", b"\xff\n"),
                ("e", b"."),
                ("g", &long),
            ] {
                let child = t.client.symlink_as(t.root, (Uid(5), Gid(6)), name, target).expect("symlink");
                assert_eq!(child.stat.mode.file_type(), Some(FileType::Symlink), "{name}");
                assert_eq!((t.owner(name), child.stat.size), ((5, 6), target.len() as u64), "{name}");
                assert_eq!(t.client.read_link(child.control_fd), Ok(target.to_vec()), "{name}");
                let host = std::fs::read_link(t.host(name)).expect("a link");
                assert_eq!(host.as_os_str().as_encoded_bytes(), target, "{name}");
            }
            assert_eq!(t.owner("f"), (0, 0), "what it leads to is left alone");
        },
    );
}

#[test]
fn symlink_targets_that_no_host_stores_are_refused() {
    over_both(&[], nothing, |t| {
        let symlink = |target: &[u8]| t.client.symlink(t.root, "l", target);
        assert_eq!(symlink(b""), Err(Errno::ENOENT));
        assert_eq!(symlink(&[b'x'; 4096]), Err(Errno::ENAMETOOLONG));
        assert_eq!(symlink(&[b'x'; 65_535]), Err(Errno::ENAMETOOLONG));
        assert_eq!(symlink(b"a\0b"), Err(Errno::EINVAL));
        assert!(!t.exists("l"));
    });
}

#[test]
fn a_hard_link_is_one_more_name_with_a_control_descriptor_of_its_own() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
        },
        |t| {
            let target = t.client.find(t.root, "f");
            let child = t.client.link(t.client.walk_to(t.root, "d"), target.control_fd, "g").expect("link");
            assert_ne!(child.control_fd, target.control_fd);
            assert_eq!((child.stat.ino, child.stat.nlink), (target.stat.ino, 2));
            assert_eq!((t.metadata("d/g").ino(), t.metadata("f").nlink()), (target.stat.ino, 2));
            // Two nodes: the removal of one name leaves the other.
            t.client.unlink(t.root, "f").expect("unlink");
            assert_eq!(t.client.link(t.root, target.control_fd, "x"), Err(Errno::EINVAL));
            assert!(t.client.link(t.root, child.control_fd, "y").is_ok());
        },
    );
}

#[test]
fn hard_links_are_made_to_everything_but_directories() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
            symlink("f", dir.join("l")).expect("a link");
            symlink("nowhere", dir.join("dangling")).expect("a link");
            fifo(&dir.join("p"));
            socket_file(&dir.join("s"));
            null_device(&dir.join("c"));
        },
        |t| {
            for name in ["l", "dangling", "p", "s", "c"] {
                let target = t.client.find(t.root, name);
                let new = format!("{name}-2");
                let child = t.client.link(t.root, target.control_fd, &new).unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!((child.stat.ino, child.stat.mode), (target.stat.ino, target.stat.mode), "{name}");
                assert_eq!(
                    t.metadata(&new).ino(),
                    t.metadata(name).ino(),
                    "the file itself, not what it leads to: {name}"
                );
            }
            let dir = t.client.walk_to(t.root, "d");
            assert_eq!(t.client.link(t.root, dir, "d2"), Err(Errno::EPERM));
            assert_eq!(t.client.link(dir, dir, "d2"), Err(Errno::EPERM));
            assert_eq!(t.client.link(t.root, t.root, "d2"), Err(Errno::EPERM));
        },
    );
}

#[test]
fn a_hard_link_is_to_what_the_descriptor_holds_not_to_what_has_its_name_now() {
    over_both(
        &[],
        |dir| files(dir, &["f", "other"]),
        |t| {
            let target = t.client.find(t.root, "f");
            // Behind the server's back.
            std::fs::rename(t.host("f"), t.host("kept")).expect("rename");
            std::fs::rename(t.host("other"), t.host("f")).expect("rename");
            let child = t.client.link(t.root, target.control_fd, "new").expect("link");
            assert_eq!(child.stat.ino, target.stat.ino);
            assert_eq!(std::fs::read(t.host("new")).expect("read"), b"f");
            // With no name left there is nothing to link to.
            std::fs::remove_file(t.host("kept")).expect("remove");
            std::fs::remove_file(t.host("new")).expect("remove");
            assert_eq!(t.client.link(t.root, target.control_fd, "again"), Err(Errno::ENOENT));
            assert!(!t.exists("again"));
        },
    );
}

#[test]
fn the_checks_of_link_at_come_in_order() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
        },
        |t| {
            let (file, dir) = (t.client.walk_to(t.root, "f"), t.client.walk_to(t.root, "d"));
            let (open, _) = t.client.open(file, 0).expect("open");
            assert_eq!(t.client.link(FdId(0), FdId(0), ".."), Err(Errno::EINVAL));
            assert_eq!(t.client.link(FdId(0), open, "x"), Err(Errno::EBADF));
            assert_eq!(t.client.link(open, FdId(0), "x"), Err(Errno::EINVAL));
            assert_eq!(t.client.link(file, FdId(0), "x"), Err(Errno::ENOTDIR));
            assert_eq!(t.client.link(t.root, FdId(0), "x"), Err(Errno::EBADF));
            assert_eq!(t.client.link(t.root, open, "x"), Err(Errno::EINVAL));
            assert_eq!(t.client.link(t.root, dir, "f"), Err(Errno::EPERM));
            assert_eq!(t.client.link(t.root, file, "f"), Err(Errno::EEXIST));
        },
    );
}

#[test]
fn what_exists_is_not_made_again() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
            symlink("nowhere", dir.join("l")).expect("a link");
        },
        |t| {
            let target = t.client.walk_to(t.root, "f");
            for name in ["f", "d", "l"] {
                assert_eq!(
                    t.client.mkdir(new_in(t.root, FileType::Directory, 0o700), name),
                    Err(Errno::EEXIST),
                    "{name}"
                );
                let file = new_in(t.root, FileType::Regular, 0o600);
                assert_eq!(t.client.mknod(file, (0, 0), name), Err(Errno::EEXIST), "{name}");
                assert_eq!(t.client.symlink(t.root, name, b"x"), Err(Errno::EEXIST), "{name}");
                assert_eq!(t.client.link(t.root, target, name), Err(Errno::EEXIST), "{name}");
            }
            assert_eq!((t.permissions("d"), t.permissions("f")), (0o755, 0o644));
        },
    );
}

#[test]
fn what_was_created_is_tracked_as_if_walked_to() {
    over_both(&[], nothing, |t| {
        let made: [Inode; 4] = [
            t.client.mkdir(new_in(t.root, FileType::Directory, 0o700), "d").expect("mkdir"),
            t.client.mknod(new_in(t.root, FileType::Regular, 0o600), (0, 0), "f").expect("mknod"),
            t.client.symlink(t.root, "l", b"f").expect("symlink"),
            t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "c").expect("create").0,
        ];
        for (inode, name) in made.iter().zip(["d", "f", "l", "c"]) {
            if name == "d" { t.client.rmdir(t.root, name) } else { t.client.unlink(t.root, name) }.expect("unlink");
            assert!(t.client.fstat(inode.control_fd).is_ok(), "{name}");
            assert_eq!(t.client.get_xattr(inode.control_fd, 0, "user.x"), Err(Errno::EINVAL), "{name}: deleted");
        }
    });
}

#[test]
fn the_wire_has_minor_before_major_and_name_before_target() {
    over_both(&[], nothing, |t| {
        // By hand, so that an exchange of fields on both sides would show.
        let prefix = |mode: u16| {
            [t.root.0.to_le_bytes().to_vec(), vec![0xff; 8], mode.to_le_bytes().to_vec(), vec![0; 6]].concat()
        };
        let null =
            [prefix(0x2180), 3u32.to_le_bytes().to_vec(), 1u32.to_le_bytes().to_vec(), b"\x01\0n".to_vec()].concat();
        assert_eq!(t.client.exchange(14, &null).map(drop), Err(Errno::EPERM));
        let request = SymlinkAtRequest {
            dir_fd: t.root,
            uid: Uid(1),
            gid: Gid(2),
            name: SizedString::new(b"name").expect("short"),
            target: SizedString::new(b"target").expect("short"),
        };
        t.client.ask(&request).expect("symlink");
        assert_eq!(t.owner("name"), (1, 2));
        let request = LinkAtRequest {
            dir_fd: t.root,
            target: t.client.walk_to(t.root, "name"),
            name: SizedString::new(b"n2").expect("short"),
        };
        t.client.ask(&request).expect("link");
        assert!(t.exists("n2"));
    });
}
