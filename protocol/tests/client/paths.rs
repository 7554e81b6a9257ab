//! Files by path, and listings.

use gofer_protocol::client::{Client, Entry, Error, ErrorKind};
use gofer_protocol::codec::{Array, SizedString, decode};
use gofer_protocol::message::*;
use gofer_protocol::record::{Dirent, Dirents, DirentsBuf, FileType};
use gofer_protocol::{Errno, FdId, Gid, MAX_MESSAGE_SIZE, Mid, Uid};

use crate::peer::{Line, inode, over_both};

/// Answers a walk of `path` from `start` with one inode for each of `types`, numbered from `first` on.
fn answer_walk(line: &mut Line, start: u64, path: &[&str], status: WalkStatus, first: u64, types: &[FileType]) {
    let inodes: Vec<_> = (first..).zip(types).map(|(number, file_type)| inode(number, *file_type)).collect();
    let request = line.answer(Mid::WALK, &WalkReply { status, inodes: Array::new(&inodes).unwrap() });
    let request: WalkRequest<'_> = decode(&request).unwrap();
    assert_eq!(request.dir_fd, FdId(start));
    let asked: Vec<_> = request.path.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
    assert_eq!(asked, path);
}

/// Waits until the client is gone, and asserts which descriptors it has closed.
fn closes(line: &mut Line, expected: &[u64]) {
    line.end();
    line.closed.sort_unstable();
    assert_eq!(line.closed.iter().map(|fd| fd.0).collect::<Vec<_>>(), expected);
}

fn errno<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Errno {
    outcome.unwrap_err().errno()
}

#[test]
fn a_path_is_walked_from_the_root_and_only_its_end_is_kept() {
    use FileType::{Directory, Regular};
    over_both(
        |line| {
            answer_walk(line, 1, &["a", "b", "c"], WalkStatus::SUCCESS, 2, &[Directory, Directory, Regular]);
            answer_walk(line, 4, &["d"], WalkStatus::SUCCESS, 5, &[Regular]);
            closes(line, &[2, 3, 4, 5]);
        },
        |client| {
            let node = client.lookup(b"//a/./b/c/").unwrap();
            assert_eq!((node.id(), node.file_type()), (FdId(4), Some(Regular)));
            assert_eq!(node.lookup(b"d").unwrap().id(), FdId(5));
            assert_eq!(errno(node.lookup(b".")), Errno::EINVAL);
            drop(node);
            client.flush_closes().unwrap();
        },
    );
}

#[test]
fn the_root_by_path_is_a_descriptor_of_its_own() {
    over_both(
        |line| {
            let supported = Array::new(&[]).unwrap();
            let root = inode(6, FileType::Directory);
            line.answer(Mid::MOUNT, &MountReply { root, max_message_size: MAX_MESSAGE_SIZE, supported });
            closes(line, &[6]);
        },
        |client| {
            assert_eq!(client.lookup(b"/").unwrap().id(), FdId(6));
            client.flush_closes().unwrap();
        },
    );
}

#[test]
fn a_walk_that_ends_early_is_told_by_its_reason_and_leaves_nothing_open() {
    use FileType::{Directory, Symlink};
    over_both(
        |line| {
            answer_walk(line, 1, &["a", "b"], WalkStatus::MISSING, 2, &[Directory]);
            answer_walk(line, 1, &["a", "b"], WalkStatus::SYMLINK, 3, &[Symlink]);
            answer_walk(line, 1, &["a", "b"], WalkStatus::SUCCESS, 4, &[Directory]);
            answer_walk(line, 1, &["a", "b"], WalkStatus(7), 5, &[]);
            line.fail(Errno::ENOTDIR);
            // At the end of a path, a symbolic link is what was looked for.
            answer_walk(line, 1, &["a"], WalkStatus::SUCCESS, 6, &[Symlink]);
            closes(line, &[2, 3, 4, 6]);
        },
        |client| {
            assert_eq!(errno(client.lookup(b"/a/b")), Errno::ENOENT);
            assert_eq!(errno(client.lookup(b"/a/b")), Errno::ELOOP);
            assert!(matches!(client.lookup(b"/a/b").unwrap_err().kind(), ErrorKind::Reply(_)));
            assert_eq!(errno(client.lookup(b"/a/b")), Errno::EIO);
            assert_eq!(errno(client.lookup(b"/a/b")), Errno::ENOTDIR);
            assert_eq!(client.lookup(b"/a").unwrap().file_type(), Some(Symlink));
            client.flush_closes().unwrap();
        },
    );
}

#[test]
fn a_long_path_is_walked_in_batches() {
    over_both(
        |line| {
            let names = vec!["n"; 64];
            answer_walk(line, 1, &names, WalkStatus::SUCCESS, 2, &[FileType::Directory; 64]);
            answer_walk(line, 65, &names[..36], WalkStatus::SUCCESS, 66, &[FileType::Directory; 36]);
            // A batch that ends at a symbolic link.
            let mut types = [FileType::Directory; 64];
            types[63] = FileType::Symlink;
            answer_walk(line, 1, &names, WalkStatus::SUCCESS, 200, &types);
            closes(line, &(2..102).chain(200..264).collect::<Vec<_>>());
        },
        |client| {
            let path = b"/n".repeat(100);
            assert_eq!(client.lookup(&path).unwrap().id(), FdId(101));
            client.flush_closes().unwrap();
            assert_eq!(errno(client.lookup(&path)), Errno::ELOOP);
            client.flush_closes().unwrap();
        },
    );
}

#[test]
fn files_are_created_and_removed_in_the_directory_that_holds_them() {
    use FileType::Directory;
    over_both(
        |line| {
            answer_walk(line, 1, &["d"], WalkStatus::SUCCESS, 2, &[Directory]);
            let child = inode(3, FileType::Regular);
            let request = line.answer(Mid::OPEN_CREATE_AT, &OpenCreateAtReply { child, open_fd: FdId(4) });
            let request: OpenCreateAtRequest<'_> = decode(&request).unwrap();
            assert_eq!((request.create.dir_fd, request.name.as_bytes(), request.flags), (FdId(2), &b"f"[..], 2));
            assert_eq!(
                (request.create.uid, request.create.gid, request.create.mode.0),
                (Uid::NONE, Gid::NONE, 0o100_640)
            );

            let request = line.answer(Mid::MKDIR_AT, &inode(5, Directory));
            let request: MkdirAtRequest<'_> = decode(&request).unwrap();
            assert_eq!((request.create.dir_fd, request.name.as_bytes()), (FdId(1), &b"d"[..]));

            for flags in [0, 0x200] {
                let request = line.answer(Mid::UNLINK_AT, &Empty {});
                let request: UnlinkAtRequest<'_> = decode(&request).unwrap();
                assert_eq!((request.dir_fd, request.name.as_bytes(), request.flags), (FdId(1), &b"x"[..], flags));
            }

            answer_walk(line, 1, &["d"], WalkStatus::SUCCESS, 6, &[Directory]);
            let request = line.answer(Mid::RENAME_AT, &Empty {});
            let request: RenameAtRequest<'_> = decode(&request).unwrap();
            assert_eq!((request.old_dir, request.old_name.as_bytes()), (FdId(1), &b"x"[..]));
            assert_eq!((request.new_dir, request.new_name.as_bytes()), (FdId(6), &b"y"[..]));
            closes(line, &[2, 3, 4, 5, 6]);
        },
        |client| {
            let (node, file) = client.create_new(b"/d/f", 0o640).unwrap();
            assert_eq!((node.id(), file.id()), (FdId(3), FdId(4)));
            assert_eq!(client.create_dir(b"d", 0o755).unwrap().id(), FdId(5));
            client.remove_file(b"/x").unwrap();
            client.remove_dir(b"/x").unwrap();
            client.rename(b"/x", b"/d/y").unwrap();
            assert_eq!(errno(client.create_new(b"/", 0o640)), Errno::EINVAL);
            drop((node, file));
            client.flush_closes().unwrap();
        },
    );
}

fn listing(names: &[&str]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut dirents = DirentsBuf::new(&mut encoded, usize::MAX);
    for (number, name) in (1..).zip(names) {
        assert!(dirents.push(&Dirent {
            ino: number,
            dev_minor: 3,
            dev_major: 254,
            off: number * 10,
            entry_type: 8,
            name: SizedString::new(name.as_bytes()).unwrap(),
        }));
    }
    encoded
}

fn answer_listing(line: &mut Line, count: i32, names: &[&str]) {
    let listing = listing(names);
    let dirents: Dirents<'_> = decode(&listing).unwrap();
    let request = line.answer(Mid::GETDENTS64, &Getdents64Reply { dirents });
    assert_eq!(decode(&request), Ok(Getdents64Request { dir_fd: FdId(9), count }));
}

/// The root, opened as number 9.
fn answer_open_dir(line: &mut Line) {
    let supported = Array::new(&[]).unwrap();
    let root = inode(6, FileType::Directory);
    line.answer(Mid::MOUNT, &MountReply { root, max_message_size: MAX_MESSAGE_SIZE, supported });
    line.answer(Mid::OPEN_AT, &OpenAtReply { open_fd: FdId(9) });
}

fn names(entries: impl Iterator<Item = Result<Entry, Error>>) -> Result<Vec<String>, Error> {
    entries.map(|entry| Ok(String::from_utf8(entry?.name).unwrap())).collect()
}

#[test]
fn a_directory_is_listed_from_its_front_to_the_first_empty_reply() {
    over_both(
        |line| {
            answer_open_dir(line);
            answer_listing(line, -65_536, &["a", ".", "b"]);
            // Nothing that counts, and yet not the end.
            answer_listing(line, 65_536, &[".", ".."]);
            answer_listing(line, 65_536, &["c"]);
            answer_listing(line, 65_536, &[]);
            // Again, from the front.
            answer_listing(line, -65_536, &["d"]);
            answer_listing(line, 65_536, &[]);
            line.end();
        },
        |client| {
            let mut entries = client.lookup(b"/").unwrap().read_dir().unwrap();
            let first = entries.next().unwrap().unwrap();
            assert_eq!((first.ino, first.dev_major, first.dev_minor, first.off), (1, 254, 3, 10));
            assert_eq!(first.file_type, Some(FileType::Regular));
            assert_eq!(names(&mut entries).unwrap(), ["b", "c"]);
            assert!(entries.next().is_none(), "the end stays the end, without asking again");
            entries.rewind();
            assert_eq!(names(&mut entries).unwrap(), ["d"]);
        },
    );
}

#[test]
fn a_listing_in_which_a_name_is_none_is_an_error_and_the_end() {
    over_both(
        |line| {
            for bad in ["", "a/b", "a\0b"] {
                answer_open_dir(line);
                answer_listing(line, -65_536, &["a", bad]);
            }
            answer_open_dir(line);
            line.fail(Errno::ESTALE);
            line.end();
        },
        |client: &Client| {
            for _ in 0..3 {
                let mut entries = client.lookup(b"/").unwrap().read_dir().unwrap();
                assert_eq!(errno(entries.next().unwrap()), Errno::EIO);
                assert!(entries.next().is_none());
            }
            let mut entries = client.lookup(b"/").unwrap().read_dir().unwrap();
            assert_eq!(errno(entries.next().unwrap()), Errno::ESTALE);
            assert!(entries.next().is_none());
        },
    );
}
