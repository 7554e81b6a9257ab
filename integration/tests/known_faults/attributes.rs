//! Attributes of files and of file systems, and extended attributes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use gofer_integration::child::{can_be_nobody, give_to_nobody};
use gofer_integration::mounts::{Mounted, in_private_namespace, run};
use gofer_integration::{Ask, Served, fifo, new_in};
use gofer_protocol::Errno;
use gofer_protocol::message::SetStatReply;
use gofer_protocol::record::{FileType, StatxMask};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::fuse::Flat;

const STREAM: u32 = 1;

/// Row B65.
#[test]
fn the_mode_of_every_kind_of_file_is_set_but_of_a_symlink() {
    sets_modes(&Served::with(&["--host-uds=create"], one_of_each));
}

/// Row B65.
#[test]
fn a_gofer_without_rights_sets_the_mode_of_every_kind_of_file_too() {
    if can_be_nobody() {
        sets_modes(&Served::by_nobody(&["--host-uds=create"], |dir| {
            one_of_each(dir);
            give_to_nobody(dir);
        }));
    }
}

fn one_of_each(dir: &Path) {
    symlink("target", dir.join("symlink")).expect("a link");
    fs::write(dir.join("target"), "").expect("a file");
    fifo(&dir.join("fifo"));
    fs::create_dir(dir.join("directory")).expect("a directory");
    fs::write(dir.join("unreadable"), "").expect("a file");
    fs::set_permissions(dir.join("unreadable"), fs::Permissions::from_mode(0o000)).expect("chmod");
}

fn sets_modes(served: &Served) {
    let (bound, _, _) =
        served.client.bind(new_in(served.root, FileType::Socket, 0o755), STREAM, "socket").expect("bind");
    let none = SetStatReply { failure_mask: StatxMask::default(), failure_errno: 0 };
    for name in ["socket", "fifo", "directory", "unreadable"] {
        let walked = served.client.walk_to(served.root, name);
        let fds = if name == "socket" { vec![walked, bound.control_fd] } else { vec![walked] };
        for (fd, mode) in fds.into_iter().zip([0o4751, 0o711]) {
            assert_eq!(served.client.chmod(fd, mode), Ok(none), "{name}");
            let host = fs::symlink_metadata(served.path().join(name)).expect("the file").mode();
            let ours = served.client.fstat(fd).expect("stat").mode.permissions();
            assert_eq!((host & 0o7777, u32::from(ours)), (mode, mode), "{name}");
        }
    }
    let link = served.client.walk_to(served.root, "symlink");
    let refused = SetStatReply { failure_mask: StatxMask::MODE, failure_errno: Errno::EOPNOTSUPP.raw() };
    let before = fs::metadata(served.path().join("target")).expect("the target").mode();
    assert_eq!(served.client.chmod(link, 0o600), Ok(refused));
    assert_eq!(fs::metadata(served.path().join("target")).expect("the target").mode(), before, "not the target's");
}

const ACL: &str = "system.posix_acl_access";

/// `u::rw-,g::r--,o::---`: what mode 0640 says, as an attribute's value (`acl(5)`; the layout is the kernel's).
fn minimal_acl() -> Vec<u8> {
    let mut value = 2u32.to_le_bytes().to_vec();
    for (tag, permissions) in [(0x01u16, 6u16), (0x04, 4), (0x20, 0)] {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&permissions.to_le_bytes());
        value.extend_from_slice(&u32::MAX.to_le_bytes());
    }
    value
}

/// Row B69.
#[test]
fn an_acl_is_not_set_and_not_stored_and_the_mode_stays() {
    in_private_namespace(|| {
        let systems = [Mounted::image("ext4", 16), Some(Mounted::tmpfs("size=1m"))];
        for system in systems.iter().flatten() {
            let path = system.path().join("f");
            fs::write(&path, "").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
            let served = Served::at(system.path(), &[]);
            acl_is_refused(&served);
            let mut stored = [0; 100];
            assert!(getxattr(&path, ACL, &mut stored[..]).is_err(), "nothing is stored");

            // One that the host sets is the mode.
            setxattr(&path, ACL, &minimal_acl(), XattrFlags::empty()).expect("the host sets it");
            let file = served.client.walk_to(served.root, "f");
            assert_eq!(served.client.fstat(file).expect("stat").mode.permissions(), 0o640);
        }
    });
}

/// Row B69, where the file system would take it for any other attribute.
#[test]
fn an_acl_is_not_stored_where_there_are_no_acls() {
    in_private_namespace(|| {
        let Some(flat) = Flat::mount(&[b"f".to_vec()]) else { return };
        let served = Served::at(flat.path(), &[]);
        acl_is_refused(&served);
        assert!(flat.attributes.lock().expect("no panic").is_empty(), "the file system was not even asked");
    });
}

fn acl_is_refused(served: &Served) {
    let file = served.client.walk_to(served.root, "f");
    assert_eq!(served.client.set_xattr(file, 0, ACL, &minimal_acl()), Err(Errno::EOPNOTSUPP));
    assert_eq!(served.client.get_xattr(file, 0, ACL), Err(Errno::EOPNOTSUPP));
    assert_eq!(served.client.fstat(file).expect("stat").mode.permissions(), 0o644);
    if let Ok(list) = served.client.list_xattr(file, 0) {
        assert_eq!(list, [""; 0], "and none is listed");
    }
}

/// Row B72.
#[test]
fn inode_and_device_numbers_are_the_hosts_in_every_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let names: Vec<String> = (0..1000).map(|number| format!("f{number}")).collect();
    for name in &names {
        fs::write(dir.path().join(name), "").expect("a file");
    }
    for _ in 0..2 {
        let served = Served::at(dir.path(), &[]);
        for name in &names {
            let (_, inodes) = served.client.walk(served.root, &[name.as_bytes()]).expect("walk");
            let stat = inodes[0].stat;
            let host = fs::symlink_metadata(dir.path().join(name)).expect("the file");
            let device = rustix::fs::makedev(stat.dev_major, stat.dev_minor);
            assert_eq!((stat.ino, device), (host.ino(), host.dev()), "{name}");
        }
    }
}

/// Row B74.
#[test]
fn the_link_count_of_a_directory_is_the_hosts() {
    in_private_namespace(|| {
        let tmpfs = Mounted::tmpfs("size=1m");
        for name in ["lower/none", "lower/one/a", "upper", "work", "merged"] {
            fs::create_dir_all(tmpfs.path().join(name)).expect("a directory");
        }
        let at = |name: &str| tmpfs.path().join(name);
        let overlay = Mounted::overlay(&[&at("lower")], &at("upper"), &at("work"));
        let images = [Mounted::image("ext4", 16), Mounted::image("btrfs", 128)];
        for system in images.iter().flatten().chain([&tmpfs, &overlay]) {
            for (name, children) in [("zero", 0), ("one", 1), ("five", 5)] {
                for child in 0..children {
                    fs::create_dir_all(system.path().join(name).join(child.to_string())).expect("a directory");
                }
                fs::create_dir_all(system.path().join(name)).expect("a directory");
            }
            let served = Served::at(system.path(), &[]);
            for name in ["zero", "one", "five"] {
                let dir = served.client.walk_to(served.root, name);
                let host = fs::symlink_metadata(system.path().join(name)).expect("the directory").nlink();
                let nlink = u64::from(served.client.fstat(dir).expect("stat").nlink);
                assert_eq!(nlink, host, "{name} on {}", system.path().display());
            }
        }
    });
}

/// Row B75.
#[test]
fn a_file_systems_attributes_are_the_hosts_the_longest_name_included() {
    in_private_namespace(|| {
        let tmpfs = Mounted::tmpfs("size=1m");
        let ext4 = Mounted::image("ext4", 16);
        run("mkdir", ["lower", "upper", "work"].map(|name| tmpfs.path().join(name)));
        let at = |name: &str| tmpfs.path().join(name);
        let overlay = Mounted::overlay(&[&at("lower")], &at("upper"), &at("work"));
        let flat = Flat::mount(&[b"f".to_vec()]);
        let systems = [Some(tmpfs.path()), ext4.as_ref().map(Mounted::path), Some(overlay.path())];
        for path in systems.into_iter().chain([flat.as_ref().map(Flat::path)]).flatten() {
            let served = Served::at(path, &[]);
            let ours = served.client.fstat_fs(served.root).expect("statfs");
            let host = rustix::fs::statfs(path).expect("statfs");
            let named = |value: i64| u64::try_from(value).expect("not negative");
            assert_eq!((ours.fs_type, ours.block_size), (named(host.f_type), host.f_bsize), "{}", path.display());
            assert_eq!(
                (ours.blocks, ours.blocks_free, ours.blocks_available),
                (host.f_blocks, host.f_bfree, host.f_bavail)
            );
            assert_eq!((ours.files, ours.files_free), (host.f_files, host.f_ffree));
            assert_eq!(ours.name_length, named(host.f_namelen));
            assert_ne!(ours.name_length, 0);
        }
    });
}
