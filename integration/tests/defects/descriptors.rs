//! D15: requests that leave a descriptor behind, in success or on the way out of an error.

use std::fs;

use gofer_integration::raw::string;
use gofer_integration::{Client, Requests, Served, each_way};
use gofer_protocol::codec::Padding;
use gofer_protocol::message::{ConnectWithCredsRequest, MknodAtRequest};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::fs::{CWD, Mode, mknodat};

/// How often each is repeated.
const TIMES: usize = 1000;

/// Defect D15: LinkAt leaks a descriptor each time.
#[test]
fn a_thousand_links_leave_no_descriptor_behind() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "").expect("a file"));
    let file = served.client.walk_to(served.root, "f");
    each_way(&served.client, |client| {
        let baseline = served.gofer.settled_descriptors();
        for _ in 0..TIMES {
            let linked = client.link(served.root, file, "l").expect("link");
            client.unlink(served.root, "l").expect("unlink");
            client.close(&[linked.control_fd]);
        }
        served.gofer.assert_descriptors(baseline, "leaked");
    });
}

/// What is there to ask for, in every way: the root, a file, a link, a FIFO, a socket and a directory that is full.
struct Things {
    root: FdId,
    file: FdId,
    link: FdId,
    fifo: FdId,
    socket: FdId,
}

fn things() -> (Served, Things) {
    let served = Served::with(&["--host-uds", "all", "--host-fifo", "open"], |dir| {
        fs::create_dir(dir.join("d")).expect("a directory");
        fs::write(dir.join("d/f"), "").expect("a file");
        fs::write(dir.join("f"), "").expect("a file");
        std::os::unix::fs::symlink("f", dir.join("l")).expect("a link");
        mknodat(CWD, dir.join("p"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
        // A socket that no one listens on.
        drop(std::os::unix::net::UnixListener::bind(dir.join("s")).expect("a socket"));
    });
    let (client, root) = (&served.client, served.root);
    let [file, link, fifo, socket] = ["f", "l", "p", "s"].map(|name| client.walk_to(root, name));
    (served, Things { root, file, link, fifo, socket })
}

/// Requests that fail, each with its errno.
fn failures(client: &dyn Client, is: &Things) -> Vec<(&'static str, Result<(), Errno>, Errno)> {
    let long = "x".repeat(256);
    let creds = ConnectWithCredsRequest { fd: is.socket, sock_type: 1, padding: Padding, uid: Uid(1), gid: Gid(1) };
    let create = gofer_integration::client::creation(is.root, FileType::Fifo, 0o600);
    let mknod = MknodAtRequest { create, minor: 0, major: 0, name: string("n") };
    vec![
        ("LinkAt of an existing name", client.link(is.root, is.file, "d").map(drop), Errno::EEXIST),
        ("LinkAt of a long name", client.link(is.root, is.file, &long).map(drop), Errno::ENAMETOOLONG),
        ("LinkAt in a file", client.link(is.file, is.file, "n").map(drop), Errno::ENOTDIR),
        ("OpenAt of a link", client.open(is.link, 0).map(drop), Errno::EINVAL),
        ("OpenAt of a socket", client.open(is.socket, 0).map(drop), Errno::ENXIO),
        ("OpenAt of a FIFO without a reader", client.open(is.fifo, 1).map(drop), Errno::ENXIO),
        ("OpenAt of a directory to write", client.open(is.root, 1).map(drop), Errno::EISDIR),
        ("OpenCreateAt", client.create(is.root, "f").map(drop), Errno::EEXIST),
        ("OpenCreateAt of a long name", client.create(is.root, &long).map(drop), Errno::ENAMETOOLONG),
        ("MkdirAt", client.mkdir(is.root, "d").map(drop), Errno::EEXIST),
        ("MknodAt of a FIFO", client.ask(&mknod).map(drop), Errno::EPERM),
        ("SymlinkAt", client.symlink(is.root, "l", "x").map(drop), Errno::EEXIST),
        ("BindAt", client.bind(is.root, "s").map(drop), Errno::EADDRINUSE),
        ("Connect", client.connect(is.socket).map(drop), Errno::ECONNREFUSED),
        ("ConnectWithCreds", client.ask(&creds).map(drop), Errno::EACCES),
        ("Walk through a file", client.walk(is.root, &[b"d", b"f", b"x"]).map(drop), Errno::ENOTDIR),
        ("Walk by a bad name", client.walk(is.root, &[b"d", b"f", b".."]).map(drop), Errno::EINVAL),
        ("WalkStat through a file", client.walk_stat(is.root, &[b"d", b"f", b"x"]).map(drop), Errno::ENOTDIR),
        ("RenameAt", client.rename((is.root, "none"), (is.root, "n")), Errno::ENOENT),
        ("UnlinkAt", client.rmdir(is.root, "d"), Errno::ENOTEMPTY),
    ]
}

/// Defect D15: error paths leak.
#[test]
fn requests_that_fail_leave_no_descriptor_behind() {
    let (served, things) = things();
    each_way(&served.client, |client| {
        let baseline = served.gofer.settled_descriptors();
        for _ in 0..TIMES / 10 {
            for (request, outcome, errno) in failures(client, &things) {
                assert_eq!(outcome, Err(errno), "{request}");
            }
        }
        served.gofer.assert_descriptors(baseline, "leaked");
    });
}

/// Defect D15: error paths leak, when the host runs out of descriptors half way: after the link, before its stat; after
/// the open, before the mandatory donation; and in every other request that needs more than one.
#[test]
fn requests_that_run_out_of_descriptors_half_way_leave_nothing_behind() {
    type Attempt = fn(&dyn Client, &Things) -> Result<(), Errno>;
    let attempts: [(&str, Attempt); 9] = [
        ("LinkAt", |client, is| client.link(is.root, is.file, "new").map(drop)),
        ("OpenAt of a file", |client, is| client.open(is.file, 2).map(drop)),
        ("OpenAt of a FIFO", |client, is| client.open(is.fifo, 2).map(drop)),
        ("OpenCreateAt", |client, is| client.create(is.root, "new").map(drop)),
        ("MkdirAt", |client, is| client.mkdir(is.root, "new").map(drop)),
        ("SymlinkAt", |client, is| client.symlink(is.root, "new", "x").map(drop)),
        ("BindAt", |client, is| client.bind(is.root, "new").map(drop)),
        ("Walk", |client, is| client.walk(is.root, &[b"d", b"f"]).map(drop)),
        ("WalkStat", |client, is| client.walk_stat(is.root, &[b"d", b"f"]).map(drop)),
    ];
    let (served, things) = things();
    each_way(&served.client, |client| {
        for (request, attempt) in attempts {
            let baseline = served.gofer.settled_descriptors();
            for spare in 0..4 {
                served.gofer.limit_descriptors(baseline + spare);
                let outcome = attempt(client, &things);
                served.gofer.limit_descriptors(10_000);
                if outcome.is_ok() {
                    // Enough: then it is there, and goes again.
                    let _ = client.unlink(things.root, "new").or_else(|_| client.rmdir(things.root, "new"));
                    break;
                }
                assert!(matches!(outcome, Err(Errno::EMFILE | Errno::ENOMEM)), "{request}: {outcome:?}");
                served.gofer.assert_descriptors(baseline, &format!("{request} with {spare} to spare"));
                let left = served.path().join("new").symlink_metadata().is_ok();
                assert!(!left, "{request} with {spare} to spare left a name behind");
            }
            let newest = client.walk(things.root, &[b"f"]).expect("walk").1[0].control_fd;
            client.close(&(newest.0 - 4..=newest.0).filter(|id| *id > things.socket.0).map(FdId).collect::<Vec<_>>());
            served.gofer.assert_descriptors(baseline, request);
        }
    });
}
