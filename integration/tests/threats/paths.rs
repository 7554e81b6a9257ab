//! Everything that a server might be tempted to do by path, after the path was turned into one that leads outside.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use gofer_integration::raw::string;
use gofer_integration::{Client, Outside, Requests, Served, each_way};
use gofer_protocol::codec::SizedString;
use gofer_protocol::message::{
    FGetXattrReply, FGetXattrRequest, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest, ReadLinkAtReply,
    ReadLinkAtRequest,
};
use gofer_protocol::record::{StatxMask, Timespec};
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
    let served = Served::with(&["--host-uds", "all", "--host-fifo", "open"], |dir| {
        let sub = dir.join("sub");
        fs::create_dir_all(sub.join("dir")).expect("directories");
        fs::write(sub.join("secret"), "inside").expect("a file");
        fs::write(sub.join("dir/inside"), "").expect("a file");
        symlink("target", sub.join("link")).expect("a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            sub.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
    });
    let listener = UnixListener::bind(served.path().join("sub/socket")).expect("a socket");
    listener.set_nonblocking(true).expect("a non-blocking socket");
    let fds: Vec<FdId> = NAMES.iter().map(|name| served.client.walk_to(served.root, &format!("sub/{name}"))).collect();
    turn(served.path(), &outside);

    let was = served.path().join("was");
    each_way(&served.client, |client| {
        let [file, socket, fifo, dir, link] = *fds else { panic!("five descriptors") };
        for fd in [file, socket, fifo, dir, link] {
            change_attributes(client, fd);
            use_attributes_by_name(client, fd);
        }
        for name in ["secret", "socket", "fifo", "dir"] {
            let is = was.join(name).symlink_metadata().expect("metadata");
            assert_eq!((is.permissions().mode() & 0o7777, is.uid()), (0o770, 4711), "{name} is what changed");
            assert_eq!(is.mtime(), 1_000_000, "{name} is what changed");
        }
        assert_eq!(was.join("link").symlink_metadata().expect("metadata").mtime(), 1_000_000);

        assert_eq!(client.connect(socket).expect("connects to the socket that it holds").len(), 1);
        listener.accept().expect("a connection to the socket inside");
        let answer = client.ask(&ReadLinkAtRequest { fd: link }).expect("a target");
        assert_eq!(answer.decode::<ReadLinkAtReply<'_>>().target.as_bytes(), b"target");
        work_in_directory(client, dir, file);
    });
    outside.assert_untouched();
}

fn change_attributes(client: &dyn Client, fd: FdId) {
    client.set_stat(fd, |set| (set.mask, set.size) = (StatxMask::SIZE, 3)).expect("a reply that says what failed");
    let change = client.set_stat(fd, |set| {
        set.mask = StatxMask::MODE.or(StatxMask::UID).or(StatxMask::GID).or(StatxMask::ATIME).or(StatxMask::MTIME);
        (set.mode, set.uid, set.gid) = (0o770, Uid(4711), Gid(4711));
        set.atime = Timespec { seconds: 1_000_000, nanoseconds: 0 };
        set.mtime = set.atime;
    });
    change.expect("a reply that says what failed");
    // O_RDWR, which opens what is held or fails, according to its type.
    if let Ok((open, _)) = client.open(fd, 2) {
        client.close(&[open]);
    }
}

fn use_attributes_by_name(client: &dyn Client, fd: FdId) {
    let name = string("user.test");
    let value = SizedString::new(b"inside").expect("a value");
    // Only files and directories take attributes of users.
    let set = client.ask(&FSetXattrRequest { fd, flags: 0, name, value });
    if set.is_ok() {
        let answer = client.ask(&FGetXattrRequest { fd, buf_size: 0, name }).expect("an attribute that was just set");
        assert_eq!(answer.decode::<FGetXattrReply<'_>>().value.as_bytes(), b"inside");
        client.ask(&FRemoveXattrRequest { fd, name }).expect("an attribute that was just set");
    }
    client.ask(&FListXattrRequest { fd, size: 0 }).expect("a list, of whatever is held");
}

/// `dir` is held, and so is `file`, which is not in it.
fn work_in_directory(client: &dyn Client, dir: FdId, file: FdId) {
    let (open, _) = client.open(dir, 0).expect("a directory opens");
    assert_eq!(client.list(open, -65_536).expect("a listing").len(), 1, "the directory inside has one entry");
    let linked = client.link(dir, file, "linked").expect("a link to what is held");
    assert_eq!(linked.stat.ino, client.fstat(file).expect("attributes").ino);
    let bound = client.bind(dir, "bound").expect("a socket in the directory that is held");
    let made = client.mkdir(dir, "made").expect("a directory in the one that is held");
    assert_eq!(client.unlink(dir, "inner"), Err(Errno::ENOENT), "the file outside");
    client.unlink(dir, "bound").expect("unlink");
    client.unlink(dir, "linked").expect("unlink");
    client.rmdir(dir, "made").expect("rmdir");
    client.close(&[open, linked.control_fd, bound.0.control_fd, bound.1, made.control_fd]);
}
