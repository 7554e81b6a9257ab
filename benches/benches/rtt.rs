//! What does the server add to a bare ping-pong that makes the same system call?
//!
//! FStat over a channel against a futex ping-pong, and over the socket against a socket-pair ping-pong; each bare one
//! makes one `statx(2)` for each request. Both sides on one CPU, in one process, in one run, in turns.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use criterion::Criterion;
use gofer::{Limits, Policy, Server};
use gofer_benches::interleave::{self, Plan};
use gofer_benches::pin;
use gofer_protocol::client::{Client, Options};
use gofer_protocol::transport::memory::WindowAllocator;
use gofer_protocol::transport::window::Window;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::thread::futex;

/// Samples for a ratio, and requests in each.
const PLAN: Plan = Plan { rounds: 101, calls: 2_000 };

fn main() {
    let cpu = pin::to_one_cpu().expect("one CPU");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    File::create(&path).expect("a file");

    let client = served(dir.path());
    let mut over_channel = client.over_channel();
    let mut over_socket = client.over_socket();
    let mut bare_futex = futex_ping_pong(&path);
    let mut bare_socket = socket_ping_pong(&path);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("rtt");
    group.bench_function("fstat/channel", |b| b.iter(&mut over_channel));
    group.bench_function("bare/futex", |b| b.iter(&mut bare_futex));
    group.bench_function("fstat/socket", |b| b.iter(&mut over_socket));
    group.bench_function("bare/socketpair", |b| b.iter(&mut bare_socket));
    group.finish();
    criterion.final_summary();

    println!("\nCPU {cpu}, ns per request     ours      bare   ratio  [95 % interval]");
    println!("channel / futex       {}  (at most 1.25)", interleave::run(PLAN, &mut over_channel, &mut bare_futex));
    println!("socket / socketpair   {}  (at most 1.35)", interleave::run(PLAN, &mut over_socket, &mut bare_socket));
}

/// A server on `dir` and one client for each transport.
fn served(dir: &Path) -> Clients {
    let server = Server::new().expect("a server");
    let root = server.root(dir).expect("a root");
    let connect = |channels| {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        // The connection ends with its client.
        drop(server.connect(theirs.into(), root.clone(), Policy::default(), Limits::default()).expect("a thread"));
        Client::over(ours, &Options { channels }).expect("a client")
    };
    Clients { channel: connect(1), socket: connect(0) }
}

struct Clients {
    channel: Client,
    socket: Client,
}

impl Clients {
    fn over_channel(&self) -> impl FnMut() + use<> {
        assert_eq!(self.channel.channels(), 1);
        fstat(self.channel.clone())
    }

    fn over_socket(&self) -> impl FnMut() + use<> {
        assert_eq!(self.socket.channels(), 0);
        fstat(self.socket.clone())
    }
}

fn fstat(client: Client) -> impl FnMut() {
    // Looked up, not the root: a look-up of the root would be another code path in no one's real use.
    let node = client.lookup(b"/file").expect("the file");
    move || {
        let stat = client.fstat(node.id()).expect("attributes");
        assert_eq!(stat.nlink, 1);
    }
}

/// The same shared memory and kind of futex as a channel, and nothing else.
fn futex_ping_pong(path: &Path) -> impl FnMut() + use<> {
    const CLIENT: u32 = 0;
    const SERVER: u32 = 1;
    let window = WindowAllocator::new(4096).allocate().expect("a window").window;
    let window = Arc::new(window);
    let file = open_path(path);
    let theirs = Arc::clone(&window);
    thread::spawn(move || {
        loop {
            wait_for(&theirs, SERVER);
            bare_statx(&file);
            hand_over(&theirs, CLIENT);
        }
    });
    move || {
        hand_over(&window, SERVER);
        wait_for(&window, CLIENT);
    }
}

fn hand_over(window: &Window, to: u32) {
    window.state().store(to, Ordering::Release);
    futex::wake(window.state(), futex::Flags::empty(), 1).expect("a wake-up");
}

fn wait_for(window: &Window, turn: u32) {
    while window.state().load(Ordering::Acquire) != turn {
        // Woken, or changed before it slept: look again.
        let _ = futex::wait(window.state(), futex::Flags::empty(), 1 - turn, None);
    }
}

/// Requests and replies as long as those of FStat.
fn socket_ping_pong(path: &Path) -> impl FnMut() + use<> {
    let (mut ours, mut theirs) = UnixStream::pair().expect("a socket pair");
    let file = open_path(path);
    thread::spawn(move || {
        let mut request = [0; 16];
        while theirs.read_exact(&mut request).is_ok() {
            bare_statx(&file);
            theirs.write_all(&[0; 152]).expect("a reader");
        }
    });
    move || {
        ours.write_all(&[0; 16]).expect("a reader");
        ours.read_exact(&mut [0; 152]).expect("a reply");
    }
}

fn open_path(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("the file")
}

fn bare_statx(file: impl AsFd) {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask).expect("attributes");
}
