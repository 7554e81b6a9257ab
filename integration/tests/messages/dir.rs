//! Getdents64.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, symlink};

use gofer_integration::{Ask, Trial, over_both};
use gofer_protocol::{Errno, FdId};

use super::{READ, READ_WRITE, fifo, files, node, null_device, socket_file};

fn opened(t: &Trial<'_>, path: &str) -> FdId {
    let fd = if path.is_empty() { t.root } else { t.client.walk_to(t.root, path) };
    t.client.open(fd, READ).expect("open").0
}

fn names(entries: &[gofer_integration::Entry]) -> BTreeSet<String> {
    entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect()
}

#[test]
fn entries_agree_with_walk_in_type_inode_and_device() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f", &"n".repeat(255)]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
            symlink("f", dir.join("l")).expect("a link");
            fifo(&dir.join("p"));
            socket_file(&dir.join("s"));
            null_device(&dir.join("c"));
            node(&dir.join("b"), rustix::fs::FileType::BlockDevice, (7, 0));
        },
        |t| {
            let entries = t.client.list(opened(t, ""));
            assert_eq!(entries.len(), 8);
            for entry in entries {
                let name = String::from_utf8(entry.name).expect("plain");
                let host = t.metadata(&name);
                assert_eq!(u32::from(entry.entry_type), (host.mode() & 0o170_000) >> 12, "{name}");
                assert_eq!(entry.ino, host.ino(), "{name}");
                assert_eq!(rustix::fs::makedev(entry.device.0, entry.device.1), host.dev(), "{name}");
                if name != "b" {
                    let stat = t.client.find(t.root, &name).stat;
                    assert_eq!((entry.ino, entry.device), (stat.ino, (stat.dev_major, stat.dev_minor)), "{name}");
                }
            }
        },
    );
}

#[test]
fn an_empty_directory_ends_at_once_and_dots_are_dropped() {
    over_both(
        &[],
        |dir| std::fs::create_dir(dir.join("d")).expect("a directory"),
        |t| {
            let fd = opened(t, "d");
            assert_eq!(t.client.getdents(fd, -65_536), Ok(Vec::new()));
            assert_eq!(t.client.getdents(fd, 65_536), Ok(Vec::new()));
            assert_eq!(names(&t.client.list(opened(t, ""))), BTreeSet::from(["d".into()]));
        },
    );
}

#[test]
fn a_negative_count_rewinds_and_others_go_on() {
    over_both(
        &[],
        |dir| (0..100).for_each(|number| files(dir, &[&format!("file-{number}")])),
        |t| {
            let fd = opened(t, "");
            let first = t.client.getdents(fd, -200).expect("a listing");
            assert!(!first.is_empty() && first.len() < 100);
            let second = t.client.getdents(fd, 200).expect("a listing");
            assert!(names(&first).is_disjoint(&names(&second)));
            assert_eq!(t.client.getdents(fd, -200), Ok(first.clone()));
            assert_eq!(t.client.list(fd).len(), 100);
            assert_eq!(t.client.getdents(fd, 65_536), Ok(Vec::new()));
            // Each open descriptor stands where it stands.
            let other = opened(t, "");
            assert_eq!(t.client.getdents(other, 200), Ok(first));
        },
    );
}

#[test]
fn the_most_negative_count_is_a_large_budget() {
    over_both(
        &[],
        |dir| files(dir, &["a", "b"]),
        |t| {
            let fd = opened(t, "");
            for count in [i32::MIN, i32::MIN + 1, i32::MAX, -i32::MAX] {
                let expected = if count < 0 { 2 } else { 0 };
                assert_eq!(t.client.getdents(fd, count).map(|entries| entries.len()), Ok(expected), "{count}");
            }
        },
    );
}

#[test]
fn the_budget_counts_the_hosts_records() {
    over_both(
        &[],
        |dir| files(dir, &["a", "b", "c", "d"]),
        |t| {
            let fd = opened(t, "");
            // Records of these are 24 bytes each.
            let count = |budget| t.client.getdents(fd, budget).map(|entries| entries.len());
            assert_eq!(count(-40), Ok(1));
            assert_eq!(count(40), Ok(1));
            assert_eq!(count(48), Ok(2));
            assert_eq!(count(48), Ok(0));
            assert_eq!(count(-1000), Ok(4), "what is dropped does not count");
        },
    );
}

#[test]
fn a_budget_below_any_record_yields_nothing_and_loses_nothing() {
    over_both(
        &[],
        |dir| files(dir, &["a", "b"]),
        |t| {
            let fd = opened(t, "");
            for budget in [0, 1, 8, 23, -1, -23] {
                assert_eq!(t.client.getdents(fd, budget), Ok(Vec::new()), "{budget}");
            }
            let found = names(&t.client.getdents(fd, 65_536).expect("a listing"));
            assert_eq!(found, BTreeSet::from(["a".into(), "b".into()]));
            // Not even one that is too long for the rest of a budget.
            let budget = 279;
            std::fs::write(t.host(&"n".repeat(255)), "").expect("a file");
            let fd = opened(t, "");
            let mut all = Vec::new();
            for _ in 0..10 {
                all.extend(t.client.getdents(fd, budget).expect("a listing"));
                all.extend(t.client.getdents(fd, 280).expect("a listing"));
            }
            assert_eq!(names(&all).len(), 3);
            assert_eq!(all.len(), 3);
        },
    );
}

#[test]
fn cookies_are_the_hosts_and_differ() {
    over_both(
        &[],
        |dir| (0..50).for_each(|number| files(dir, &[&number.to_string()])),
        |t| {
            let entries = t.client.list(opened(t, ""));
            let cookies: BTreeSet<_> = entries.iter().map(|entry| entry.off).collect();
            assert_eq!(cookies.len(), 50);
        },
    );
}

/// Defect D7.
#[test]
fn a_large_directory_comes_whole_whatever_the_budget() {
    let count = 8_000;
    over_both(
        &[],
        |dir| (0..count).for_each(|number| files(dir, &[&format!("{number:x}")])),
        |t| {
            for budget in [65_536, i32::MAX] {
                let fd = opened(t, "");
                let mut all = BTreeSet::new();
                let mut entries = t.client.getdents(fd, -budget).expect("a listing");
                while !entries.is_empty() {
                    let fresh = entries.iter().filter(|entry| all.insert(entry.name.clone())).count();
                    assert_eq!(fresh, entries.len(), "nothing comes twice");
                    entries = t.client.getdents(fd, budget).expect("a listing");
                }
                assert_eq!(all.len(), count);
            }
        },
    );
}

#[test]
fn only_open_directories_are_listed() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            assert_eq!(t.client.getdents(t.root, 65_536), Err(Errno::EINVAL), "a control descriptor");
            let (file, _) = t.client.open(t.client.walk_to(t.root, "f"), READ_WRITE).expect("open");
            assert_eq!(t.client.getdents(file, 65_536), Err(Errno::ENOTDIR));
            assert_eq!(t.client.getdents(FdId(0), 65_536), Err(Errno::EBADF));
        },
    );
}

#[test]
fn a_listing_sees_what_happened_before_it_was_rewound() {
    over_both(
        &[],
        |dir| files(dir, &["a"]),
        |t| {
            let fd = opened(t, "");
            assert_eq!(names(&t.client.list(fd)), BTreeSet::from(["a".into()]));
            files(t.served.path(), &["b"]);
            std::fs::remove_file(t.host("a")).expect("remove");
            assert_eq!(names(&t.client.list(fd)), BTreeSet::from(["b".into()]));
        },
    );
}
