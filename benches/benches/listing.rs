//! What does a listing cost beside a bare `getdents64(2)` loop?
//!
//! Directories of 10,000 and of 100,000 empty files, listed through a channel by the client library, and by the bare loop
//! with the 32 KiB buffer of the C library; in turns, on one CPU. How many calls of the host a listing makes is counted
//! by `strace`, where it is installed.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use gofer::{Limits, Policy, Server};
use gofer_benches::interleave::{self, Plan};
use gofer_benches::pin;
use gofer_protocol::client::{Client, Options};
use rustix::fs::{Mode, OFlags, RawDir};

/// Samples for a ratio; a sample is one listing.
const ROUNDS: usize = 21;

fn main() {
    // `cargo bench` passes --bench, and a filter that does not concern this one.
    let cpu = pin::to_one_cpu().expect("one CPU");
    println!("CPU {cpu}, ns per listing       ours      bare   ratio  [95 % interval]");
    for entries in [10_000_u32, 100_000] {
        let dir = tempfile::tempdir().expect("a directory");
        for number in 0..entries {
            File::create(dir.path().join(format!("entry-{number:06}"))).expect("a file");
        }
        let server = Server::new().expect("a server");
        let root = server.root(dir.path()).expect("a root");
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        drop(server.connect(theirs.into(), root, Policy::default(), Limits::default()).expect("a thread"));
        let client = Client::over(ours, &Options { channels: 1 }).expect("a client");

        let expected = usize::try_from(entries).expect("a small number");
        let through_server = || assert_eq!(list(&client), expected);
        let bare = || assert_eq!(bare_list(dir.path()), expected);
        let comparison = interleave::run(Plan { rounds: ROUNDS, calls: 1 }, through_server, bare);
        let per_entry = |ns: f64| ns / f64::from(entries) / 1e3;
        println!("{entries:6} entries  {comparison}");
        println!(
            "                 {:.3} us an entry through the server, {:.3} us bare",
            per_entry(comparison.median_a),
            per_entry(comparison.median_b)
        );
        count_host_calls(&client, entries);
    }
}

fn list(client: &Client) -> usize {
    let root = client.lookup(b"/").expect("the root");
    root.read_dir().expect("an open directory").map(|entry| entry.expect("an entry")).count()
}

fn bare_list(path: &Path) -> usize {
    let dir = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let dir = dir.expect("the directory");
    let mut buffer = vec![MaybeUninit::uninit(); 32 << 10];
    let mut entries = RawDir::new(&dir, &mut buffer);
    let mut count = 0;
    while let Some(entry) = entries.next() {
        let entry = entry.expect("an entry");
        count += usize::from(!matches!(entry.file_name().to_bytes(), b"." | b".."));
    }
    count
}

/// Lists once under strace, and prints the calls that concern files.
fn count_host_calls(client: &Client, entries: u32) {
    let output = std::env::temp_dir().join(format!("gofer-listing-{}", std::process::id()));
    let pid = std::process::id().to_string();
    let strace = Command::new("strace")
        .args(["-f", "-c", "-e", "trace=%file,%desc", "-p", &pid, "-o"])
        .arg(&output)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut strace) = strace else {
        println!("                 SKIPPED: counting host calls: strace is not installed");
        return;
    };
    std::thread::sleep(std::time::Duration::from_secs(1));
    list(client);
    let interrupt = rustix::process::Pid::from_child(&strace);
    rustix::process::kill_process(interrupt, rustix::process::Signal::INT).expect("strace runs");
    strace.wait().expect("strace ends");
    let table = fs::read_to_string(&output).unwrap_or_default();
    let _ = fs::remove_file(&output);
    // strace -c: % time, seconds, usecs/call, calls, (errors,) syscall.
    let calls = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let count: u32 = fields.get(3)?.parse().ok()?;
        Some(format!("{} {count}", fields.last()?))
    });
    let calls: Vec<_> = calls.filter(|call| !call.starts_with("total")).collect();
    println!("                 host calls for {entries} entries: {}", calls.join(", "));
}
