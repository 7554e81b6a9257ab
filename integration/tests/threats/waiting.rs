//! What a server could be made to wait for: a FIFO's peer, the holder of a lease, a terminal.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use gofer_integration::plant::node;
use gofer_integration::{Ask, Lease, Served, change, fifo, over_both};
use gofer_protocol::Errno;
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::StatxMask;
use rustix::fs::{FileType, OFlags, fcntl_getfl};

/// More than any request takes here, and less than the patience of the client.
const PROMPT: Duration = Duration::from_secs(10);

/// Threat: open FIFOs that block.
#[test]
fn a_fifo_without_a_peer_opens_at_once_or_fails_at_once() {
    over_both(
        &["--host-fifo", "open"],
        |dir| fifo(&dir.join("p")),
        |t| {
            let fifo = t.client.walk_to(t.root, "p");
            let start = Instant::now();
            let (reader, fds) = t.client.open(fifo, 0).expect("a reader needs no writer");
            assert!(
                fcntl_getfl(&fds[0]).expect("flags").contains(OFlags::NONBLOCK),
                "the client must not block on it either"
            );
            t.client.close(&[reader]);
            drop(fds);
            assert_eq!(t.client.open(fifo, 1).err(), Some(Errno::ENXIO), "a writer without a reader");
            t.client.rename((t.root, "p"), (t.root, "q")).expect("a rename runs meanwhile");
            t.client.rename((t.root, "q"), (t.root, "p")).expect("a rename runs meanwhile");
            assert!(start.elapsed() < PROMPT);
        },
    );
}

/// Threat: open devices that block: a terminal whose line is not connected waits for it, and may become ours.
#[test]
fn a_terminal_opens_without_waiting_and_without_becoming_ours() {
    over_both(
        &["--character-device-policy", "passthrough"],
        |dir| {
            node(&dir.join("tty"), FileType::CharacterDevice, (4, 64));
        },
        |t| {
            let tty = t.client.walk_to(t.root, "tty");
            let start = Instant::now();
            // There may be no such line here. Then there is no waiting for it either.
            if let Ok((open, fds)) = t.client.open(tty, 2) {
                assert!(fcntl_getfl(&fds[0]).expect("flags").contains(OFlags::NONBLOCK));
                t.client.close(&[open]);
            }
            assert!(start.elapsed() < PROMPT);
            let stat = fs::read_to_string(format!("/proc/{}/stat", t.gofer().pid())).expect("status");
            let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
            let ours = fs::read_to_string("/proc/self/stat").expect("status");
            let ours: Vec<_> = ours.rsplit(')').next().expect("fields").split_whitespace().collect();
            assert_eq!(fields[4], ours[4], "the controlling terminal is what it was");
        },
    );
}

/// Threat: locks that block: a lease that another process holds.
#[test]
fn a_lease_of_another_process_makes_opens_fail_and_nothing_wait() {
    over_both(
        &[],
        |dir| fs::write(dir.join("f"), "hello").expect("a file"),
        |t| {
            let path = t.host("f");
            let file = t.client.walk_to(t.root, "f");
            let lease = Lease::take(open_to_lease(&path)).expect("a lease");
            let start = Instant::now();
            assert_eq!(t.client.open(file, 2).err(), Some(Errno::EAGAIN));
            assert_eq!(t.client.open(file, 0).err(), Some(Errno::EAGAIN));
            let size =
                t.client.set_stat(&SetStatRequest { size: 1, ..change(file, StatxMask::SIZE) }).expect("a reply");
            assert_eq!((size.failure_mask, size.failure_errno), (StatxMask::SIZE, Errno::EAGAIN.raw()));
            t.client.rename((t.root, "f"), (t.root, "g")).expect("a rename runs meanwhile");
            t.client.rename((t.root, "g"), (t.root, "f")).expect("a rename runs meanwhile");
            assert!(start.elapsed() < PROMPT);
            lease.give_back().expect("the lease is still ours");
            let (open, _) = t.client.open(file, 2).expect("without the lease it opens");
            t.client.close(&[open]);
            assert_eq!(fs::read(&path).expect("a file"), b"hello");
        },
    );
}

/// Threat: locks that block: a file that another process has locked.
#[test]
fn a_locked_file_is_read_and_written_all_the_same() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "hello").expect("a file"));
    let locked = open_to_lease(&served.path().join("f"));
    locked.lock().expect("a lock");
    let file = served.client.walk_to(served.root, "f");
    let (open, _) = served.client.open(file, 2).expect("open");
    assert_eq!(served.client.pwrite(open, 0, b"x"), Ok(1));
    assert_eq!(served.client.pread(open, 0, 5).as_deref(), Ok(&b"xello"[..]));
}

fn open_to_lease(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("a file")
}
