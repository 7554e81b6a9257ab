//! D15: requests that leave a descriptor behind, in success or on the way out of an error.

use std::fs;
use std::path::Path;

use gofer_integration::plant::socket_file;
use gofer_integration::{Ask, Exchange, Trial, fifo, new_in, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Gid, Uid};

/// How often each is repeated.
const TIMES: usize = 1000;

/// Defect D15: LinkAt leaks a descriptor each time.
#[test]
fn a_thousand_links_leave_no_descriptor_behind() {
    over_both(
        &[],
        |dir| fs::write(dir.join("f"), "").expect("a file"),
        |t| {
            let file = t.client.walk_to(t.root, "f");
            let baseline = t.descriptors();
            for _ in 0..TIMES {
                let linked = t.client.link(t.root, file, "l").expect("link");
                t.client.unlink(t.root, "l").expect("unlink");
                t.client.close(&[linked.control_fd]);
            }
            t.gofer().assert_descriptors(baseline, "leaked");
        },
    );
}

/// What is there to ask for, in every way: the root, a file, a link, a FIFO, a socket and a directory that is full.
struct Things {
    root: FdId,
    file: FdId,
    link: FdId,
    fifo: FdId,
    socket: FdId,
}

const FLAGS: &[&str] = &["--host-uds", "all", "--host-fifo", "open"];

fn plant(dir: &Path) {
    fs::create_dir(dir.join("d")).expect("a directory");
    fs::write(dir.join("d/f"), "").expect("a file");
    fs::write(dir.join("f"), "").expect("a file");
    std::os::unix::fs::symlink("f", dir.join("l")).expect("a link");
    fifo(&dir.join("p"));
    socket_file(&dir.join("s"));
}

impl Things {
    fn of(t: &Trial<'_>) -> Self {
        let [file, link, fifo, socket] = ["f", "l", "p", "s"].map(|name| t.client.walk_to(t.root, name));
        Self { root: t.root, file, link, fifo, socket }
    }
}

/// Requests that fail, each with its errno.
fn failures(client: &dyn Exchange, is: &Things) -> Vec<(&'static str, Result<(), Errno>, Errno)> {
    let long = "x".repeat(256);
    let fifo = new_in(is.root, FileType::Fifo, 0o600);
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
        ("MkdirAt", client.mkdir(new_in(is.root, FileType::Directory, 0o755), "d").map(drop), Errno::EEXIST),
        ("MknodAt of a FIFO", client.mknod(fifo, (0, 0), "n").map(drop), Errno::EPERM),
        ("SymlinkAt", client.symlink(is.root, "l", "x").map(drop), Errno::EEXIST),
        ("BindAt", client.bind(new_in(is.root, FileType::Socket, 0o755), 1, "s").map(drop), Errno::EADDRINUSE),
        ("Connect", client.connect(is.socket, 1).map(drop), Errno::ECONNREFUSED),
        ("ConnectWithCreds", client.connect_as(is.socket, 1, (Uid(1), Gid(1))).map(drop), Errno::EACCES),
        ("Walk through a file", client.walk(is.root, &["d", "f", "x"]).map(drop), Errno::ENOTDIR),
        ("Walk by a bad name", client.walk(is.root, &["d", "f", ".."]).map(drop), Errno::EINVAL),
        ("WalkStat through a file", client.walk_stat(is.root, &["d", "f", "x"]).map(drop), Errno::ENOTDIR),
        ("RenameAt", client.rename((is.root, "none"), (is.root, "n")), Errno::ENOENT),
        ("UnlinkAt", client.rmdir(is.root, "d"), Errno::ENOTEMPTY),
    ]
}

/// Defect D15: error paths leak.
#[test]
fn requests_that_fail_leave_no_descriptor_behind() {
    over_both(FLAGS, plant, |t| {
        let things = Things::of(t);
        let baseline = t.descriptors();
        for _ in 0..TIMES / 10 {
            for (request, outcome, errno) in failures(t.client, &things) {
                assert_eq!(outcome, Err(errno), "{request}");
            }
        }
        t.gofer().assert_descriptors(baseline, "leaked");
    });
}

/// Defect D15: error paths leak, when the host runs out of descriptors half way: after the link, before its stat; after
/// the open, before the mandatory donation; and in every other request that needs more than one.
#[test]
fn requests_that_run_out_of_descriptors_half_way_leave_nothing_behind() {
    type Attempt = fn(&dyn Exchange, &Things) -> Result<(), Errno>;
    let attempts: [(&str, Attempt); 9] = [
        ("LinkAt", |client, is| client.link(is.root, is.file, "new").map(drop)),
        ("OpenAt of a file", |client, is| client.open(is.file, 2).map(drop)),
        ("OpenAt of a FIFO", |client, is| client.open(is.fifo, 2).map(drop)),
        ("OpenCreateAt", |client, is| client.create(is.root, "new").map(drop)),
        ("MkdirAt", |client, is| client.mkdir(new_in(is.root, FileType::Directory, 0o755), "new").map(drop)),
        ("SymlinkAt", |client, is| client.symlink(is.root, "new", "x").map(drop)),
        ("BindAt", |client, is| client.bind(new_in(is.root, FileType::Socket, 0o755), 1, "new").map(drop)),
        ("Walk", |client, is| client.walk(is.root, &["d", "f"]).map(drop)),
        ("WalkStat", |client, is| client.walk_stat(is.root, &["d", "f"]).map(drop)),
    ];
    over_both(FLAGS, plant, |t| {
        let things = Things::of(t);
        for (request, attempt) in attempts {
            let baseline = t.descriptors();
            for spare in 0..4 {
                t.gofer().limit_descriptors(baseline + spare);
                let outcome = attempt(t.client, &things);
                t.gofer().limit_descriptors(10_000);
                if outcome.is_ok() {
                    // Enough: then it is there, and goes again.
                    let _ = t.client.unlink(things.root, "new").or_else(|_| t.client.rmdir(things.root, "new"));
                    break;
                }
                assert!(matches!(outcome, Err(Errno::EMFILE | Errno::ENOMEM)), "{request}: {outcome:?}");
                t.gofer().assert_descriptors(baseline, &format!("{request} with {spare} to spare"));
                let left = t.exists("new");
                assert!(!left, "{request} with {spare} to spare left a name behind");
            }
            let newest = t.client.walk(things.root, &["f"]).expect("walk").1[0].control_fd;
            t.client.close(&(newest.0 - 4..=newest.0).filter(|id| *id > things.socket.0).map(FdId).collect::<Vec<_>>());
            t.gofer().assert_descriptors(baseline, request);
        }
    });
}
