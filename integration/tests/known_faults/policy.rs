//! Read-only views, and what policy lets clients do with special files.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use gofer_integration::child::{self, can_be_nobody};
use gofer_integration::{Ask, Exchange, Served, change, encoded, fifo, new_in, nothing, say, string};
use gofer_protocol::message::{
    BindAtRequest, FAllocateRequest, FRemoveXattrRequest, FSetXattrRequest, LinkAtRequest, MkdirAtRequest,
    MknodAtRequest, OpenCreateAtRequest, PWriteRequest, RenameAt2Request, RenameAtRequest, SymlinkAtRequest,
    UnlinkAtRequest,
};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, StatxMask};
use gofer_protocol::{Errno, FdId, Gid, Mid, Request, Uid, Wire};

const STREAM: u32 = 1;

/// Every request that changes something, well-formed, on `dir` with `name` and on `file`.
fn changing(dir: FdId, name: &str, file: FdId) -> Vec<(Mid, Vec<u8>)> {
    fn put<'q, Q: Request + Wire<'q>>(request: &Q) -> (Mid, Vec<u8>) {
        (Q::MID, encoded(request))
    }
    let (name, target) = (string(name), string("target"));
    let create = new_in(dir, FileType::Regular, 0o644);
    let (uid, gid) = (Uid::NONE, Gid::NONE);
    vec![
        put(&change(file, StatxMask::default())),
        put(&OpenCreateAtRequest { create, flags: 0, name }),
        put(&PWriteRequest { offset: 0, fd: file, data: gofer_protocol::codec::Data::new(b"data").expect("data") }),
        put(&MkdirAtRequest { create, name }),
        put(&MknodAtRequest { create, minor: 0, major: 0, name }),
        put(&SymlinkAtRequest { dir_fd: dir, uid, gid, name, target }),
        put(&LinkAtRequest { dir_fd: dir, target: file, name }),
        put(&FAllocateRequest { fd: file, mode: 0, offset: 0, length: 1 }),
        put(&UnlinkAtRequest { dir_fd: dir, flags: 0, name }),
        put(&RenameAtRequest { old_dir: dir, new_dir: dir, old_name: name, new_name: target }),
        put(&RenameAt2Request { old_dir: dir, new_dir: dir, old_name: name, new_name: target, flags: 0 }),
        put(&FSetXattrRequest { fd: file, flags: 0, name: string("user.a"), value: string("v") }),
        put(&FRemoveXattrRequest { fd: file, name: string("user.a") }),
        put(&BindAtRequest { create, sock_type: STREAM, name }),
    ]
}

/// Row B16.
#[test]
fn every_change_on_a_read_only_connection_is_erofs_whatever_else_is_wrong_with_it() {
    let served = Served::with(&["--readonly", "--host-uds=all"], |dir| {
        fs::write(dir.join("f"), "content").expect("a file");
    });
    let file = served.client.walk_to(served.root, "f");
    let all = changing(served.root, "f", file);
    let numbers: Vec<Mid> = all.iter().map(|(mid, _)| *mid).collect();
    let mut expected: Vec<Mid> = Mid::ALL.iter().copied().filter(|mid| mid.changes_files()).collect();
    expected.sort_by_key(|mid| numbers.iter().position(|other| other == mid));
    assert_eq!(numbers, expected, "this test knows every changing message");

    let unknown = FdId(9_999);
    let bad_names = changing(served.root, "..", file).into_iter();
    let bad_fds = changing(unknown, "f", unknown).into_iter();
    let cut_off = all.iter().map(|(mid, _)| (*mid, Vec::new()));
    for (mid, payload) in all.iter().cloned().chain(bad_names).chain(bad_fds).chain(cut_off) {
        assert_eq!(served.client.exchange(mid.0, &payload).map(|_| ()), Err(Errno::EROFS), "{mid:?} {payload:?}");
    }
    let content = fs::read(served.path().join("f")).expect("the file");
    assert_eq!((content.as_slice(), fs::read_dir(served.path()).expect("the root").count()), (&b"content"[..], 1));
}

/// Row B16.
#[test]
fn on_a_read_only_connection_files_open_for_reading_and_for_nothing_else() {
    const TRUNC: u32 = 0o1000;
    let served = Served::with(&["--readonly"], |dir| fs::write(dir.join("f"), "content").expect("a file"));
    let file = served.client.walk_to(served.root, "f");
    for flags in [1, 2, 3, TRUNC, TRUNC | 1, TRUNC | 2] {
        for fd in [file, served.root, FdId(9_999)] {
            assert_eq!(served.client.open(fd, flags).map(|_| ()), Err(Errno::EROFS), "flags {flags:o} on {fd:?}");
        }
    }
    let (open, donated) = served.client.open(file, 0).expect("open");
    assert_eq!(served.client.pread(open, 0, 100).as_deref(), Ok(&b"content"[..]));
    let donated = donated.first().expect("a descriptor");
    assert_eq!(rustix::io::write(donated, b"x"), Err(rustix::io::Errno::BADF), "it reads only, too");
    assert!(served.client.open(served.root, 0).is_ok());
}

/// Row B19.
#[test]
fn host_sockets_are_always_seen_but_opened_connected_and_bound_only_as_policy_says() {
    for (policy, may_open, may_create) in
        [("none", false, false), ("open", true, false), ("create", false, true), ("all", true, true)]
    {
        let mut listener = None;
        let served = Served::with(&[&format!("--host-uds={policy}")], |dir| {
            listener = Some(UnixListener::bind(dir.join("s")).expect("a socket"));
        });
        let socket = served.client.walk_to(served.root, "s");
        assert_eq!(served.client.fstat(socket).expect("stat").mode.file_type(), Some(FileType::Socket));
        assert_eq!(served.client.walk_stat(served.root, &["s"]).map(|stats| stats.len()), Ok(1), "{policy}");

        // What a host says to opening a socket.
        let opened = if may_open { Errno::ENXIO } else { Errno::EPERM };
        assert_eq!(served.client.open(socket, 0).map(|_| ()), Err(opened), "open, {policy}");
        let connected = served.client.connect(socket, STREAM).map(drop);
        assert_eq!(connected, if may_open { Ok(()) } else { Err(Errno::EPERM) }, "connect, {policy}");
        let bound = served.client.bind(new_in(served.root, FileType::Socket, 0o755), STREAM, "new").map(drop);
        assert_eq!(bound, if may_create { Ok(()) } else { Err(Errno::EPERM) }, "bind, {policy}");
        assert_eq!(served.path().join("new").exists(), may_create, "{policy}");
    }
}

/// Row B19.
#[test]
fn host_fifos_are_always_seen_but_opened_only_as_policy_says() {
    for (policy, opened) in [("none", Err(Errno::EPERM)), ("open", Ok(1))] {
        let served = Served::with(&[&format!("--host-fifo={policy}")], |dir| fifo(&dir.join("p")));
        let pipe = served.client.walk_to(served.root, "p");
        assert_eq!(served.client.fstat(pipe).expect("stat").mode.file_type(), Some(FileType::Fifo));
        assert_eq!(served.client.open(pipe, 0).map(|(_, fds)| fds.len()), opened, "{policy}");
    }
}

/// Row B25. The sandbox makes its own where the server says exactly this.
#[test]
fn a_fifo_a_socket_and_a_device_are_not_made_and_the_answer_is_exactly_eperm() {
    let served = Served::with(&["--host-uds=all", "--host-fifo=open"], nothing);
    let special = [FileType::Fifo, FileType::Socket, FileType::BlockDevice];
    for file_type in special {
        let made = served.client.mknod(new_in(served.root, file_type, 0o644), (0, 0), "x");
        assert_eq!(made.map(|_| ()), Err(Errno::EPERM), "{file_type:?}");
    }
    assert_eq!(fs::read_dir(served.path()).expect("the root").count(), 0);
}

/// Row B26.
#[test]
fn mknod_makes_a_regular_file_with_exactly_the_mode_that_was_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::started(dir.path(), &[], |command| child::umask(command, 0o077));
    for permissions in [0o644, 0o777, 0o000, 0o4755, 0o2711, 0o1666] {
        let name = format!("f{permissions:o}");
        let mode = FileMode::new(FileType::Regular, permissions);
        let child = served.client.mknod(with_mode(&served, mode), (0, 0), &name).expect("mknod");
        assert_eq!(child.stat.mode, mode, "{permissions:o}");
        let host = fs::symlink_metadata(dir.path().join(&name)).expect("the file").permissions().mode();
        assert_eq!(host, u32::from(mode.0), "{permissions:o}");
    }
    for mode in [FileMode(0o644), FileMode::new(FileType::Directory, 0o755), FileMode::new(FileType::Symlink, 0o777)] {
        assert_eq!(
            served.client.mknod(with_mode(&served, mode), (0, 0), "x").map(|_| ()),
            Err(Errno::EPERM),
            "{mode:?}"
        );
    }
    assert!(!dir.path().join("x").exists());
}

/// A creation prefix with any mode, sensible or not.
fn with_mode(served: &Served, mode: FileMode) -> CreateCommon {
    CreateCommon::new(served.root, Uid::NONE, Gid::NONE, mode)
}

/// Row B27.
#[test]
fn an_overlay_whiteout_is_the_only_device_that_is_made() {
    makes_whiteouts_only(&Served::new());
}

/// Row B27.
#[test]
fn a_gofer_without_rights_makes_overlay_whiteouts_too() {
    if can_be_nobody() {
        makes_whiteouts_only(&Served::by_nobody(&[], nothing));
    }
}

fn makes_whiteouts_only(served: &Served) {
    let device = new_in(served.root, FileType::CharDevice, 0o600);
    match served.client.mknod(device, (0, 0), "whiteout") {
        Ok(child) => assert_eq!(child.stat.mode.file_type(), Some(FileType::CharDevice)),
        // The kernel lets anyone make it since 5.8, but for user namespaces of some containers.
        Err(errno) => return say::skipped(format_args!("this host makes no whiteouts: {errno}")),
    }
    let host = fs::symlink_metadata(served.path().join("whiteout")).expect("the device");
    assert!(host.file_type().is_char_device() && host.rdev() == 0);
    for number in [(1, 3), (0, 1), (1, 0), (u32::MAX, u32::MAX)] {
        assert_eq!(served.client.mknod(device, number, "x").map(|_| ()), Err(Errno::EPERM), "{number:?}");
    }
    let block = new_in(served.root, FileType::BlockDevice, 0o600);
    assert_eq!(served.client.mknod(block, (0, 0), "x").map(|_| ()), Err(Errno::EPERM));
    assert!(!served.path().join("x").exists());
}
