//! Memory that the gofer may take: idle, and for each file that a client holds.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use gofer_integration::child::{as_nobody, can_be_nobody};
use gofer_integration::mounts::{Mounted, in_private_namespace};
use gofer_integration::vm::{self, Vm};
use gofer_integration::{Ask, Gofer, Served, say};
use gofer_protocol::FdId;

/// Bytes of private memory for a file beside its host descriptor: node and control descriptor, name of up to 32 bytes.
const TRACKED_FILE: u64 = 256;

/// KiB of private memory for an idle gofer with one mount.
const IDLE: u64 = 192;

/// Descriptors that a server needs for itself, and some.
const OWN: u64 = 64;

/// A million files take minutes: this many unless `GOFER_TRACKED` says otherwise.
const MOST: u64 = 100_000;

/// What the virtual machine is for: more files than the limits of many hosts allow.
const MACHINE_FILES: u64 = 300_000;

#[test]
fn an_idle_gofer_keeps_to_its_budget() {
    let served = Served::new();
    served.client.fstat(served.root).expect("stat");
    let (anonymous, threads) = (served.gofer.anonymous_kib(), served.gofer.threads());
    let binary = Gofer::binary();
    say::measured(format_args!("idle, {}: {anonymous} KiB of private memory, {threads} threads", binary.display()));
    // Other builds are larger, and so are their stacks.
    if binary.iter().any(|part| part == "release" || part == "dist") {
        assert!(anonymous <= IDLE, "{anonymous} KiB");
    }
}

#[test]
fn each_of_ten_thousand_tracked_files_takes_no_more_than_its_budget() {
    in_private_namespace(|| {
        let tmpfs = room();
        track(tmpfs.path(), &Served::at(tmpfs.path(), &[]), 10_000);
    });
}

#[test]
fn each_tracked_file_takes_no_more_than_its_budget_at_the_machines_limit_of_descriptors() {
    if can_be_nobody() {
        // Whom the machine's hard limit binds; root's gofer may raise it.
        at_the_limit(|path| Served::started(path, &[], as_nobody));
    }
}

#[test]
fn each_tracked_file_takes_no_more_than_its_budget_at_the_highest_limit_that_can_be_had() {
    at_the_limit(|path| Served::at(path, &[]));
}

fn at_the_limit(serve: impl FnOnce(&Path) -> Served + Send) {
    in_private_namespace(|| {
        let tmpfs = room();
        let served = serve(tmpfs.path());
        let most = std::env::var("GOFER_TRACKED").map_or(MOST, |count| count.parse().expect("a number"));
        track(tmpfs.path(), &served, most.min(served.gofer.descriptor_limit() - OWN));
    });
}

#[test]
fn each_of_300_000_tracked_files_takes_no_more_than_its_budget_in_a_virtual_machine() {
    if !say::long() {
        return say::skipped_by_choice("it takes minutes: GOFER_LONG=1 runs it");
    }
    if let Err(error) = vm::available() {
        return say::skipped(error);
    }
    // This very test runs there again, with root's right to raise limits.
    let test = std::env::current_exe().expect("the test's own path");
    let outcome = Vm::new(env!("CARGO_BIN_EXE_vm-init"))
        .file(test, "/bin/budget")
        .file(Gofer::binary(), "/bin/release/gofer")
        .env("GOFER_BINARY", "/bin/release/gofer")
        .env("GOFER_TRACKED", &MACHINE_FILES.to_string())
        .memory_mib(3072)
        .timeout(Duration::from_secs(1200))
        .run([
            "/bin/budget",
            "--exact",
            "each_tracked_file_takes_no_more_than_its_budget_at_the_highest_limit_that_can_be_had",
        ])
        .unwrap_or_else(|error| panic!("{error}"));
    let report = outcome.output.iter().find(|line| line.contains(&format!("{MACHINE_FILES} tracked files")));
    say::measured(format_args!("{report:?}, {:.0} s in the machine", outcome.elapsed.as_secs_f64()));
    assert_eq!(outcome.status, 0);
    assert!(report.is_some(), "{:?}", outcome.output);
}

fn room() -> Mounted {
    Mounted::tmpfs("mode=755,size=100%,nr_inodes=0")
}

/// 32 bytes.
fn name(number: u64) -> String {
    format!("file-{number:027}")
}

/// Makes `count` files in `dir`, holds them all, and looks at what each of them takes.
fn track(dir: &Path, served: &Served, count: u64) {
    for number in 0..count {
        File::create(dir.join(name(number))).expect("a file");
    }
    // What the first requests warm up is not the files'.
    let warm = served.client.walk_to(served.root, &name(0));
    served.client.close(&[warm]);
    let before = served.gofer.anonymous_kib();
    let held: Vec<FdId> = (0..count).map(|number| served.client.walk_to(served.root, &name(number))).collect();
    assert!(served.descriptors() as u64 >= count);
    let after = served.gofer.anonymous_kib();
    let each = (after - before) * 1024 / count;
    for some in held.chunks(10_000) {
        served.client.close(some);
    }
    assert!((served.descriptors() as u64) < OWN);
    let left = served.gofer.anonymous_kib();
    say::measured(format_args!(
        "{count} tracked files: {each} bytes each; {before} KiB before, {after} with them, {left} after"
    ));
    assert!(each <= TRACKED_FILE, "{each} bytes for each of {count} files");
}
