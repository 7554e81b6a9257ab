//! D1, D2, D9, D17: a number stands for what it was made on, and for nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use gofer_integration::{
    Ask, Exchange, Outside, Served, change, new_in, nothing, over_both, over_both_on, say, string,
};
use gofer_protocol::message::{FGetXattrReply, FGetXattrRequest, SetStatRequest};
use gofer_protocol::record::{FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::fs::{XattrFlags, setxattr};

/// Defect D1: the mode of a removed socket is set on the socket, not on what has its name by now.
#[test]
fn the_mode_of_a_removed_socket_is_its_own() {
    let outside = Outside::new();
    over_both(&["--host-uds", "all"], nothing, |t| {
        let (socket, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").expect("bind");
        t.client.unlink(t.root, "s").expect("unlink");
        t.client.symlink(t.root, "s", outside.path().join("secret").as_os_str().as_encoded_bytes()).expect("symlink");
        let reply = t.client.chmod(socket.control_fd, 0o777);
        assert_eq!(reply.expect("a reply").failure_mask, StatxMask::default());
        assert_eq!(t.client.fstat(socket.control_fd).expect("attributes").mode.permissions(), 0o777);
        t.client.unlink(t.root, "s").expect("unlink");
        t.client.close(&[socket.control_fd, bound]);
        outside.assert_untouched();
    });
}

/// Defect D1, its other half: the times of a removed symbolic link are set on the link.
#[test]
fn the_times_of_a_removed_link_are_its_own() {
    over_both(
        &[],
        |dir| fs::write(dir.join("other"), "").expect("a file"),
        |t| {
            let untouched = t.host("other").metadata().expect("metadata").mtime();
            let link = t.client.symlink(t.root, "l", "other").expect("symlink").control_fd;
            t.client.unlink(t.root, "l").expect("unlink");
            symlink("other", t.host("l")).expect("a link");
            let successor = t.host("l").symlink_metadata().expect("metadata").mtime();
            let mtime = Timespec { seconds: 1_000_000, nanoseconds: 5 };
            let reply = t.client.set_stat(&SetStatRequest { mtime, ..change(link, StatxMask::MTIME) });
            assert_eq!(reply.expect("a reply").failure_mask, StatxMask::default());
            let is = t.client.fstat(link).expect("attributes");
            assert_eq!((is.mtime.seconds, is.mtime.nanoseconds), (1_000_000, 5));
            assert_eq!(t.host("l").symlink_metadata().expect("metadata").mtime(), successor);
            fs::remove_file(t.host("l")).expect("remove");
            assert_eq!(t.host("other").metadata().expect("metadata").mtime(), untouched);
        },
    );
}

/// Defect D2: the control descriptor of a socket file is on the file, and outlives the socket.
#[test]
fn the_control_descriptor_of_a_socket_is_on_its_file() {
    over_both(&["--host-uds", "all"], nothing, |t| {
        let before = t.descriptors();
        let (child, bound, donated) = t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").expect("bind");
        let host = t.host("s").symlink_metadata().expect("metadata");
        for stat in [child.stat, t.client.fstat(child.control_fd).expect("attributes")] {
            assert_eq!((stat.ino, stat.mode.0, stat.nlink), (host.ino(), 0o140_755, 1));
            assert_eq!(rustix::fs::makedev(stat.dev_major, stat.dev_minor), host.dev());
        }
        t.gofer().assert_descriptors(before + 2, "the file and the socket");
        let mask = StatxMask::UID.or(StatxMask::GID).or(StatxMask::MODE);
        let (uid, gid, mode) = (Uid(4711), Gid(4712), 0o700);
        let all = SetStatRequest { uid, gid, mode, ..change(child.control_fd, mask) };
        t.client.set_stat(&all).expect("a reply");
        let host = t.host("s").symlink_metadata().expect("metadata");
        assert_eq!((host.uid(), host.gid(), host.permissions().mode() & 0o7777), (4711, 4712, 0o700));

        t.client.close(&[bound]);
        // Takes the socket's number in the process, if it was closed.
        let filler = t.client.create(t.root, "filler").expect("a file");
        assert_eq!(t.client.fstat(child.control_fd).expect("still there").ino, host.ino());
        t.client.unlink(t.root, "filler").expect("unlink");
        t.client.unlink(t.root, "s").expect("unlink");
        t.client.close(&[child.control_fd, filler.0.control_fd, filler.1]);
        drop(donated);
        t.gofer().assert_descriptors(before, "nothing leaked");
    });
}

/// Defect D9: a removed link has no target to read, and a removed file no attributes to list.
#[test]
fn reading_a_removed_link_or_listing_attributes_of_a_removed_file_is_einval() {
    over_both(&[], nothing, |t| {
        let link = t.client.symlink(t.root, "l", "target").expect("symlink").control_fd;
        let (file, _, _) = t.client.create(t.root, "f").expect("create");
        t.client.unlink(t.root, "l").expect("unlink");
        t.client.unlink(t.root, "f").expect("unlink");
        assert_eq!(t.client.read_link(link).err(), Some(Errno::EINVAL));
        for size in [0, 100, u64::MAX] {
            let listed = t.client.list_xattr(file.control_fd, size).err();
            assert_eq!(listed, Some(Errno::EINVAL));
        }
    });
}

/// Defect D17: a size of 0 gets the value itself, and a size that no attribute has costs nothing.
#[test]
fn an_attribute_comes_whole_and_alone_whatever_size_is_asked_for() {
    // As long as it may be on a file system with blocks of 4 KiB.
    let value = vec![b'v'; 1000];
    over_both(
        &[],
        |dir| {
            fs::write(dir.join("f"), "").expect("a file");
            setxattr(dir.join("f"), "user.a", &value, XattrFlags::empty()).expect("an attribute");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let before = t.gofer().anonymous_kib();
            for size in [0, 1000, 1001, 65_535, 65_536, 65_537, 1 << 31, u32::MAX] {
                assert_eq!(attribute(t.client, fd, size), Ok(value.clone()), "size {size}");
            }
            for size in [1, 999] {
                assert_eq!(attribute(t.client, fd, size), Err(Errno::ERANGE), "size {size}");
            }
            assert!(t.gofer().anonymous_kib() < before + 1024, "a buffer of the client's size");
        },
    );
}

/// Defect D17, at the edge of what the wire can say: values of up to 65,535 bytes, where the file system has them.
#[test]
fn an_attribute_as_long_as_the_wire_takes_comes_whole_and_a_longer_one_is_erange() {
    // tmpfs keeps attributes of users since Linux 6.6.
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    fs::write(dir.path().join("f"), "").expect("a file");
    for (name, len) in [("user.a", 65_535), ("user.b", 65_536)] {
        if let Err(errno) = setxattr(dir.path().join("f"), name, &vec![b'v'; len], XattrFlags::empty()) {
            return say::skipped(format_args!("tmpfs takes no attribute of {len} bytes here: {errno}"));
        }
    }
    over_both_on(
        || Served::at(dir.path(), &[]),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(attribute(t.client, fd, 0).map(|value| value.len()), Ok(65_535));
            let refused = t.client.get_xattr(fd, 0, "user.b").err();
            assert!(matches!(refused, Some(Errno::ERANGE | Errno::E2BIG)), "{refused:?}");
            // The longest that can be set, and back again.
            let longest = vec![b'w'; 65_535];
            t.client.set_xattr(fd, 0, "user.a", &longest).expect("set");
            assert_eq!(attribute(t.client, fd, 0), Ok(longest));
        },
    );
}

fn attribute(client: &dyn Exchange, fd: FdId, buf_size: u32) -> Result<Vec<u8>, Errno> {
    let answer = client.ask(&FGetXattrRequest { fd, buf_size, name: string("user.a") })?;
    let value = answer.decode::<FGetXattrReply<'_>>().value.as_bytes().to_vec();
    assert_eq!(answer.payload.len(), 2 + value.len(), "nothing but the value");
    Ok(value)
}
