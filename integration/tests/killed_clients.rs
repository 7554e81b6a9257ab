//! Clients that are killed in the middle of whatever they ask for. `GOFER_KILLS` says how many; 100 by default.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gofer_integration::{Ask, Listening, Random, Raw, eventually, fifo};
use gofer_protocol::FdId;

/// Clients that are killed before anything is measured: the first of them find buffers and tables not yet made.
const WARM_UP: u64 = 20;

/// Must show: others are served, and nothing is left behind.
#[test]
fn killed_clients_leave_nothing_behind_and_disturb_no_one() {
    let kills = std::env::var("GOFER_KILLS").map_or(100, |text| text.parse().expect("a number of kills"));
    let listening = Listening::with(&["--host-uds", "all", "--host-fifo", "open"], tree);
    let (steady, root) = listening.client();
    let steady_channel = steady.on_channel();
    (0..WARM_UP).for_each(|seed| kill_one(listening.socket(), 1_000_000 + seed));
    assert!(eventually(|| threads_of_clients_are_gone(&listening)));
    let before = Footprint::of(&listening);

    let mut slowest = Duration::ZERO;
    for seed in 0..kills {
        kill_one(listening.socket(), seed);
        slowest = slowest.max(is_served(&steady, root, seed));
        assert!(steady_channel.fstat(root).is_ok());
    }
    println!("{kills} kills; the steady client waited {slowest:?} at most");
    assert!(slowest < Duration::from_secs(10), "the others are disturbed");

    assert!(eventually(|| threads_of_clients_are_gone(&listening)), "{} threads", listening.gofer.threads());
    let after = Footprint::of(&listening);
    println!("before {before:?}, after {after:?}");
    assert_eq!((after.descriptors, after.threads), (before.descriptors, before.threads));
    // The allocator may have kept a page here and there.
    assert!(after.anonymous_kib <= before.anonymous_kib + 256, "memory: {before:?}, {after:?}");
    assert!(after.shared_kib <= before.shared_kib, "memory: {before:?}, {after:?}");
}

fn tree(dir: &Path) {
    for name in ["a", "b"] {
        fs::create_dir_all(dir.join(name).join("c/d")).expect("directories");
        fs::write(dir.join(name).join("big"), vec![7; 2 << 20]).expect("a file");
        fifo(&dir.join(name).join("fifo"));
    }
    fs::write(dir.join("big"), vec![7; 2 << 20]).expect("a file");
}

/// Starts a client and kills it once it has asked for a while.
fn kill_one(socket: &Path, seed: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_random-client"))
        .arg(socket)
        .arg(seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a client");
    wait_until_ready(&mut child);
    std::thread::sleep(Duration::from_micros(Random::new(seed).below(30_000)));
    assert!(child.try_wait().expect("status").is_none(), "the client ended by itself");
    child.kill().expect("killed");
    child.wait().expect("status");
}

fn wait_until_ready(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n", "the client was not served");
}

/// How long the steady client waits for requests of every guarantee.
fn is_served(steady: &Raw, root: FdId, seed: u64) -> Duration {
    let start = Instant::now();
    let (name, renamed) = (format!("steady-{seed}"), format!("steady-{seed}-renamed"));
    let (child, open, fds) = steady.create(root, &name).expect("create");
    assert_eq!((fds.len(), steady.pwrite(open, 0, b"steady")), (1, Ok(6)));
    steady.rename((root, &name), (root, &renamed)).expect("rename");
    assert_eq!(steady.pread(open, 0, 6).as_deref(), Ok(&b"steady"[..]));
    steady.unlink(root, &renamed).expect("unlink");
    steady.close(&[child.control_fd, open]);
    start.elapsed()
}

/// Main thread, the steady client's socket and its channel.
fn threads_of_clients_are_gone(listening: &Listening) -> bool {
    listening.gofer.threads() == 3
}

/// What the server takes.
#[derive(Debug)]
struct Footprint {
    descriptors: usize,
    threads: u64,
    anonymous_kib: u64,
    shared_kib: u64,
}

impl Footprint {
    fn of(listening: &Listening) -> Self {
        let gofer = &listening.gofer;
        let descriptors = gofer.descriptors().len();
        Self {
            descriptors,
            threads: gofer.threads(),
            anonymous_kib: gofer.anonymous_kib(),
            shared_kib: gofer.shared_kib(),
        }
    }
}
