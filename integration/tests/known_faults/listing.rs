//! Directory listings: every name once, at a price that grows with their number, and with the host's identities.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use gofer_integration::mounts::{Mounted, in_private_namespace, run};
use gofer_integration::{Ask, Entry, Served, say};
use gofer_protocol::FdId;
use gofer_protocol::record::FileType;

use super::fuse::Flat;
use super::trace::Calls;

fn fill(dir: &Path, count: usize) {
    for number in 0..count {
        File::create(dir.join(format!("file-{number:08}"))).expect("a file");
    }
}

/// Lists the root of `served`, and makes sure that what comes is exactly what is there.
fn list_exactly(served: &Served, count: usize) -> Vec<Entry> {
    let (open, _) = served.client.open(served.root, 0).expect("open");
    let entries = served.client.list(open);
    served.client.close(&[open]);
    let names: BTreeSet<&[u8]> = entries.iter().map(|entry| &entry.name[..]).collect();
    assert_eq!((entries.len(), names.len()), (count, count), "each name once");
    entries
}

/// Row B79.
#[test]
fn a_huge_directory_is_listed_in_linear_time_and_bounded_memory() {
    let sizes: &[usize] = if say::long() { &[1_000, 10_000, 100_000, 1_000_000] } else { &[1_000, 10_000, 100_000] };
    in_private_namespace(|| {
        let mut each = Vec::new();
        for &count in sizes {
            let tmpfs = Mounted::tmpfs("nr_inodes=0");
            fill(tmpfs.path(), count);
            let served = Served::at(tmpfs.path(), &[]);
            let before = (served.gofer.anonymous_kib(), served.gofer.cpu_ms());
            // As often as it takes to list equally many entries, by the server's own time: whatever else the machine has
            // to do does not count.
            let listings = 3 * sizes[sizes.len() - 1] / count;
            (0..listings).for_each(|_| drop(list_exactly(&served, count)));
            let after = (served.gofer.anonymous_kib(), served.gofer.cpu_ms());
            let cpu = after.1 - before.1;
            let nanoseconds = cpu * 1_000_000 / (listings * count) as u64;
            say::measured(format_args!(
                "{count} entries, {listings} times: server CPU {cpu} ms, {nanoseconds} ns each, memory {} to {} KiB",
                before.0, after.0
            ));
            // Buffers for one reply, whatever the directory's size.
            assert!(after.0 <= before.0 + 512, "{count} entries took {} KiB", after.0 - before.0);
            each.push(nanoseconds);
        }
        // By the square, the last would be ten times the one before.
        let [.., before, last] = each[..] else { panic!("three sizes at least") };
        assert!(last < before.max(2_000) * 5, "{before} ns an entry became {last}");
    });
}

/// Row B79. What the stock gofer does for every entry, to learn its device.
#[test]
fn no_entry_is_asked_for_on_file_systems_with_one_device() {
    const COUNT: usize = 10_000;
    in_private_namespace(|| {
        for (kind, system) in [("tmpfs", Some(Mounted::tmpfs("nr_inodes=0"))), ("ext4", Mounted::image("ext4", 64))] {
            let Some(system) = system else { continue };
            let dir = system.path().join("d");
            fs::create_dir(&dir).expect("a directory");
            fill(&dir, COUNT);
            let served = Served::at(&dir, &[]);
            let Some(calls) = Calls::during(&served.gofer, || drop(list_exactly(&served, COUNT))) else { return };
            let (stats, listings) = (calls.stats(), calls.of("getdents64"));
            say::measured(format_args!("{COUNT} entries on {kind}: {listings} getdents64, {stats} stat calls"));
            // One to learn what the directory is on.
            assert!(stats <= 4, "{stats} on {kind}");
            // Records of 40 bytes, 8 KiB at a time.
            assert!(listings < 100, "{listings} on {kind}");
        }
    });
}

/// Every entry of `dir`, an open directory, has the identity and type that `lstat` gives on the host.
fn agrees_with_lstat(served: &Served, dir: FdId, path: &Path, what: &str) {
    let entries = served.client.list(dir);
    let listed: BTreeMap<&[u8], &Entry> = entries.iter().map(|entry| (&entry.name[..], entry)).collect();
    assert_eq!(listed.len(), entries.len(), "{what}: each name once");
    let host: BTreeSet<_> =
        fs::read_dir(path).expect("the directory").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(listed.len(), host.len(), "{what}: every name");
    for name in host {
        let stat = fs::symlink_metadata(path.join(&name)).expect("an entry");
        let entry = listed.get(name.as_bytes()).unwrap_or_else(|| panic!("{what}: {name:?} is missing"));
        let device = rustix::fs::makedev(entry.device.0, entry.device.1);
        assert_eq!((entry.ino, device), (stat.ino(), stat.dev()), "{what}: {name:?}");
        assert_eq!(Some(entry.entry_type), dirent_type(stat.file_type()), "{what}: {name:?}");
        // As a walk has it.
        let (_, walked) = served.client.walk(served.root, &within(served, path, &name)).expect("walk");
        let walked = walked.last().expect("an inode");
        assert_eq!((entry.ino, entry.device), (walked.stat.ino, (walked.stat.dev_major, walked.stat.dev_minor)));
        served.client.close(&[walked.control_fd]);
    }
}

/// The components of `path/name` below what is served.
fn within<'p>(served: &Served, path: &'p Path, name: &'p OsStr) -> Vec<&'p [u8]> {
    let below = path.strip_prefix(served.path()).expect("a path below the root");
    below.iter().chain([name]).map(OsStr::as_bytes).collect()
}

fn dirent_type(file_type: fs::FileType) -> Option<u8> {
    let known = [
        (file_type.is_file(), FileType::Regular),
        (file_type.is_dir(), FileType::Directory),
        (file_type.is_symlink(), FileType::Symlink),
        (file_type.is_fifo(), FileType::Fifo),
        (file_type.is_socket(), FileType::Socket),
        (file_type.is_char_device(), FileType::CharDevice),
        (file_type.is_block_device(), FileType::BlockDevice),
    ];
    known.iter().find(|(is, _)| *is).map(|(_, file_type)| file_type.dirent_type())
}

/// Opens the directory at `path` below what is served, and compares its listing with the host's.
fn lists_right(served: &Served, path: &Path, what: &str) {
    let components = within(served, path, OsStr::new("x"));
    let (_, below) = components.split_last().expect("a name");
    let dir = match served.client.walk(served.root, below).expect("walk").1.last() {
        Some(inode) => inode.control_fd,
        None => served.root,
    };
    let (open, _) = served.client.open(dir, 0).expect("open");
    agrees_with_lstat(served, open, path, what);
    served.client.close(&[open]);
}

/// A few entries of several types.
fn furnish(dir: &Path) {
    for name in ["dir", "dir/inner", "mountpoint", "another"] {
        fs::create_dir_all(dir.join(name)).expect("a directory");
    }
    for name in ["file", "over", "dir/file", "spare"] {
        File::create(dir.join(name)).expect("a file");
    }
    std::os::unix::fs::symlink("file", dir.join("link")).expect("a link");
}

/// Row B79, what must stay right without asking for each entry.
#[test]
fn entries_that_are_mount_points_have_the_identity_of_what_is_mounted() {
    in_private_namespace(|| {
        for (kind, system) in [("tmpfs", Some(Mounted::tmpfs("size=4m"))), ("ext4", Mounted::image("ext4", 16))] {
            let Some(system) = system else { continue };
            furnish(system.path());
            let other = Mounted::tmpfs("size=1m");
            furnish(other.path());
            // Before the server starts: a directory and a file of another file system, and of this one.
            let mut mounted = vec![
                Mounted::bind(&other.path().join("dir"), &system.path().join("mountpoint")),
                Mounted::bind(&other.path().join("file"), &system.path().join("over")),
                Mounted::bind(&system.path().join("file"), &system.path().join("dir/file")),
                Mounted::bind(&system.path().join("another"), &system.path().join("dir/inner")),
            ];
            let served = Served::at(system.path(), &[]);
            let (open, _) = served.client.open(served.root, 0).expect("open");
            agrees_with_lstat(&served, open, system.path(), &format!("{kind}, mounted before the start"));
            lists_right(&served, &system.path().join("dir"), &format!("{kind}, mounts of its own"));
            lists_right(&served, &system.path().join("mountpoint"), &format!("{kind}, a mounted directory"));

            // Between two listings, through a descriptor that has listed before.
            mounted.push(Mounted::bind(other.path(), &system.path().join("another")));
            mounted.push(Mounted::bind(Path::new("/dev/null"), &system.path().join("spare")));
            agrees_with_lstat(&served, open, system.path(), &format!("{kind}, mounted after a listing"));
            mounted.truncate(2);
            agrees_with_lstat(&served, open, system.path(), &format!("{kind}, unmounted after a listing"));
        }
    });
}

/// Row B79, where each subvolume has a device of its own.
#[test]
fn subvolumes_of_btrfs_are_listed_with_their_own_devices() {
    in_private_namespace(|| {
        let Some(system) = Mounted::image("btrfs", 128) else { return };
        let at = |name: &str| system.path().join(name).into_os_string();
        run("btrfs", ["-q".into(), "subvolume".into(), "create".into(), at("subvolume")]);
        furnish(system.path());
        furnish(Path::new(&at("subvolume")));
        run("btrfs", ["-q".into(), "subvolume".into(), "snapshot".into(), at("subvolume"), at("snapshot")]);
        let devices: BTreeSet<_> =
            ["dir", "subvolume", "snapshot"].iter().map(|name| fs::metadata(at(name)).expect("it").dev()).collect();
        assert_eq!(devices.len(), 3, "what this test is about");
        let served = Served::at(system.path(), &[]);
        for dir in ["", "subvolume", "snapshot", "dir"] {
            lists_right(&served, &system.path().join(dir), "btrfs");
        }
        // A subvolume is no mount, and still may come between two listings.
        let (open, _) = served.client.open(served.root, 0).expect("open");
        agrees_with_lstat(&served, open, system.path(), "btrfs");
        run("btrfs", ["-q".into(), "subvolume".into(), "create".into(), at("late")]);
        agrees_with_lstat(&served, open, system.path(), "btrfs, a late subvolume");
    });
}

/// Row B79, where a file may report the device of a layer.
#[test]
fn files_of_overlays_are_listed_with_the_devices_that_they_report() {
    in_private_namespace(|| {
        let layers = [Mounted::tmpfs("size=1m"), Mounted::tmpfs("size=1m"), Mounted::tmpfs("size=1m")];
        let ext4 = Mounted::image("ext4", 16);
        let [first, second, upper] = layers.each_ref().map(Mounted::path);
        let lowest = ext4.as_ref().map_or(second, Mounted::path);
        furnish(first);
        furnish(lowest);
        File::create(lowest.join("only-lowest")).expect("a file");
        File::create(first.join("only-first")).expect("a file");
        for name in ["upper", "work"] {
            fs::create_dir(upper.join(name)).expect("a directory");
        }
        let overlay = Mounted::overlay(&[first, lowest], &upper.join("upper"), &upper.join("work"));
        fs::write(overlay.path().join("new"), "upper").expect("a file");
        fs::write(overlay.path().join("file"), "copied up").expect("a file");
        fs::remove_file(overlay.path().join("spare")).expect("a whiteout");
        let served = Served::at(overlay.path(), &[]);
        lists_right(&served, overlay.path(), "overlay");
        lists_right(&served, &overlay.path().join("dir"), "overlay, a merged directory");
        let other = Mounted::tmpfs("size=1m");
        let _mounted = Mounted::bind(other.path(), &overlay.path().join("mountpoint"));
        lists_right(&served, overlay.path(), "overlay, with a mount");
    });
}

/// Row B81, on the whole way from the host's records to the reply.
#[test]
fn no_entry_is_lost_or_empty_at_the_edge_of_a_reply_whatever_the_budget() {
    let mut state = 0x9e37_79b9_u32;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut names = BTreeSet::new();
    while names.len() < 600 {
        let len = 1 + random() as usize % 255;
        names.insert((0..len).map(|_| b'a' + (random() % 26).to_le_bytes()[0]).collect::<Vec<u8>>());
    }
    let served = Served::with(&[], |dir| {
        for name in &names {
            File::create(dir.join(OsStr::from_bytes(name))).expect("a file");
        }
    });
    let (open, _) = served.client.open(served.root, 0).expect("open");
    let budgets = (280..=560).step_by(7).chain([1000, 4095, 4096, 8191, 8192, 8193, 65_536, i32::MAX]);
    for budget in budgets {
        let mut all = Vec::new();
        let mut some = served.client.getdents(open, -budget).expect("list");
        while !some.is_empty() {
            all.extend(some.drain(..).map(|entry| entry.name));
            some = served.client.getdents(open, budget).expect("list");
        }
        assert!(all.iter().all(|name| !name.is_empty()), "a budget of {budget}");
        assert_eq!(all.len(), names.len(), "a budget of {budget}");
        assert!(all.into_iter().collect::<BTreeSet<_>>() == names, "a budget of {budget}");
    }
}

/// Row B84.
#[test]
fn names_beyond_255_bytes_are_listed_walked_to_and_renamed_as_they_are() {
    in_private_namespace(|| {
        let names: Vec<Vec<u8>> =
            [1, 255, 256, 300, 1000].iter().zip(b'a'..).map(|(len, byte)| vec![byte; *len]).collect();
        let Some(flat) = Flat::mount(&names) else { return };
        let expected: BTreeSet<Vec<u8>> = names.iter().cloned().collect();
        let host: BTreeSet<Vec<u8>> = match fs::read_dir(flat.path()).expect("the directory").collect() {
            Ok::<Vec<_>, _>(entries) => entries.iter().map(|entry| entry.file_name().as_bytes().to_vec()).collect(),
            Err(error) => return say::skipped(format_args!("this kernel lists no such names: {error}")),
        };
        assert_eq!(host, expected, "the file system itself");

        let served = Served::at(flat.path(), &[]);
        let (open, _) = served.client.open(served.root, 0).expect("open");
        // Also with a budget that no long name fits.
        for budget in [65_536, 4096, 1048, 300, 280] {
            let mut all = BTreeSet::new();
            let mut some = served.client.getdents(open, -budget).expect("list");
            while !some.is_empty() {
                for entry in some {
                    assert!(all.insert(entry.name), "each name once, with a budget of {budget}");
                }
                some = served.client.getdents(open, budget).expect("list");
            }
            assert_eq!(all, expected, "a budget of {budget}");
        }
        for name in &names {
            let (_, inodes) = served.client.walk(served.root, &[name]).expect("walk");
            let inode = inodes.first().unwrap_or_else(|| panic!("{} bytes are not found", name.len()));
            assert_eq!(served.client.fstat(inode.control_fd), Ok(inode.stat));
            assert_eq!(served.client.walk_stat(served.root, &[name]).map(|stats| stats.len()), Ok(1));
        }
        let (old, new) = ("e".repeat(1000), "n".repeat(999));
        served.client.rename((served.root, &old), (served.root, &new)).expect("rename");
        assert!(flat.names().contains(&new.into_bytes()) && !flat.names().contains(&old.into_bytes()));
    });
}
