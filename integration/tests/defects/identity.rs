//! D1, D2, D9, D17: a number stands for what it was made on, and for nothing else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use gofer_integration::raw::string;
use gofer_integration::{Client, Outside, Requests, Served, each_way};
use gofer_protocol::codec::SizedString;
use gofer_protocol::message::{
    FGetXattrReply, FGetXattrRequest, FListXattrRequest, FSetXattrRequest, ReadLinkAtRequest,
};
use gofer_protocol::record::{StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::fs::{XattrFlags, setxattr};

/// Defect D1: the mode of a removed socket is set on the socket, not on what has its name by now.
#[test]
fn the_mode_of_a_removed_socket_is_its_own() {
    let outside = Outside::new();
    let served = Served::with(&["--host-uds", "all"], |_| ());
    each_way(&served.client, |client| {
        let (socket, bound, _) = client.bind(served.root, "s").expect("bind");
        client.unlink(served.root, "s").expect("unlink");
        client.symlink(served.root, "s", &outside.path().join("secret").display().to_string()).expect("symlink");
        let reply = client.set_stat(socket.control_fd, |set| (set.mask, set.mode) = (StatxMask::MODE, 0o777));
        assert_eq!(reply.expect("a reply").failure_mask, StatxMask::default());
        assert_eq!(client.fstat(socket.control_fd).expect("attributes").mode.permissions(), 0o777);
        client.unlink(served.root, "s").expect("unlink");
        client.close(&[socket.control_fd, bound]);
    });
    outside.assert_untouched();
}

/// Defect D1, its other half: the times of a removed symbolic link are set on the link.
#[test]
fn the_times_of_a_removed_link_are_its_own() {
    let served = Served::with(&[], |dir| fs::write(dir.join("other"), "").expect("a file"));
    let untouched = served.path().join("other").metadata().expect("metadata").mtime();
    each_way(&served.client, |client| {
        let link = client.symlink(served.root, "l", "other").expect("symlink").control_fd;
        client.unlink(served.root, "l").expect("unlink");
        symlink("other", served.path().join("l")).expect("a link");
        let successor = served.path().join("l").symlink_metadata().expect("metadata").mtime();
        let reply = client.set_stat(link, |set| {
            set.mask = StatxMask::MTIME;
            set.mtime = Timespec { seconds: 1_000_000, nanoseconds: 5 };
        });
        assert_eq!(reply.expect("a reply").failure_mask, StatxMask::default());
        let is = client.fstat(link).expect("attributes");
        assert_eq!((is.mtime.seconds, is.mtime.nanoseconds), (1_000_000, 5));
        assert_eq!(served.path().join("l").symlink_metadata().expect("metadata").mtime(), successor);
        fs::remove_file(served.path().join("l")).expect("remove");
    });
    assert_eq!(served.path().join("other").metadata().expect("metadata").mtime(), untouched);
}

/// Defect D2: the control descriptor of a socket file is on the file, and outlives the socket.
#[test]
fn the_control_descriptor_of_a_socket_is_on_its_file() {
    let served = Served::with(&["--host-uds", "all"], |_| ());
    each_way(&served.client, |client| {
        let before = served.gofer.settled_descriptors();
        let (child, bound, donated) = client.bind(served.root, "s").expect("bind");
        let host = served.path().join("s").symlink_metadata().expect("metadata");
        for stat in [child.stat, client.fstat(child.control_fd).expect("attributes")] {
            assert_eq!((stat.ino, stat.mode.0, stat.nlink), (host.ino(), 0o140_755, 1));
            assert_eq!(rustix::fs::makedev(stat.dev_major, stat.dev_minor), host.dev());
        }
        served.gofer.assert_descriptors(before + 2, "the file and the socket");
        client
            .set_stat(child.control_fd, |set| {
                set.mask = StatxMask::UID.or(StatxMask::GID).or(StatxMask::MODE);
                (set.uid, set.gid, set.mode) = (Uid(4711), Gid(4712), 0o700);
            })
            .expect("a reply");
        let host = served.path().join("s").symlink_metadata().expect("metadata");
        assert_eq!((host.uid(), host.gid(), host.permissions().mode() & 0o7777), (4711, 4712, 0o700));

        client.close(&[bound]);
        // Takes the socket's number in the process, if it was closed.
        let filler = client.create(served.root, "filler").expect("a file");
        assert_eq!(client.fstat(child.control_fd).expect("still there").ino, host.ino());
        client.unlink(served.root, "filler").expect("unlink");
        client.unlink(served.root, "s").expect("unlink");
        client.close(&[child.control_fd, filler.0.control_fd, filler.1]);
        drop(donated);
        served.gofer.assert_descriptors(before, "nothing leaked");
    });
}

/// Defect D9: a removed link has no target to read, and a removed file no attributes to list.
#[test]
fn reading_a_removed_link_or_listing_attributes_of_a_removed_file_is_einval() {
    let served = Served::new();
    each_way(&served.client, |client| {
        let link = client.symlink(served.root, "l", "target").expect("symlink").control_fd;
        let (file, _, _) = client.create(served.root, "f").expect("create");
        client.unlink(served.root, "l").expect("unlink");
        client.unlink(served.root, "f").expect("unlink");
        assert_eq!(client.ask(&ReadLinkAtRequest { fd: link }).err(), Some(Errno::EINVAL));
        for size in [0, 100, u64::MAX] {
            let listed = client.ask(&FListXattrRequest { fd: file.control_fd, size }).err();
            assert_eq!(listed, Some(Errno::EINVAL));
        }
    });
}

/// Defect D17: a size of 0 gets the value itself, and a size that no attribute has costs nothing.
#[test]
fn an_attribute_comes_whole_and_alone_whatever_size_is_asked_for() {
    // As long as it may be on a file system with blocks of 4 KiB.
    let value = vec![b'v'; 1000];
    let served = Served::with(&[], |dir| {
        fs::write(dir.join("f"), "").expect("a file");
        setxattr(dir.join("f"), "user.a", &value, XattrFlags::empty()).expect("an attribute");
    });
    let fd = served.client.walk_to(served.root, "f");
    each_way(&served.client, |client| {
        let before = served.gofer.anonymous_kib();
        for size in [0, 1000, 1001, 65_535, 65_536, 65_537, 1 << 31, u32::MAX] {
            assert_eq!(attribute(client, fd, size), Ok(value.clone()), "size {size}");
        }
        for size in [1, 999] {
            assert_eq!(attribute(client, fd, size), Err(Errno::ERANGE), "size {size}");
        }
        assert!(served.gofer.anonymous_kib() < before + 1024, "a buffer of the client's size");
    });
}

/// Defect D17, at the edge of what the wire can say: values of up to 65,535 bytes, where the file system has them.
#[test]
fn an_attribute_as_long_as_the_wire_takes_comes_whole_and_a_longer_one_is_erange() {
    // tmpfs keeps attributes of users since Linux 6.6.
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    fs::write(dir.path().join("f"), "").expect("a file");
    for (name, len) in [("user.a", 65_535), ("user.b", 65_536)] {
        if let Err(errno) = setxattr(dir.path().join("f"), name, &vec![b'v'; len], XattrFlags::empty()) {
            eprintln!("SKIPPED: tmpfs takes no attribute of {len} bytes here: {errno}");
            return;
        }
    }
    let (_gofer, stream) = gofer_integration::Gofer::serve(dir.path(), &[]);
    let client = gofer_integration::Raw::new(stream);
    let fd = client.walk_to(client.mount(), "f");
    each_way(&client, |client| {
        assert_eq!(attribute(client, fd, 0).map(|value| value.len()), Ok(65_535));
        let name = string("user.b");
        let refused = client.ask(&FGetXattrRequest { fd, buf_size: 0, name }).err();
        assert!(matches!(refused, Some(Errno::ERANGE | Errno::E2BIG)), "{refused:?}");
        // The longest that can be set, and back again.
        let longest = vec![b'w'; 65_535];
        let value = SizedString::new(&longest).expect("a value");
        client.ask(&FSetXattrRequest { fd, flags: 0, name: string("user.a"), value }).expect("set");
        assert_eq!(attribute(client, fd, 0), Ok(longest.clone()));
    });
}

fn attribute(client: &dyn Client, fd: FdId, buf_size: u32) -> Result<Vec<u8>, Errno> {
    let answer = client.ask(&FGetXattrRequest { fd, buf_size, name: string("user.a") })?;
    let value = answer.decode::<FGetXattrReply<'_>>().value.as_bytes().to_vec();
    assert_eq!(answer.payload.len(), 2 + value.len(), "nothing but the value");
    Ok(value)
}
