//! FGetXattr, FSetXattr, FListXattr, FRemoveXattr.

use std::os::unix::fs::symlink;
use std::path::Path;

use gofer_integration::{Ask, Served, nothing, over_both, over_both_on, say};
use gofer_protocol::{Errno, FdId};
use rustix::fs::XattrFlags;

use super::{fifo, files, null_device, socket_file};

const CREATE: u32 = 1;
const REPLACE: u32 = 2;

fn host_set(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap_or_else(|e| panic!("{name}: {e}"));
}

fn host_value(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 70_000];
    let len = rustix::fs::lgetxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

#[test]
fn an_attribute_is_set_found_listed_and_removed() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            std::fs::create_dir(dir.join("d")).expect("a directory");
        },
        |t| {
            for name in ["f", "d"] {
                let fd = t.client.walk_to(t.root, name);
                assert_eq!(t.client.list_xattr(fd, 0), Ok(Vec::new()));
                assert_eq!(t.client.set_xattr(fd, 0, "user.k", b"\0v\xff"), Ok(()));
                assert_eq!(host_value(&t.host(name), "user.k"), Some(b"\0v\xff".to_vec()));
                assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Ok(b"\0v\xff".to_vec()));
                assert_eq!(t.client.set_xattr(fd, 0, "user.empty", b""), Ok(()));
                assert_eq!(t.client.get_xattr(fd, 0, "user.empty"), Ok(Vec::new()));
                let mut listed = t.client.list_xattr(fd, 0).expect("a list");
                listed.sort();
                assert_eq!(listed, ["user.empty", "user.k"]);
                assert_eq!(t.client.remove_xattr(fd, "user.k"), Ok(()));
                assert_eq!(t.client.remove_xattr(fd, "user.k"), Err(Errno::ENODATA));
                assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Err(Errno::ENODATA));
                assert_eq!(host_value(&t.host(name), "user.k"), None);
            }
        },
    );
}

#[test]
fn flags_create_replace_and_nothing_else() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(t.client.set_xattr(fd, REPLACE, "user.k", b"1"), Err(Errno::ENODATA));
            assert_eq!(t.client.set_xattr(fd, CREATE, "user.k", b"2"), Ok(()));
            assert_eq!(t.client.set_xattr(fd, CREATE, "user.k", b"3"), Err(Errno::EEXIST));
            assert_eq!(t.client.set_xattr(fd, REPLACE, "user.k", b"4"), Ok(()));
            assert_eq!(t.client.set_xattr(fd, 0, "user.k", b"5"), Ok(()));
            for flags in [4, 8, 1 << 31, u32::MAX] {
                assert_eq!(t.client.set_xattr(fd, flags, "user.k", b"6"), Err(Errno::EINVAL), "{flags}");
            }
            assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Ok(b"5".to_vec()));
        },
    );
}

#[test]
fn a_size_of_zero_or_beyond_every_attribute_takes_the_whole_value() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let value = [7; 1000];
            t.client.set_xattr(fd, 0, "user.k", &value).expect("set");
            for size in [0, 1000, 1001, 65_535, 65_536, 65_537, u32::MAX] {
                assert_eq!(t.client.get_xattr(fd, size, "user.k"), Ok(value.to_vec()), "{size}");
            }
            for size in [1, 999] {
                assert_eq!(t.client.get_xattr(fd, size, "user.k"), Err(Errno::ERANGE), "{size}");
            }
            // "user.k" and a NUL.
            for size in [0, 7, 8, 65_536, 65_537, u64::MAX] {
                assert_eq!(t.client.list_xattr(fd, size), Ok(vec!["user.k".into()]), "{size}");
            }
            for size in [1, 6] {
                assert_eq!(t.client.list_xattr(fd, size), Err(Errno::ERANGE), "{size}");
            }
        },
    );
}

#[test]
fn values_go_up_to_what_a_sixteen_bit_length_can_say() {
    let Some(dir) = large_attributes() else {
        return say::skipped("no file system here takes attributes of 64 KiB");
    };
    let path = dir.path().join("f");
    over_both_on(
        || Served::at(dir.path(), &[]),
        |t| {
            let file = t.client.walk_to(t.root, "f");
            host_set(&path, "user.large", &[1; 65_536]);
            for size in [0, 65_535, 65_536, u32::MAX] {
                assert_eq!(t.client.get_xattr(file, size, "user.large"), Err(Errno::ERANGE), "{size}");
            }
            assert_eq!(t.client.set_xattr(file, 0, "user.large", &[2; 65_535]), Ok(()));
            assert_eq!(host_value(&path, "user.large"), Some(vec![2; 65_535]));
            for size in [0, 65_535, 65_536] {
                assert_eq!(t.client.get_xattr(file, size, "user.large"), Ok(vec![2; 65_535]), "{size}");
            }
            assert_eq!(t.client.get_xattr(file, 65_534, "user.large"), Err(Errno::ERANGE));
        },
    );
}

/// A directory with a file f whose attributes may be as large as Linux has them: shared memory, usually.
fn large_attributes() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir_in("/dev/shm").ok()?;
    std::fs::write(dir.path().join("f"), "").ok()?;
    rustix::fs::lsetxattr(dir.path().join("f"), "user.large", &[1; 65_536], XattrFlags::empty()).ok()?;
    Some(dir)
}

#[test]
fn a_list_that_is_longer_than_the_largest_reply_of_a_file_system_comes_whole() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            for number in 0..60 {
                host_set(&dir.join("f"), &format!("user.attribute-{number:02}"), b"");
            }
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let mut listed = t.client.list_xattr(fd, 0).expect("a list");
            listed.sort();
            assert_eq!(listed, (0..60).map(|number| format!("user.attribute-{number:02}")).collect::<Vec<_>>());
        },
    );
}

#[test]
fn what_means_something_to_the_hosts_kernel_is_out_of_reach() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            host_set(&dir.join("f"), "trusted.secret", b"t");
            host_set(&dir.join("f"), "user.k", b"u");
            host_set(&dir.join("f"), "security.mine", b"s");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            for name in [
                "trusted.secret",
                "trusted.overlay.opaque",
                "system.posix_acl_access",
                "system.x",
                "trusted.",
                "system.",
            ] {
                assert_eq!(t.client.get_xattr(fd, 0, name), Err(Errno::EOPNOTSUPP), "{name}");
                assert_eq!(t.client.set_xattr(fd, 0, name, b"x"), Err(Errno::EOPNOTSUPP), "{name}");
                assert_eq!(t.client.remove_xattr(fd, name), Err(Errno::EOPNOTSUPP), "{name}");
            }
            // Security labels and capabilities are for reading only.
            assert_eq!(t.client.get_xattr(fd, 0, "security.mine"), Ok(b"s".to_vec()));
            assert_eq!(t.client.set_xattr(fd, 0, "security.mine", b"x"), Err(Errno::EOPNOTSUPP));
            assert_eq!(t.client.set_xattr(fd, 0, "security.capability", b"x"), Err(Errno::EOPNOTSUPP));
            assert_eq!(t.client.remove_xattr(fd, "security.mine"), Err(Errno::EOPNOTSUPP));
            let mut listed = t.client.list_xattr(fd, 0).expect("a list");
            listed.sort();
            assert_eq!(listed, ["security.mine", "user.k"], "what cannot be read is not listed");
            assert_eq!(host_value(&t.host("f"), "trusted.secret"), Some(b"t".to_vec()));
            assert_eq!(host_value(&t.host("f"), "security.mine"), Some(b"s".to_vec()));
        },
    );
}

#[test]
fn every_type_of_file_is_asked_itself() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            symlink("f", dir.join("l")).expect("a link");
            fifo(&dir.join("p"));
            socket_file(&dir.join("s"));
            null_device(&dir.join("c"));
            for name in ["f", "l", "p", "s", "c"] {
                host_set(&dir.join(name), "security.label", name.as_bytes());
            }
        },
        |t| {
            for name in ["l", "p", "s", "c"] {
                let fd = t.client.walk_to(t.root, name);
                assert_eq!(t.client.get_xattr(fd, 0, "security.label"), Ok(name.as_bytes().to_vec()));
                assert_eq!(t.client.list_xattr(fd, 0), Ok(vec!["security.label".into()]), "{name}");
                assert_eq!(t.client.get_xattr(fd, 0, "security.none"), Err(Errno::ENODATA), "{name}");
                // The kernel keeps user attributes to files and directories.
                assert_eq!(t.client.set_xattr(fd, 0, "user.k", b"v"), Err(Errno::EPERM), "{name}");
            }
            assert_eq!(host_value(&t.host("f"), "user.k"), None);
        },
    );
}

#[test]
fn an_unreadable_file_is_asked_like_any_other() {
    over_both(
        &[],
        |dir| {
            files(dir, &["f"]);
            let none = std::os::unix::fs::PermissionsExt::from_mode(0o0);
            std::fs::set_permissions(dir.join("f"), none).expect("a mode");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(t.client.set_xattr(fd, 0, "user.k", b"v"), Ok(()));
            assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Ok(b"v".to_vec()));
        },
    );
}

#[test]
fn names_are_judged_by_the_host_but_for_nul_bytes() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(t.client.get_xattr(fd, 0, "user.a\0b"), Err(Errno::EINVAL));
            assert_eq!(t.client.set_xattr(fd, 0, "user.a\0b", b""), Err(Errno::EINVAL));
            assert_eq!(t.client.remove_xattr(fd, "user.a\0b"), Err(Errno::EINVAL));
            assert_eq!(t.client.get_xattr(FdId(0), 0, "\0"), Err(Errno::EINVAL), "before the descriptor");
            assert_eq!(t.client.get_xattr(FdId(0), 0, "system.x"), Err(Errno::EBADF), "policy after the descriptor");
            assert_eq!(t.client.get_xattr(fd, 0, ""), Err(Errno::ERANGE));
            assert_eq!(t.client.get_xattr(fd, 0, &format!("user.{}", "n".repeat(251))), Err(Errno::ERANGE));
            assert_eq!(t.client.get_xattr(fd, 0, "nonsense"), Err(Errno::EOPNOTSUPP));
            assert_eq!(t.client.get_xattr(fd, 0, "user."), Err(Errno::EINVAL));
            // Slashes are nothing special here.
            assert_eq!(t.client.set_xattr(fd, 0, "user.a/../b", b"v"), Ok(()));
            assert_eq!(t.client.get_xattr(fd, 0, "user.a/../b"), Ok(b"v".to_vec()));
        },
    );
}

#[test]
fn attributes_belong_to_control_descriptors() {
    over_both(&[], nothing, |t| {
        let (open, _) = t.client.open(t.root, 0).expect("open");
        for (fd, errno) in [(open, Errno::EINVAL), (FdId(0), Errno::EBADF)] {
            assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Err(errno));
            assert_eq!(t.client.set_xattr(fd, 0, "user.k", b""), Err(errno));
            assert_eq!(t.client.list_xattr(fd, 0), Err(errno));
            assert_eq!(t.client.remove_xattr(fd, "user.k"), Err(errno));
        }
    });
}
