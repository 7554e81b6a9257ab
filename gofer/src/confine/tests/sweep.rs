//! Every message that is served, over both transports, and what else a server does, under the filter.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use gofer::{HostFifo, HostSockets, Limits, Policy, Server};
use gofer_protocol::client::{Client, Options};
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{CreateCommon, FileMode, FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::fs::{Mode, OFlags};

use super::super::Filter;
use super::{scenario, survived};

const DIR: &str = "GOFER_TEST_DIR";
const STREAM: u32 = 1;
const ME: (Uid, Gid) = (Uid::NONE, Gid::NONE);

/// The scenario: serves the client at standard input until it leaves.
pub(super) fn serve(filter: &Filter, host_sockets: HostSockets) {
    let dir = std::env::var(DIR).expect("a directory");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptors = rustix::fs::open("/proc/self/fd", flags, Mode::empty()).expect("/proc/self/fd");
    let server = Server::confined(descriptors, File::open("/proc/self/mountinfo").expect("mountinfo"));
    let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a descriptor");
    let policy = Policy { host_sockets, host_fifo: HostFifo::Open, donate_mount_point: true, ..Policy::default() };
    rustix::process::umask(Mode::from_raw_mode(0o77));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.stand().expect("a place");
            filter.seal().expect("a filter");
            let root = server.mount_at(Path::new(&dir)).expect("a mount point");
            server.connect(socket, root, policy, Limits::default()).expect("a thread").wait();
        });
    });
}

/// The scenario: what a server does beside serving.
pub(super) fn chores(filter: &Filter) {
    filter.seal().expect("a filter");
    for _ in 0..100 {
        std::thread::spawn(|| std::hint::black_box(vec![1_u8; 100_000])).join().expect("a thread ends");
    }
    let mut large = vec![1_u8; 1 << 20];
    large.resize(64 << 20, 2);
    large.shrink_to(1 << 10);
    drop(std::hint::black_box(large));
    gofer::memory::give_back();
    std::thread::sleep(std::time::Duration::from_millis(1));
    let (_, waiter) = std::sync::mpsc::channel::<()>();
    let _ = waiter.recv_timeout(std::time::Duration::from_millis(1));
    let maps: Vec<std::collections::HashMap<u32, u32>> = (0..3).map(|n| [(n, n)].into()).collect();
    eprintln!("log lines are written: {}", maps.len());
    let panicked = std::thread::Builder::new().name("panics".into()).spawn(|| panic!("on purpose")).expect("a thread");
    assert!(panicked.join().is_err());
    assert!(std::panic::catch_unwind(|| panic!("and is caught")).is_err());
}

#[test]
fn threads_allocations_log_lines_and_panics_work_under_the_filter() {
    let output = scenario("chores", "none").output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(survived(output.status), "{:?}: {said}", output.status);
    assert!(said.contains("log lines are written: 3") && said.contains("on purpose") && said.contains("backtrace"));
}

#[test]
fn every_message_is_served_under_the_filter_over_both_transports() {
    for channels in [0, 2] {
        for policy in ["all", "identities"] {
            with_served(policy, channels, |client, dir| {
                files(client, dir);
                names(client, dir);
                attributes(client, dir);
                sockets(client, dir, policy == "identities");
            });
        }
    }
}

#[test]
fn what_the_policy_forbids_is_refused_and_kills_nobody() {
    for channels in [0, 2] {
        with_served("none", channels, |client, dir| {
            let root = client.root().control_fd;
            let listener = std::os::unix::net::UnixListener::bind(dir.join("there")).expect("bind");
            let create = create(root, FileType::Socket, 0o700);
            assert_eq!(
                client.bind_at(create, STREAM, b"s").map(drop).map_err(|error| error.errno()),
                Err(Errno::EPERM)
            );
            let there = control(client, root, b"there");
            let refused = client.connect_to(there, STREAM).map(drop).map_err(|error| error.errno());
            assert_eq!(refused, Err(Errno::EPERM));
            let refused = client.connect_with_creds(there, STREAM, Uid(7), Gid(7)).map(drop);
            assert_eq!(refused.map_err(|error| error.errno()), Err(Errno::EPERM));
            assert!(client.fstat(there).is_ok(), "it lives");
            drop(listener);
        });
    }
}

fn with_served(policy: &str, channels: usize, run: impl Fn(&Client, &Path)) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().canonicalize().expect("a path");
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = scenario("serve", policy);
    command.env(DIR, &path).stdin(Stdio::from(OwnedFd::from(theirs))).stderr(Stdio::piped());
    let server = command.spawn().expect("run");
    // It holds the server's end of the connection.
    drop(command);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let client = Client::over(ours, &Options { channels }).expect("mount");
        assert_eq!(client.channels(), channels);
        run(&client, &path);
    }));
    let output = server.wait_with_output().expect("it ends");
    assert!(survived(output.status), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn create(dir: FdId, file_type: FileType, mode: u16) -> CreateCommon {
    CreateCommon::new(dir, ME.0, ME.1, FileMode::new(file_type, mode))
}

fn control(client: &Client, dir: FdId, name: &[u8]) -> FdId {
    client.walk(dir, &[name]).expect("walk").inodes.first().expect("it is there").control_fd
}

/// Mount, OpenAt, OpenCreateAt, PWrite, PRead, FSync, FAllocate, Close, Getdents64, FStatFS.
fn files(client: &Client, dir: &Path) {
    let mounted = client.mount().expect("mount");
    assert!(mounted.donated.is_some());
    let root = client.root().control_fd;
    let new = client.open_create_at(create(root, FileType::Regular, 0o666), 2, b"file").expect("create");
    let mode = dir.join("file").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o666, "the umask is 0");
    let data = vec![b'x'; 600_000];
    assert_eq!(client.pwrite(new.open_fd, 0, &data).expect("write"), data.len());
    let mut read = vec![0; data.len()];
    assert_eq!(client.pread(new.open_fd, 0, &mut read).expect("read"), data.len());
    assert!(read == data);
    client.fsync(&[new.open_fd]).expect("sync");
    client.fallocate(new.open_fd, 0, 0, 1 << 20).expect("allocate");
    assert_eq!(client.fallocate(new.open_fd, 1, 0, 1).map_err(|error| error.errno()), Err(Errno::EOPNOTSUPP));
    let opened = client.open_at(new.child.control_fd, 0o1001).expect("open and truncate");
    let listed = client.open_at(root, 0).expect("open a directory");
    assert_eq!(client.getdents64(listed.open_fd, 4096).expect("list").len(), 1);
    assert!(client.fstat_fs(root).expect("statfs").block_size > 0);
    client.close(&[opened.open_fd, listed.open_fd, new.open_fd, mounted.root.control_fd]).expect("close");
}

/// MkdirAt, MknodAt, SymlinkAt, ReadLinkAt, LinkAt, RenameAt, RenameAt2, UnlinkAt, Walk, WalkStat.
fn names(client: &Client, _: &Path) {
    let root = client.root().control_fd;
    let below = client.mkdir_at(create(root, FileType::Directory, 0o777), b"dir").expect("mkdir").control_fd;
    let node = client.mknod_at(create(below, FileType::Regular, 0o600), 0, 0, b"node").expect("mknod").control_fd;
    let fifo = client.mknod_at(create(below, FileType::Fifo, 0o600), 0, 0, b"fifo");
    assert_eq!(fifo.map(drop).map_err(|error| error.errno()), Err(Errno::EPERM));
    let link = client.symlink_at(below, ME.0, ME.1, b"link", b"target").expect("symlink").control_fd;
    assert_eq!(client.read_link_at(link).expect("readlink"), b"target");
    client.link_at(below, node, b"again").expect("link");
    client.rename_at(below, b"again", root, b"moved").expect("rename");
    client.rename_at2(below, b"node", root, b"moved", libc::RENAME_EXCHANGE).expect("exchange");
    assert_eq!(client.walk_stat(root, &[b"dir", b"node"]).expect("stat").len(), 2);
    client.unlink_at(below, 0, b"node").expect("unlink");
    client.unlink_at(below, 0, b"link").expect("unlink");
    client.unlink_at(root, 0x200, b"dir").expect("rmdir");
}

/// FStat, SetStat, and extended attributes. Of the latter it only counts that they are answered: file systems differ.
fn attributes(client: &Client, _: &Path) {
    let root = client.root().control_fd;
    let file = control(client, root, b"file");
    let stat = client.fstat(file).expect("stat");
    let time = Timespec { seconds: 1, nanoseconds: 2 };
    for (mask, fd) in [
        (StatxMask::MODE, file),
        (StatxMask::SIZE, file),
        (StatxMask::UID.or(StatxMask::GID), file),
        (StatxMask::ATIME.or(StatxMask::MTIME), file),
        (StatxMask::ATIME, client.symlink_at(root, ME.0, ME.1, b"l", b"t").expect("symlink").control_fd),
    ] {
        let (uid, gid) = (Uid(stat.uid), Gid(stat.gid));
        let request = SetStatRequest { fd, mask, mode: 0o640, uid, gid, size: 3, atime: time, mtime: time };
        assert_eq!(client.set_stat(&request).expect("set").failure_mask.0, 0, "{mask:?}");
    }
    for fd in [root, file] {
        let _ = client.fset_xattr(fd, b"user.a", b"value", 0);
        let _ = client.fget_xattr(fd, b"user.a", 64);
        let _ = client.flist_xattr(fd, 64);
        let _ = client.fremove_xattr(fd, b"user.a");
    }
    assert!(client.fstat(file).is_ok());
}

/// BindAt, Listen, Accept, Connect, ConnectWithCreds.
fn sockets(client: &Client, _: &Path, identities: bool) {
    let root = client.root().control_fd;
    let bound = client.bind_at(create(root, FileType::Socket, 0o777), STREAM, &[b's'; 100]).expect("bind");
    client.listen(bound.bound_fd, 4).expect("listen");
    let mut peer = UnixStream::from(client.connect_to(bound.child.control_fd, STREAM).expect("connect"));
    let mut accepted = UnixStream::from(client.accept(bound.bound_fd).expect("accept").donated);
    accepted.set_nonblocking(false).expect("wait");
    peer.write_all(b"!").expect("send");
    accepted.read_exact(&mut [0]).expect("receive");
    assert!(client.connect_with_creds(bound.child.control_fd, STREAM, ME.0, ME.1).is_ok());
    let under_others = client.connect_with_creds(bound.child.control_fd, STREAM, Uid(7), Gid(8));
    if rustix::process::geteuid().is_root() && identities {
        assert!(under_others.is_ok(), "{under_others:?}");
        let accepted = client.accept(bound.bound_fd).and_then(|_| client.accept(bound.bound_fd)).expect("accept");
        let peer = rustix::net::sockopt::socket_peercred(&accepted.donated).expect("a peer");
        assert_eq!((peer.uid.as_raw(), peer.gid.as_raw()), (7, 8));
    } else {
        assert_eq!(under_others.map(drop).map_err(|error| error.errno()), Err(Errno::EPERM));
    }
}
