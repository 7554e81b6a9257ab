//! Writing through a connection that may only read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use gofer::{Limits, Policy, Server};
use gofer_integration::{Ask, Exchange, Raw, new_in, nothing, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Mid};
use rustix::fs::{OFlags, fcntl_getfl};

/// Threat: write through a read-only connection: requests.
#[test]
fn every_request_that_changes_files_is_erofs_before_it_is_parsed() {
    over_both(
        &["--readonly", "--host-uds", "all"],
        |dir| fs::write(dir.join("f"), "hello").expect("a file"),
        |t| {
            for mid in [4, 8, 11, 13, 14, 15, 16, 18, 22, 23, 26, 28, 29, 33] {
                for payload in [&[][..], &[0; 64], &[0xff; 200]] {
                    assert_eq!(t.client.exchange(mid, payload).err(), Some(Errno::EROFS), "{:?}", Mid(mid));
                }
            }
            assert_eq!(fs::read(t.host("f")).expect("a file"), b"hello");
        },
    );
}

/// Threat: write through a read-only connection: access mode and O_TRUNC of OpenAt, and what is donated.
#[test]
fn a_read_only_connection_opens_for_reading_only_and_donates_nothing_more() {
    over_both(
        &["--readonly"],
        |dir| fs::write(dir.join("f"), "hello").expect("a file"),
        |t| {
            let file = t.client.walk_to(t.root, "f");
            // O_WRONLY, O_RDWR, neither of both, and O_TRUNC with each.
            for flags in [1, 2, 3, 0o1000, 0o1001, 0o1002, 0o1003] {
                assert_eq!(t.client.open(file, flags).err(), Some(Errno::EROFS), "flags {flags:o}");
            }
            let (open, fds) = t.client.open(file, 0).expect("reading is allowed");
            let mut donated = File::from(fds.into_iter().next().expect("a descriptor"));
            assert_eq!(fcntl_getfl(&donated).expect("flags").intersection(OFlags::ACCMODE), OFlags::RDONLY);
            assert!(donated.write_all(b"x").is_err() && donated.set_len(0).is_err());
            let mut text = String::new();
            donated.read_to_string(&mut text).expect("reading is allowed");
            assert_eq!(text, "hello");
            assert_eq!(t.client.pwrite(open, 0, b"x"), Err(Errno::EROFS));
            assert_eq!(fs::read(t.host("f")).expect("a file"), b"hello");
        },
    );
}

/// Threat: write through a read-only connection: the mount point that is donated.
#[test]
fn the_mount_point_of_a_read_only_connection_is_donated_for_reading() {
    over_both(&["--readonly", "--donate-mount-point"], nothing, |t| {
        for answer in [
            t.client.exchange(Mid::MOUNT.0, &[]),
            t.client.exchange(7, &[&t.root.0.to_le_bytes()[..], &[0; 8]].concat()),
        ] {
            let answer = answer.expect("an answer");
            assert_eq!(answer.fds.len(), 1);
            let flags = fcntl_getfl(&answer.fds[0]).expect("flags");
            assert_eq!(flags.intersection(OFlags::ACCMODE), OFlags::RDONLY);
        }
    });
}

/// Threat: write through another path of the same tree: two connections of one server, of which one may only read.
#[test]
fn each_connection_of_a_server_enforces_its_own_flag_on_the_files_that_they_share() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("f"), "hello").expect("a file");
    let server = Server::new().expect("a server");
    let connect = |read_only| {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let root = server.root(dir.path()).expect("a root");
        let policy = Policy { read_only, ..Policy::default() };
        let connection = server.connect(theirs.into(), root, policy, Limits::default()).expect("a connection");
        let client = Raw::new(ours);
        let root = client.mount();
        (client, root, connection)
    };
    let (reader, readers_root, _) = connect(true);
    let (writer, writers_root, _) = connect(false);
    // Both hold the same node, and open the file at the same time.
    let (read_file, write_file) = (reader.walk_to(readers_root, "f"), writer.walk_to(writers_root, "f"));
    let (written, _) = writer.open(write_file, 2).expect("one may write");
    for reader in [&reader as &dyn Exchange, &reader.on_channel()] {
        assert_eq!(reader.open(read_file, 2).err(), Some(Errno::EROFS));
        let (read, _) = reader.open(read_file, 0).expect("the other may read");
        assert_eq!(reader.pwrite(read, 0, b"x"), Err(Errno::EROFS));
        // Not even by the writer's numbers.
        for fd in [written, write_file, FdId(written.0 + 1)] {
            assert!(reader.pwrite(fd, 0, b"x").is_err());
            assert!(
                reader.unlink(fd, "f").is_err() && reader.mkdir(new_in(fd, FileType::Directory, 0o755), "d").is_err()
            );
        }
        assert_eq!(reader.unlink(readers_root, "f"), Err(Errno::EROFS));
        assert_eq!(reader.rename((readers_root, "f"), (readers_root, "g")), Err(Errno::EROFS));
    }
    assert_eq!(writer.pwrite(written, 0, b"H"), Ok(1));
    writer.rename((writers_root, "f"), (writers_root, "g")).expect("the other may rename");
    assert_ne!(reader.walk_to(readers_root, "g"), FdId::NONE, "and this one sees it");
    assert_eq!(fs::read(dir.path().join("g")).expect("a file"), b"Hello");
}
