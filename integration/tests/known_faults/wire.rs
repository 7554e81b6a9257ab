//! Hostile or unlucky clients on the wire.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;

use gofer_integration::mounts::{Mounted, in_private_namespace};
use gofer_integration::{Ask, Exchange, Served, Trial, new_in, nothing, over_both, over_both_on, say};
use gofer_protocol::message::WalkStatus;
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, Mid};
use rustix::fs::{CWD, Mode, mknodat};

/// Most bytes that one PWrite carries.
const MOST_WRITTEN: usize = 2_093_056 - 20;
/// Most bytes that one PRead asks for.
const MOST_READ: u32 = 2_093_056 - 8;

/// Requests with a counted string or array: what stands before the count, and the bytes of the count.
fn counted() -> Vec<(Mid, Vec<u8>, usize)> {
    let fixed = [
        (Mid::WALK, 8),
        (Mid::WALK_STAT, 8),
        (Mid::OPEN_CREATE_AT, 28),
        (Mid::CLOSE, 0),
        (Mid::FSYNC, 0),
        (Mid::MKDIR_AT, 24),
        (Mid::MKNOD_AT, 32),
        (Mid::SYMLINK_AT, 16),
        (Mid::LINK_AT, 16),
        (Mid::UNLINK_AT, 12),
        (Mid::RENAME_AT, 16),
        (Mid::RENAME_AT2, 16),
        (Mid::FGET_XATTR, 12),
        (Mid::FSET_XATTR, 12),
        (Mid::FREMOVE_XATTR, 8),
        (Mid::BIND_AT, 28),
    ];
    let mut all: Vec<_> = fixed.into_iter().map(|(mid, len)| (mid, vec![0; len], 2)).collect();
    // The second string of those that have two.
    for (mid, len) in [(Mid::SYMLINK_AT, 16), (Mid::RENAME_AT, 16), (Mid::RENAME_AT2, 16), (Mid::FSET_XATTR, 12)] {
        let mut before = vec![0; len];
        before.extend_from_slice(b"\x01\0a");
        all.push((mid, before, 2));
    }
    // The strings within an array of one.
    for mid in [Mid::WALK, Mid::WALK_STAT] {
        let mut before = vec![0; 8];
        before.extend_from_slice(&1u16.to_le_bytes());
        all.push((mid, before, 2));
    }
    all.push((Mid::PWRITE, vec![0; 16], 4));
    all
}

/// Row B03.
#[test]
fn a_count_that_the_payload_does_not_bear_out_is_eio_and_costs_no_memory() {
    let served = Served::new();
    let round = || {
        for (mid, before, width) in counted() {
            for count in [0xffff_ffff_u32, 0x8000_0000, 0x7fff_ffff] {
                let mut payload = before.clone();
                // The high bytes, so that shorter counts have the same sign.
                payload.extend_from_slice(&count.to_le_bytes()[4 - width..]);
                payload.extend_from_slice(&[b'x'; 16]);
                let answer = served.client.exchange(mid.0, &payload);
                assert_eq!(answer.map(|_| ()), Err(Errno::EIO), "{mid:?} with a count of {count:#x}");
            }
        }
    };
    round();
    let before = (served.gofer.status("VmPeak:"), served.gofer.anonymous_kib());
    round();
    let after = (served.gofer.status("VmPeak:"), served.gofer.anonymous_kib());
    // The peak of virtual memory also shows what was allocated but never touched.
    assert!(after.0 <= before.0 + 256 && after.1 <= before.1 + 64, "{before:?} KiB became {after:?}");
    assert!(served.client.fstat(served.root).is_ok(), "the server lives");
}

/// Row B03.
#[test]
fn an_amount_that_a_client_asks_for_sizes_no_memory() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "x").expect("a file"));
    let (dir, _) = served.client.open(served.root, 0).expect("open");
    let (file, _) = served.client.open(served.client.walk_to(served.root, "f"), 0).expect("open");
    let round = || {
        for amount in [0xffff_ffff_u32, 0x8000_0000, 0x7fff_ffff] {
            assert_eq!(served.client.pread(file, 0, amount), Err(Errno::ENOBUFS));
            let budget = i32::from_le_bytes(amount.to_le_bytes());
            assert!(served.client.getdents(dir, budget).is_ok(), "a budget of {budget}");
            let mut payload = served.root.0.to_le_bytes().to_vec();
            payload.extend_from_slice(&amount.to_le_bytes());
            payload.extend_from_slice(b"\x06\0user.x");
            assert_eq!(served.client.exchange(Mid::FGET_XATTR.0, &payload).map(|_| ()), Err(Errno::ENODATA));
            let mut payload = served.root.0.to_le_bytes().to_vec();
            payload.extend_from_slice(&(u64::from(amount) << 32 | u64::from(amount)).to_le_bytes());
            assert!(served.client.exchange(Mid::FLIST_XATTR.0, &payload).is_ok());
        }
    };
    round();
    let before = (served.gofer.status("VmPeak:"), served.gofer.anonymous_kib());
    round();
    let after = (served.gofer.status("VmPeak:"), served.gofer.anonymous_kib());
    assert!(after.0 <= before.0 + 256 && after.1 <= before.1 + 64, "{before:?} KiB became {after:?}");
}

/// Row B07.
#[test]
fn what_is_larger_than_one_message_is_written_and_read_back_unchanged() {
    const OFFSET: usize = 5;
    let data: Vec<u8> =
        (0..(8 << 20) + 3_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
    over_both(&[], nothing, |t| {
        let (_, file, _donated_and_not_used) = t.client.create(t.root, "f").expect("create");
        for (at, part) in (OFFSET..).step_by(MOST_WRITTEN).zip(data.chunks(MOST_WRITTEN)) {
            assert_eq!(t.client.pwrite(file, at as u64, part), Ok(part.len() as u64));
        }
        let mut read = vec![0; OFFSET];
        loop {
            let part = t.client.pread(file, read.len() as u64, MOST_READ).expect("read");
            if part.is_empty() {
                break;
            }
            read.extend_from_slice(&part);
        }
        assert!(read[OFFSET..] == data, "the data differs");
        assert_eq!(fs::read(t.host("f")).expect("the file"), read);
    });
}

/// Row B07.
#[test]
fn a_write_that_fills_the_disk_half_way_counts_what_went_and_the_next_one_fails() {
    in_private_namespace(|| {
        let disk = Mounted::tmpfs("size=64k");
        let test = |t: &Trial<'_>| {
            let (_, file, _) = t.client.create(t.root, "f").expect("create");
            let data = vec![7; 100 << 10];
            let count = t.client.pwrite(file, 0, &data).expect("a short write");
            assert!(count > 0 && count < data.len() as u64, "{count} bytes fit");
            assert_eq!(t.metadata("f").len(), count);
            assert_eq!(t.client.pwrite(file, count, &data), Err(Errno::ENOSPC));
            // The rest of the refused data is not taken for a request.
            assert_eq!(t.client.pread(file, 0, 4).as_deref(), Ok(&[7; 4][..]));
            // So that its space is free again, once the server is gone.
            t.client.unlink(t.root, "f").expect("unlink");
        };
        over_both_on(|| Served::at(disk.path(), &[]), test);
    });
}

/// Row B08.
#[test]
fn a_read_at_the_end_and_beyond_it_yields_no_bytes_and_no_error() {
    let digits = |dir: &Path| fs::write(dir.join("f"), "0123456789").expect("a file");
    over_both(&[], digits, |t| {
        let (file, _) = t.client.open(t.client.walk_to(t.root, "f"), 0).expect("open");
        assert_eq!(t.client.pread(file, 0, 4096).as_deref(), Ok(&b"0123456789"[..]));
        for offset in [10, 11, 1 << 40] {
            assert_eq!(t.client.pread(file, offset, 4096).as_deref(), Ok(&b""[..]), "at {offset}");
        }
    });
}

/// Names that lead out of a directory, or nowhere.
const UNSAFE: [&[u8]; 7] = [b"..", b".", b"/", b"a/b", b"../..", b"/etc", b"a\0"];

/// Row B12.
#[test]
fn an_unsafe_component_is_refused_at_every_position_and_nothing_is_handed_out() {
    let served = Served::with(&[], |dir| {
        fs::create_dir_all(dir.join("a/b/c")).expect("directories");
        fs::write(dir.join("a/file"), "").expect("a file");
    });
    let before = served.descriptors();
    for bad in UNSAFE {
        for position in 0..3 {
            let mut path: Vec<&[u8]> = vec![b"a", b"b", b"c"];
            path[position] = bad;
            assert_eq!(served.client.walk(served.root, &path).map(|_| ()), Err(Errno::EINVAL), "{path:?}");
            assert_eq!(served.client.walk_stat(served.root, &path).map(|_| ()), Err(Errno::EINVAL), "{path:?}");
        }
        // Also behind what is no directory.
        let path: [&[u8]; 3] = [b"a", b"file", bad];
        assert_eq!(served.client.walk(served.root, &path).map(|_| ()), Err(Errno::EINVAL), "{path:?}");
    }
    // An empty name is the start itself in WalkStat, and only there, and only first.
    assert_eq!(served.client.walk(served.root, &[""]).map(|_| ()), Err(Errno::EINVAL));
    assert_eq!(served.client.walk_stat(served.root, &["a", ""]).map(|_| ()), Err(Errno::EINVAL));
    assert_eq!(served.descriptors(), before);
}

/// Row B12.
#[test]
fn a_walk_says_where_it_stopped() {
    let served = Served::with(&[], |dir| {
        fs::create_dir_all(dir.join("a/b")).expect("directories");
        fs::write(dir.join("a/file"), "").expect("a file");
        symlink("/etc", dir.join("a/link")).expect("a link");
    });
    let stopped = |path: &[&str]| served.client.walk(served.root, path).map(|(why, inodes)| (why, inodes.len()));
    assert_eq!(stopped(&["a", "b"]), Ok((WalkStatus::SUCCESS, 2)));
    assert_eq!(stopped(&["a", "missing", "b"]), Ok((WalkStatus::MISSING, 1)));
    assert_eq!(stopped(&["a", "link", "passwd"]), Ok((WalkStatus::SYMLINK, 2)));
    assert_eq!(stopped(&["a", "file", "x"]), Err(Errno::ENOTDIR));
    let file = served.client.walk_to(served.root, "a/file");
    assert_eq!(served.client.walk(file, &["x"]).map(|_| ()), Err(Errno::ENOTDIR));
    assert_eq!(served.client.walk_stat(file, &[".."]).map(|_| ()), Err(Errno::EINVAL));
}

/// Row B14.
#[test]
fn a_node_is_made_in_the_directory_that_was_walked_to_not_where_its_name_leads_now() {
    let outside = tempfile::tempdir().expect("a directory");
    let served = Served::with(&[], |dir| fs::create_dir(dir.join("d")).expect("a directory"));
    let dir = served.client.walk_to(served.root, "d");
    let (at, moved) = (served.path().join("d"), served.path().join("moved"));
    fs::rename(&at, &moved).expect("rename");
    symlink(outside.path(), &at).expect("a link");
    let regular = new_in(dir, FileType::Regular, 0o644);
    served.client.mknod(regular, (0, 0), "x").expect("mknod");
    served.client.mkdir(new_in(dir, FileType::Directory, 0o755), "y").expect("mkdir");
    served.client.create(dir, "z").expect("create");
    assert_eq!(fs::read_dir(outside.path()).expect("outside").count(), 0);
    for name in ["x", "y", "z"] {
        assert!(moved.join(name).exists(), "{name} is in the original directory");
    }
    // And where the original is gone, nowhere.
    fs::remove_dir_all(&moved).expect("remove");
    assert_eq!(served.client.mknod(regular, (0, 0), "w").map(|_| ()), Err(Errno::ENOENT));
    assert_eq!(fs::read_dir(outside.path()).expect("outside").count(), 0);
}

/// Row B15.
#[test]
fn a_block_device_can_be_listed_but_not_reached() {
    let dir = tempfile::tempdir().expect("a directory");
    let device = dir.path().join("block");
    // The first loop device: that it may not be there does not matter.
    let made = mknodat(CWD, &device, rustix::fs::FileType::BlockDevice, Mode::RUSR, rustix::fs::makedev(7, 0));
    if let Err(errno) = made {
        return say::skipped(format_args!("needs the right to make devices: {errno}"));
    }
    let served = Served::at(dir.path(), &["--character-device-policy=passthrough"]);
    assert_eq!(served.client.walk(served.root, &["block"]).map(|_| ()), Err(Errno::EPERM));
    assert_eq!(served.client.walk_stat(served.root, &["block"]).map(|_| ()), Err(Errno::EPERM));
    let (open, _) = served.client.open(served.root, 0).expect("open");
    let entries = served.client.list(open);
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0].name[..], entries[0].entry_type), (&b"block"[..], FileType::BlockDevice.dirent_type()));
    assert!(device.symlink_metadata().expect("the device").file_type().is_block_device(), "untouched");
}
