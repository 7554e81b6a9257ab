//! Everything that a server might be tempted to do by path, after the path was turned into one that leads outside.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use gofer_integration::{Ask, Exchange, Outside, change, fifo, new_in, over_both};
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};

/// Names as in [`Outside`], so that a directory can take its place, and a symbolic link.
const NAMES: [&str; 5] = ["secret", "socket", "fifo", "dir", "link"];

/// Threat: make the server follow a symlink through path-based calls; the directory on the way became a link.
#[test]
fn no_request_reaches_outside_by_a_directory_that_became_a_link() {
    attack(|dir, outside| {
        fs::rename(dir.join("sub"), dir.join("was")).expect("rename");
        symlink(outside.path(), dir.join("sub")).expect("a link");
    });
}

/// Threat: make the server follow a symlink through path-based calls; each file became a link.
#[test]
fn no_request_reaches_outside_by_a_file_that_became_a_link() {
    attack(|dir, outside| {
        fs::create_dir(dir.join("was")).expect("a directory");
        for name in NAMES {
            fs::rename(dir.join("sub").join(name), dir.join("was").join(name)).expect("rename");
            symlink(outside.path().join(name), dir.join("sub").join(name)).expect("a link");
        }
    });
}

/// Lets a client hold files of `sub`, turns their names with `turn`, and uses the files in every way. They are in `was`
/// then.
fn attack(turn: impl Fn(&Path, &Outside)) {
    let outside = Outside::new();
    over_both(
        &["--host-uds", "all", "--host-fifo", "open"],
        |dir| {
            let sub = dir.join("sub");
            fs::create_dir_all(sub.join("dir")).expect("directories");
            fs::write(sub.join("secret"), "inside").expect("a file");
            fs::write(sub.join("dir/inside"), "").expect("a file");
            symlink("target", sub.join("link")).expect("a link");
            fifo(&sub.join("fifo"));
        },
        |t| {
            let listener = UnixListener::bind(t.host("sub/socket")).expect("a socket");
            listener.set_nonblocking(true).expect("a non-blocking socket");
            let fds: Vec<FdId> = NAMES.iter().map(|name| t.client.walk_to(t.root, &format!("sub/{name}"))).collect();
            turn(t.path(), &outside);

            let was = t.host("was");
            let [file, socket, fifo, dir, link] = *fds else { panic!("five descriptors") };
            for fd in [file, socket, fifo, dir, link] {
                change_attributes(t.client, fd);
                use_attributes_by_name(t.client, fd);
            }
            for name in ["secret", "socket", "fifo", "dir"] {
                let is = was.join(name).symlink_metadata().expect("metadata");
                assert_eq!((is.permissions().mode() & 0o7777, is.uid()), (0o770, 4711), "{name} is what changed");
                assert_eq!(is.mtime(), 1_000_000, "{name} is what changed");
            }
            assert_eq!(was.join("link").symlink_metadata().expect("metadata").mtime(), 1_000_000);

            t.client.connect(socket, 1).expect("connects to the socket that it holds");
            listener.accept().expect("a connection to the socket inside");
            assert_eq!(t.client.read_link(link).expect("a target"), b"target");
            work_in_directory(t.client, dir, file);
            outside.assert_untouched();
        },
    );
}

fn change_attributes(client: &dyn Exchange, fd: FdId) {
    client.set_stat(&SetStatRequest { size: 3, ..change(fd, StatxMask::SIZE) }).expect("a reply that says what failed");
    let mask = StatxMask::MODE.or(StatxMask::UID).or(StatxMask::GID).or(StatxMask::ATIME).or(StatxMask::MTIME);
    let time = Timespec { seconds: 1_000_000, nanoseconds: 0 };
    let (mode, uid, gid) = (0o770, Uid(4711), Gid(4711));
    let all = SetStatRequest { mode, uid, gid, atime: time, mtime: time, ..change(fd, mask) };
    client.set_stat(&all).expect("a reply that says what failed");
    // O_RDWR, which opens what is held or fails, according to its type.
    if let Ok((open, _)) = client.open(fd, 2) {
        client.close(&[open]);
    }
}

fn use_attributes_by_name(client: &dyn Exchange, fd: FdId) {
    let name = "user.test";
    // Only files and directories take attributes of users.
    if client.set_xattr(fd, 0, name, b"inside").is_ok() {
        let value = client.get_xattr(fd, 0, name).expect("an attribute that was just set");
        assert_eq!(value, b"inside");
        client.remove_xattr(fd, name).expect("an attribute that was just set");
    }
    client.list_xattr(fd, 0).expect("a list, of whatever is held");
}

/// `dir` is held, and so is `file`, which is not in it.
fn work_in_directory(client: &dyn Exchange, dir: FdId, file: FdId) {
    let (open, _) = client.open(dir, 0).expect("a directory opens");
    assert_eq!(client.getdents(open, -65_536).expect("a listing").len(), 1, "the directory inside has one entry");
    let linked = client.link(dir, file, "linked").expect("a link to what is held");
    assert_eq!(linked.stat.ino, client.fstat(file).expect("attributes").ino);
    let bound =
        client.bind(new_in(dir, FileType::Socket, 0o755), 1, "bound").expect("a socket in the directory that is held");
    let made =
        client.mkdir(new_in(dir, FileType::Directory, 0o755), "made").expect("a directory in the one that is held");
    assert_eq!(client.unlink(dir, "inner"), Err(Errno::ENOENT), "the file outside");
    client.unlink(dir, "bound").expect("unlink");
    client.unlink(dir, "linked").expect("unlink");
    client.rmdir(dir, "made").expect("rmdir");
    client.close(&[open, linked.control_fd, bound.0.control_fd, bound.1, made.control_fd]);
}
