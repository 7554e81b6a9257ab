//! UnlinkAt, RenameAt, RenameAt2.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use gofer_integration::{Ask, Trial, new_in, over_both};
use gofer_protocol::message::WalkStatus;
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use super::{fifo, files, null_device, socket_file};

const NO_REPLACE: u32 = 1;
const EXCHANGE: u32 = 2;

/// d (with x in it), e (empty), files a and b, a link l to a.
fn landscape(dir: &Path) {
    std::fs::create_dir(dir.join("d")).expect("a directory");
    std::fs::create_dir(dir.join("e")).expect("a directory");
    files(dir, &["a", "b", "d/x"]);
    symlink("a", dir.join("l")).expect("a link");
}

fn content(t: &Trial<'_>, name: &str) -> String {
    std::fs::read_to_string(t.host(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Whether the server takes what `fd` holds for removed.
fn is_deleted(t: &Trial<'_>, fd: FdId) -> bool {
    t.client.list_xattr(fd, 0) == Err(Errno::EINVAL)
}

#[test]
fn names_of_every_type_are_removed() {
    over_both(
        &[],
        |dir| {
            landscape(dir);
            fifo(&dir.join("p"));
            socket_file(&dir.join("s"));
            null_device(&dir.join("c"));
        },
        |t| {
            for name in ["a", "l", "p", "s", "c"] {
                let fd = t.client.walk_to(t.root, name);
                assert_eq!(t.client.unlink(t.root, name), Ok(()), "{name}");
                assert!(!t.exists(name) && is_deleted(t, fd), "{name}");
            }
            assert_eq!(t.client.rmdir(t.root, "e"), Ok(()));
            assert!(!t.exists("e"));
            assert!(t.exists("b"), "what the link led to was removed by name only");
        },
    );
}

#[test]
fn what_cannot_be_removed_says_why() {
    over_both(&[], landscape, |t| {
        let unlink = |name: &str| t.client.unlink(t.root, name);
        let rmdir = |name: &str| t.client.rmdir(t.root, name);
        assert_eq!(unlink("d"), Err(Errno::EISDIR));
        assert_eq!(rmdir("a"), Err(Errno::ENOTDIR));
        assert_eq!(rmdir("l"), Err(Errno::ENOTDIR));
        assert_eq!(rmdir("d"), Err(Errno::ENOTEMPTY));
        assert_eq!(unlink("missing"), Err(Errno::ENOENT));
        assert_eq!(rmdir("missing"), Err(Errno::ENOENT));
        assert_eq!(unlink(&"n".repeat(256)), Err(Errno::ENAMETOOLONG));
        for flags in [1, 2, 0x100, 0x201, 0x400, 0x1000, u32::MAX] {
            assert_eq!(t.client.unlink_with(t.root, "a", flags), Err(Errno::EINVAL), "0x{flags:x}");
        }
        let file = t.client.walk_to(t.root, "a");
        assert_eq!(t.client.unlink(file, "x"), Err(Errno::ENOTDIR));
        assert!(["a", "b", "d", "d/x", "e", "l"].iter().all(|name| t.exists(name)));
    });
}

#[test]
fn a_removal_that_fails_deletes_no_node() {
    over_both(&[], landscape, |t| {
        let (dir, file) = (t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "d/x"));
        assert_eq!(t.client.rmdir(t.root, "d"), Err(Errno::ENOTEMPTY));
        assert!(!is_deleted(t, dir) && !is_deleted(t, file));
        assert!(t.client.mkdir(new_in(dir, FileType::Directory, 0o700), "new").is_ok());
    });
}

#[test]
fn a_new_file_at_an_old_name_is_another_node() {
    over_both(&[], landscape, |t| {
        let old = t.client.walk_to(t.root, "a");
        t.client.unlink(t.root, "a").expect("unlink");
        let (new, ..) = t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "a").expect("create");
        assert!(is_deleted(t, old) && !is_deleted(t, new.control_fd));
        // Nor does the old one's end make the server forget the new one.
        t.client.close(&[old]);
        t.client.unlink(t.root, "a").expect("unlink");
        assert!(is_deleted(t, new.control_fd));
    });
}

#[test]
fn a_name_moves_within_and_between_directories() {
    over_both(&[], landscape, |t| {
        let dir = t.client.walk_to(t.root, "d");
        let file = t.client.find(t.root, "a");
        assert_eq!(t.client.rename((t.root, "a"), (t.root, "c")), Ok(()));
        assert_eq!(t.client.rename((t.root, "c"), (dir, "y")), Ok(()));
        assert_eq!(t.client.rename((dir, "y"), (t.root, "z")), Ok(()));
        assert_eq!((t.exists("a"), t.exists("c"), t.exists("d/y")), (false, false, false));
        assert_eq!(t.metadata("z").ino(), file.stat.ino);
        // Descriptors go along.
        assert!(!is_deleted(t, file.control_fd));
        assert!(t.client.link(t.root, file.control_fd, "again").is_ok());
        t.client.unlink(t.root, "z").expect("unlink");
        assert!(is_deleted(t, file.control_fd), "it was found at its new place");
    });
}

#[test]
fn a_directory_moves_with_all_that_is_tracked_below_it() {
    over_both(&[], landscape, |t| {
        let (dir, file, other) =
            (t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "d/x"), t.client.walk_to(t.root, "e"));
        t.client.rename((t.root, "d"), (other, "moved")).expect("rename");
        assert!(t.exists("e/moved/x"));
        assert_eq!(t.client.walk(dir, &["x"]).map(|(status, _)| status), Ok(WalkStatus::SUCCESS));
        assert_eq!(t.client.unlink(dir, "x"), Ok(()));
        assert!(is_deleted(t, file));
        assert_eq!(t.client.rmdir(other, "moved"), Ok(()));
        assert!(is_deleted(t, dir));
    });
}

#[test]
fn what_a_rename_replaces_is_deleted() {
    over_both(&[], landscape, |t| {
        let (a, b) = (t.client.walk_to(t.root, "a"), t.client.walk_to(t.root, "b"));
        assert_eq!(t.client.rename((t.root, "a"), (t.root, "b")), Ok(()));
        assert_eq!((t.exists("a"), content(t, "b").as_str()), (false, "a"));
        assert!(is_deleted(t, b) && !is_deleted(t, a));
        // An empty directory may be replaced by another one.
        let (d, e) = (t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "e"));
        assert_eq!(t.client.rename((t.root, "d"), (t.root, "e")), Ok(()));
        assert!(is_deleted(t, e) && !is_deleted(t, d) && t.exists("e/x"));
        // Releasing what was replaced does not make the server forget what has the name now.
        t.client.close(&[b, e]);
        t.client.unlink(t.root, "b").expect("unlink");
        assert!(is_deleted(t, a));
    });
}

#[test]
fn what_cannot_be_moved_says_why() {
    over_both(&[], landscape, |t| {
        let (d, e) = (t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "e"));
        let rename = |old: (FdId, &str), new: (FdId, &str)| {
            let plain = t.client.rename(old, new);
            assert_eq!(t.client.rename2(old, new, 0), plain, "RenameAt2 without flags is RenameAt");
            plain
        };
        assert_eq!(rename((t.root, "missing"), (t.root, "x")), Err(Errno::ENOENT));
        assert_eq!(rename((t.root, "missing"), (t.root, "a")), Err(Errno::ENOENT));
        assert_eq!(rename((t.root, "d"), (d, "inside")), Err(Errno::EINVAL));
        assert_eq!(rename((t.root, "a"), (t.root, "d")), Err(Errno::EISDIR));
        assert_eq!(rename((t.root, "d"), (t.root, "a")), Err(Errno::ENOTDIR));
        assert_eq!(rename((t.root, "e"), (t.root, "d")), Err(Errno::ENOTEMPTY));
        assert_eq!(rename((t.root, "a"), (t.root, &"n".repeat(256))), Err(Errno::ENAMETOOLONG));
        let file = t.client.walk_to(t.root, "a");
        assert_eq!(rename((file, "x"), (t.root, "y")), Err(Errno::ENOTDIR));
        assert_eq!(rename((t.root, "x"), (file, "y")), Err(Errno::ENOTDIR));
        assert_eq!(rename((file, "x"), (file, "x")), Err(Errno::ENOTDIR), "even where there is nothing to do");
        assert!([d, e, file].iter().all(|fd| !is_deleted(t, *fd)));
    });
}

#[test]
fn a_rename_onto_itself_is_success_without_a_look_at_the_host() {
    over_both(&[], landscape, |t| {
        let again = t.client.mounted().expect("mount").0.control_fd;
        let file = t.client.walk_to(t.root, "a");
        for name in ["a", "missing", "d"] {
            // By two descriptors of one directory, too.
            for new in [t.root, again] {
                assert_eq!(t.client.rename((t.root, name), (new, name)), Ok(()), "{name}");
                for flags in [0, NO_REPLACE, EXCHANGE, 3, 4, u32::MAX] {
                    assert_eq!(t.client.rename2((t.root, name), (new, name), flags), Ok(()), "{name} {flags}");
                }
            }
        }
        assert!(!is_deleted(t, file) && t.exists("a"));
        assert_eq!(t.client.rename((t.root, ".."), (t.root, "..")), Err(Errno::EINVAL), "but names must be safe");
    });
}

#[test]
fn unknown_rename_flags_are_einval() {
    over_both(&[], landscape, |t| {
        for flags in [3, 4, 5, 6, 8, 1 << 31, u32::MAX] {
            assert_eq!(t.client.rename2((t.root, "a"), (t.root, "new"), flags), Err(Errno::EINVAL), "{flags}");
        }
        assert!(t.exists("a") && !t.exists("new"));
    });
}

#[test]
fn no_replace_refuses_what_exists() {
    over_both(&[], landscape, |t| {
        let (a, b) = (t.client.walk_to(t.root, "a"), t.client.walk_to(t.root, "b"));
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "b"), NO_REPLACE), Err(Errno::EEXIST));
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "l"), NO_REPLACE), Err(Errno::EEXIST));
        assert_eq!((content(t, "a").as_str(), content(t, "b").as_str()), ("a", "b"));
        assert!(!is_deleted(t, a) && !is_deleted(t, b));
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "new"), NO_REPLACE), Ok(()));
        t.client.unlink(t.root, "new").expect("unlink");
        assert!(is_deleted(t, a));
    });
}

#[test]
fn exchanged_names_and_their_nodes_swap_places() {
    over_both(&[], landscape, |t| {
        let (a, d, x) = (t.client.walk_to(t.root, "a"), t.client.walk_to(t.root, "d"), t.client.walk_to(t.root, "d/x"));
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "missing"), EXCHANGE), Err(Errno::ENOENT));
        assert_eq!(t.client.rename2((t.root, "missing"), (t.root, "a"), EXCHANGE), Err(Errno::ENOENT));
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "d"), EXCHANGE), Ok(()), "a file and a directory");
        assert!(t.metadata("a").is_dir() && t.metadata("d").is_file());
        assert_eq!(t.client.rename2((t.root, "d"), (d, "x"), EXCHANGE), Ok(()), "between directories");
        assert_eq!((content(t, "d").as_str(), content(t, "a/x").as_str()), ("d/x", "a"));
        assert!([a, d, x].iter().all(|fd| !is_deleted(t, *fd)));
        // Each is tracked at its new place.
        t.client.unlink(d, "x").expect("unlink");
        assert!(is_deleted(t, a) && !is_deleted(t, x));
        t.client.unlink(t.root, "d").expect("unlink");
        assert!(is_deleted(t, x));
    });
}

#[test]
fn an_exchange_with_what_nobody_tracks_moves_the_one_that_is() {
    over_both(&[], landscape, |t| {
        let a = t.client.walk_to(t.root, "a");
        assert_eq!(t.client.rename2((t.root, "a"), (t.root, "b"), EXCHANGE), Ok(()));
        t.client.unlink(t.root, "a").expect("unlink");
        assert!(!is_deleted(t, a));
        assert_eq!(t.client.rename2((t.root, "l"), (t.root, "b"), EXCHANGE), Ok(()));
        t.client.unlink(t.root, "l").expect("unlink");
        assert!(is_deleted(t, a));
    });
}

/// Defect D8.
#[test]
fn a_rename_between_links_of_one_file_changes_nothing() {
    over_both(
        &[],
        |dir| {
            landscape(dir);
            std::fs::hard_link(dir.join("a"), dir.join("a2")).expect("a link");
        },
        |t| {
            let (a, a2) = (t.client.walk_to(t.root, "a"), t.client.walk_to(t.root, "a2"));
            assert_eq!(t.client.rename((t.root, "a"), (t.root, "a2")), Ok(()));
            assert!(t.exists("a") && t.exists("a2"));
            assert!(!is_deleted(t, a) && !is_deleted(t, a2));
            t.client.unlink(t.root, "a").expect("unlink");
            assert!(is_deleted(t, a) && !is_deleted(t, a2));
        },
    );
}

#[test]
fn the_checks_of_a_rename_come_in_order() {
    over_both(&[], landscape, |t| {
        let file = t.client.walk_to(t.root, "a");
        let (open, _) = t.client.open(t.root, 0).expect("open");
        assert_eq!(t.client.rename((FdId(0), ""), (FdId(0), "x")), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((FdId(0), "x"), (FdId(0), "..")), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((FdId(0), "x"), (open, "x")), Err(Errno::EBADF));
        assert_eq!(t.client.rename((open, "x"), (FdId(0), "x")), Err(Errno::EINVAL));
        assert_eq!(t.client.rename((file, "x"), (FdId(0), "x")), Err(Errno::EBADF), "both are looked up before types");
        assert_eq!(t.client.rename2((file, "x"), (t.root, "x"), 99), Err(Errno::ENOTDIR), "types before flags");
    });
}
