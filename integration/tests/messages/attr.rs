//! FStat, SetStat, FStatFS.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use gofer_integration::{Ask, Trial, change, nothing, over_both, over_both_unprivileged, say};
use gofer_protocol::message::{SetStatReply, SetStatRequest};
use gofer_protocol::record::{StatxMask, Timespec, Timestamp};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{READ_WRITE, fifo, files, null_device, socket_file};

/// One of each type that can be served: f, d, l (to f), p, s, c.
fn one_of_each(dir: &Path) {
    files(dir, &["f"]);
    std::fs::create_dir(dir.join("d")).expect("a directory");
    symlink("f", dir.join("l")).expect("a link");
    fifo(&dir.join("p"));
    socket_file(&dir.join("s"));
    null_device(&dir.join("c"));
}

const ALL_TYPES: [&str; 6] = ["f", "d", "l", "p", "s", "c"];

const APPLIED: SetStatReply = SetStatReply { failure_mask: StatxMask(0), failure_errno: 0 };

fn failed(mask: StatxMask, errno: Errno) -> SetStatReply {
    SetStatReply { failure_mask: mask, failure_errno: errno.raw() }
}

#[test]
fn fstat_says_what_the_host_says() {
    over_both(&[], one_of_each, |t| {
        for name in ALL_TYPES {
            let found = t.client.find(t.root, name);
            let stat = t.client.fstat(found.control_fd).expect("stat");
            assert_eq!(stat, found.stat, "{name}: as the walk said");
            let host = t.metadata(name);
            assert!(stat.mask.contains(StatxMask(0x7ff)), "{name}: {:?}", stat.mask);
            assert_eq!(u32::from(stat.mode.0), host.mode(), "{name}");
            assert_eq!((stat.uid, stat.gid, u64::from(stat.nlink)), (host.uid(), host.gid(), host.nlink()), "{name}");
            assert_eq!((stat.ino, stat.size, stat.blocks), (host.ino(), host.size(), host.blocks()), "{name}");
            assert_eq!(u64::from(stat.blksize), host.blksize(), "{name}");
            assert_eq!(rustix::fs::makedev(stat.dev_major, stat.dev_minor), host.dev(), "{name}");
            assert_eq!(rustix::fs::makedev(stat.rdev_major, stat.rdev_minor), host.rdev(), "{name}");
            for (ours, seconds, nanoseconds) in [
                (stat.mtime, host.mtime(), host.mtime_nsec()),
                (stat.ctime, host.ctime(), host.ctime_nsec()),
                (stat.atime, host.atime(), host.atime_nsec()),
            ] {
                assert_eq!((ours.seconds, i64::from(ours.nanoseconds)), (seconds, nanoseconds), "{name}");
            }
            assert_eq!((stat.attributes, stat.attributes_mask), (0, 0), "{name}");
        }
        assert!(t.metadata("c").file_type().is_char_device());
    });
}

#[test]
fn fstat_tells_the_birth_time_where_the_file_system_has_one() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let stat = t.client.find(t.root, "f").stat;
            match t.metadata("f").created() {
                Ok(created) => {
                    let born = created.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
                    assert!(stat.mask.contains(StatxMask::BTIME));
                    assert_eq!(stat.btime.seconds.unsigned_abs(), born.as_secs());
                    assert_eq!(stat.btime.nanoseconds, born.subsec_nanos());
                }
                Err(_) => assert!(!stat.mask.contains(StatxMask::BTIME)),
            }
        },
    );
}

#[test]
fn fstat_of_an_open_descriptor_is_that_of_its_file() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(control, READ_WRITE).expect("open");
            assert_eq!(t.client.fstat(open), t.client.fstat(control));
            t.client.pwrite(open, 0, b"longer than before").expect("write");
            assert_eq!(t.client.fstat(open).expect("stat").size, 18);
            assert_eq!(t.client.fstat(control).expect("stat").size, 18);
        },
    );
}

#[test]
fn set_stat_applies_everything_at_once() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let request = SetStatRequest {
                fd,
                mask: StatxMask::SETTABLE,
                mode: 0o640,
                uid: Uid(1000),
                gid: Gid(1001),
                size: 50,
                atime: Timespec { seconds: 1_700_000_000, nanoseconds: 123_456_789 },
                mtime: Timespec { seconds: 1_600_000_000, nanoseconds: 1 },
            };
            assert_eq!(t.client.set_stat(&request), Ok(APPLIED));
            let host = t.metadata("f");
            assert_eq!((t.permissions("f"), t.owner("f"), host.size()), (0o640, (1000, 1001), 50));
            assert_eq!((host.atime(), host.atime_nsec()), (1_700_000_000, 123_456_789));
            assert_eq!((host.mtime(), host.mtime_nsec()), (1_600_000_000, 1));
        },
    );
}

#[test]
fn set_stat_with_a_bit_that_cannot_be_set_changes_nothing() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            for bit in (0..32).map(|bit| 1 << bit).filter(|bit| bit & StatxMask::SETTABLE.0 == 0) {
                let request = SetStatRequest { mode: 0o600, ..change(fd, StatxMask::MODE.or(StatxMask(bit))) };
                assert_eq!(t.client.set_stat(&request), Err(Errno::EPERM), "bit 0x{bit:x}");
            }
            assert_eq!(t.permissions("f"), 0o644);
            // The descriptor is looked at before the mask.
            assert_eq!(t.client.set_stat(&change(FdId(99), StatxMask::NLINK)), Err(Errno::EBADF));
            assert_eq!(t.client.set_stat(&change(fd, StatxMask(0))), Ok(APPLIED), "nothing to do is fine");
        },
    );
}

#[test]
fn the_owner_comes_last_and_clears_setuid_and_setgid() {
    over_both(
        &[],
        |dir| files(dir, &["f", "g"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let mask = StatxMask::MODE.or(StatxMask::UID);
            let request = SetStatRequest { mode: 0o6711, uid: Uid(1), ..change(fd, mask) };
            assert_eq!(t.client.set_stat(&request), Ok(APPLIED));
            assert_eq!(t.permissions("f"), 0o711);
            let fd = t.client.walk_to(t.root, "g");
            assert_eq!(t.client.chmod(fd, 0o6711), Ok(APPLIED));
            assert_eq!(t.permissions("g"), 0o6711);
            // "none" and "none" is no change of owner at all.
            let request = change(fd, StatxMask::UID.or(StatxMask::GID));
            assert_eq!(t.client.set_stat(&request), Ok(APPLIED));
            assert_eq!(t.permissions("g"), 0o6711);
        },
    );
}

#[test]
fn the_mode_of_anything_but_a_symlink_is_set_and_its_type_bits_are_dropped() {
    over_both(&[], one_of_each, |t| {
        for name in ALL_TYPES {
            let fd = t.client.walk_to(t.root, name);
            let before = t.metadata(name).mode();
            let reply = t.client.chmod(fd, 0o14_0751).expect("a reply");
            if name == "l" {
                assert_eq!(reply, failed(StatxMask::MODE, Errno::EOPNOTSUPP));
                assert_eq!(t.metadata(name).mode(), before);
                continue;
            }
            assert_eq!(reply, APPLIED, "{name}");
            assert_eq!(t.metadata(name).mode(), before & 0o170_000 | 0o751, "{name}");
            assert_eq!(u32::from(t.client.fstat(fd).expect("stat").mode.0), t.metadata(name).mode(), "{name}");
        }
        assert_eq!(t.permissions("f"), 0o751);
    });
}

#[test]
fn the_size_of_a_regular_file_is_set_and_of_nothing_else() {
    over_both(&[], one_of_each, |t| {
        let set = |name: &str, size| {
            let fd = t.client.walk_to(t.root, name);
            t.client.set_stat(&SetStatRequest { size, ..change(fd, StatxMask::SIZE) }).expect("a reply")
        };
        assert_eq!(set("f", 4097), APPLIED);
        assert_eq!(t.metadata("f").size(), 4097);
        assert_eq!(set("f", 0), APPLIED);
        assert_eq!(t.metadata("f").size(), 0);
        for (name, errno) in
            [("d", Errno::EISDIR), ("l", Errno::ELOOP), ("s", Errno::ENXIO), ("p", Errno::EINVAL), ("c", Errno::EINVAL)]
        {
            assert_eq!(set(name, 5), failed(StatxMask::SIZE, errno), "{name}");
        }
        assert_eq!(set("f", 1 << 63), failed(StatxMask::SIZE, Errno::EINVAL));
        assert_eq!(set("f", u64::MAX), failed(StatxMask::SIZE, Errno::EINVAL));
        assert_eq!(t.metadata("f").size(), 0);
    });
}

#[test]
fn a_size_that_the_file_system_cannot_have_is_efbig() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let host = std::fs::File::options().write(true).open(t.host("f")).expect("the file");
            let Err(errno) = rustix::fs::ftruncate(&host, i64::MAX.unsigned_abs()) else {
                return say::skipped("this file system takes every size");
            };
            let request = SetStatRequest { size: i64::MAX.unsigned_abs(), ..change(fd, StatxMask::SIZE) };
            assert_eq!(t.client.set_stat(&request), Ok(failed(StatxMask::SIZE, errno.into())));
        },
    );
}

#[test]
fn what_fails_does_not_keep_the_rest_from_being_tried() {
    over_both(&[], one_of_each, |t| {
        let everything = |name: &str| SetStatRequest {
            mode: 0o700,
            size: 5,
            uid: Uid(7),
            mtime: Timespec { seconds: 77, nanoseconds: 0 },
            ..change(
                t.client.walk_to(t.root, name),
                StatxMask::MODE.or(StatxMask::SIZE).or(StatxMask::MTIME).or(StatxMask::UID),
            )
        };
        assert_eq!(t.client.set_stat(&everything("d")), Ok(failed(StatxMask::SIZE, Errno::EISDIR)));
        assert_eq!((t.permissions("d"), t.owner("d").0, t.metadata("d").mtime()), (0o700, 7, 77));
        // Of two failures, the last one's errno.
        let failures = failed(StatxMask::MODE.or(StatxMask::SIZE), Errno::ELOOP);
        assert_eq!(t.client.set_stat(&everything("l")), Ok(failures));
        assert_eq!((t.owner("l").0, t.metadata("l").mtime()), (7, 77));
        assert_eq!((t.owner("f").0, t.permissions("f")), (0, 0o644), "the link's target is left alone");
    });
}

fn set_times(t: &Trial<'_>, name: &str, mask: StatxMask, atime: Timespec, mtime: Timespec) -> SetStatReply {
    let fd = t.client.walk_to(t.root, name);
    t.client.set_stat(&SetStatRequest { atime, mtime, ..change(fd, mask) }).expect("a reply")
}

#[test]
fn times_of_every_type_are_set_to_the_nanosecond() {
    over_both(&[], one_of_each, |t| {
        let both = StatxMask::ATIME.or(StatxMask::MTIME);
        let target = t.metadata("f").mtime_nsec();
        for (offset, name) in (1..).zip(ALL_TYPES) {
            let atime = Timespec { seconds: 1_000_000_000 + offset, nanoseconds: 999_999_999 };
            // Before 1970.
            let mtime = Timespec { seconds: -offset, nanoseconds: offset };
            assert_eq!(set_times(t, name, both, atime, mtime), APPLIED, "{name}");
            let stat = t.client.find(t.root, name).stat;
            assert_eq!(stat.atime, Timestamp::new(atime.seconds, 999_999_999), "{name}");
            assert_eq!((stat.mtime.seconds, i64::from(stat.mtime.nanoseconds)), (-offset, offset), "{name}");
            assert_eq!((t.metadata(name).mtime(), t.metadata(name).mtime_nsec()), (-offset, offset), "{name}");
            if name == "f" {
                assert_ne!(t.metadata("f").mtime_nsec(), target);
            }
        }
        // The link had its own set, not the file's.
        assert_eq!(t.metadata("f").mtime(), -1);
    });
}

#[test]
fn a_time_that_is_not_in_the_mask_stays() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let at = |seconds| Timespec { seconds, nanoseconds: 5 };
            let both = StatxMask::ATIME.or(StatxMask::MTIME);
            assert_eq!(set_times(t, "f", both, at(100), at(200)), APPLIED);
            assert_eq!(set_times(t, "f", StatxMask::ATIME, at(300), at(400)), APPLIED);
            assert_eq!((t.metadata("f").atime(), t.metadata("f").mtime()), (300, 200));
            assert_eq!(set_times(t, "f", StatxMask::MTIME, at(500), at(600)), APPLIED);
            assert_eq!((t.metadata("f").atime(), t.metadata("f").mtime()), (300, 600));
            assert_eq!(set_times(t, "f", both, Timespec::OMIT, at(700)), APPLIED);
            assert_eq!((t.metadata("f").atime(), t.metadata("f").mtime()), (300, 700));
        },
    );
}

#[test]
fn utime_now_is_the_servers_present() {
    over_both(&[], one_of_each, |t| {
        let both = StatxMask::ATIME.or(StatxMask::MTIME);
        for name in ALL_TYPES {
            assert_eq!(set_times(t, name, both, Timespec::default(), Timespec::default()), APPLIED);
            assert_eq!(set_times(t, name, StatxMask::MTIME, Timespec::NOW, Timespec::NOW), APPLIED, "{name}");
            let age = t.metadata(name).modified().expect("a time").elapsed().unwrap_or_default();
            assert!(age < Duration::from_secs(600), "{name}: {age:?}");
            assert_eq!(t.metadata(name).atime(), 0, "{name}");
        }
    });
}

#[test]
fn times_fail_together() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let both = StatxMask::ATIME.or(StatxMask::MTIME);
            let bad = Timespec { seconds: 0, nanoseconds: 1_000_000_000 };
            let before = t.metadata("f").mtime();
            assert_eq!(set_times(t, "f", both, bad, Timespec::default()), failed(both, Errno::EINVAL));
            assert_eq!(t.metadata("f").mtime(), before);
            let negative = Timespec { seconds: 0, nanoseconds: -1 };
            assert_eq!(
                set_times(t, "f", StatxMask::ATIME, negative, negative),
                failed(StatxMask::ATIME, Errno::EINVAL)
            );
        },
    );
}

#[test]
fn the_owner_of_every_type_is_set_and_a_half_that_is_not_in_the_mask_stays() {
    over_both(&[], one_of_each, |t| {
        for name in ALL_TYPES {
            let fd = t.client.walk_to(t.root, name);
            let set = |mask, uid, gid| {
                t.client.set_stat(&SetStatRequest { uid: Uid(uid), gid: Gid(gid), ..change(fd, mask) })
            };
            assert_eq!(set(StatxMask::UID, 11, 12), Ok(APPLIED), "{name}");
            assert_eq!(t.owner(name), (11, 0), "{name}");
            assert_eq!(set(StatxMask::GID, 13, 14), Ok(APPLIED), "{name}");
            assert_eq!(t.owner(name), (11, 14), "{name}");
            assert_eq!(set(StatxMask::UID.or(StatxMask::GID), 15, 16), Ok(APPLIED), "{name}");
            assert_eq!(t.owner(name), (15, 16), "{name}");
        }
    });
}

#[test]
fn what_an_unprivileged_server_may_not_do_is_reported_attribute_by_attribute() {
    over_both_unprivileged(
        &[],
        |dir| files(dir, &["roots"]),
        |t| {
            t.client
                .open_create(
                    gofer_integration::new_in(t.root, gofer_protocol::record::FileType::Regular, 0o600),
                    2,
                    "own",
                )
                .expect("create");
            let own = t.client.walk_to(t.root, "own");
            let both = StatxMask::UID.or(StatxMask::GID);
            let request =
                SetStatRequest { mode: 0o640, uid: Uid(0), gid: Gid(0), ..change(own, both.or(StatxMask::MODE)) };
            assert_eq!(t.client.set_stat(&request), Ok(failed(both, Errno::EPERM)));
            assert_eq!(t.permissions("own"), 0o640);
            let roots = t.client.walk_to(t.root, "roots");
            let mask = StatxMask::MODE.or(StatxMask::SIZE);
            let request = SetStatRequest { mode: 0o777, size: 0, ..change(roots, mask) };
            assert_eq!(t.client.set_stat(&request), Ok(failed(mask, Errno::EACCES)));
            assert_eq!((t.permissions("roots"), t.metadata("roots").len()), (0o644, 5));
        },
    );
}

#[test]
fn a_size_can_be_set_again_after_the_right_to_write_is_gone() {
    over_both_unprivileged(&[], nothing, |t| {
        let create = gofer_integration::new_in(t.root, gofer_protocol::record::FileType::Regular, 0o600);
        let (child, ..) = t.client.open_create(create, 2, "f").expect("create");
        let resize = |fd, size| t.client.set_stat(&SetStatRequest { size, ..change(fd, StatxMask::SIZE) });
        assert_eq!(resize(child.control_fd, 10), Ok(APPLIED));
        std::fs::set_permissions(t.host("f"), std::fs::Permissions::from_mode(0o400)).expect("a mode");
        assert_eq!(resize(child.control_fd, 20), Ok(APPLIED));
        let fresh = t.client.walk_to(t.root, "f");
        assert_eq!(resize(fresh, 30), Ok(failed(StatxMask::SIZE, Errno::EACCES)));
        assert_eq!(t.metadata("f").len(), 20);
    });
}

#[test]
fn fstat_fs_says_what_the_host_says_and_takes_control_descriptors_only() {
    over_both(&[], one_of_each, |t| {
        let host = rustix::fs::statfs(t.served.path()).expect("statfs");
        for name in ALL_TYPES {
            let stat = t.client.fstat_fs(t.client.walk_to(t.root, name)).expect("statfs");
            assert_eq!(i64::try_from(stat.fs_type), Ok(host.f_type), "{name}");
            assert_eq!(
                (stat.block_size, stat.blocks, stat.files),
                (host.f_bsize, host.f_blocks, host.f_files),
                "{name}"
            );
            assert!(stat.blocks_available <= stat.blocks_free && stat.blocks_free <= stat.blocks, "{name}");
            assert!(stat.files_free <= stat.files, "{name}");
            assert_eq!(i64::try_from(stat.name_length), Ok(host.f_namelen), "{name}");
        }
        let (open, _) = t.client.open(t.client.walk_to(t.root, "f"), 0).expect("open");
        assert_eq!(t.client.fstat_fs(open), Err(Errno::EINVAL));
        assert_eq!(t.client.fstat_fs(FdId(0)), Err(Errno::EBADF));
    });
}
