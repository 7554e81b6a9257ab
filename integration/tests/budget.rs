//! Memory that the gofer may take: idle, and for each file that a client holds.

use std::fs::File;
use std::path::Path;

use gofer_integration::child::{as_nobody, can_be_nobody};
use gofer_integration::mounts::{Mounted, in_private_namespace, run};
use gofer_integration::process::eventually;
use gofer_integration::{Served, say};
use gofer_protocol::FdId;

/// Bytes of private memory for a file beside its host descriptor: node and control descriptor, name of up to 32 bytes.
const TRACKED_FILE: u64 = 256;

/// KiB of private memory for an idle gofer with one mount.
const IDLE: u64 = 192;

/// Descriptors that a server needs for itself, and some.
const OWN: u64 = 64;

/// Whether this is what is shipped: a debug build's code is larger, and so are its stacks.
const RELEASE: bool = !cfg!(debug_assertions);

#[test]
fn an_idle_gofer_keeps_to_its_budget() {
    let served = Served::new();
    served.client.fstat(served.root).expect("stat");
    let (anonymous, threads) = (served.gofer.anonymous_kib(), served.gofer.threads());
    let build = if RELEASE { "release" } else { "debug" };
    say::measured(format_args!("idle, {build} build: {anonymous} KiB of private memory, {threads} threads"));
    if RELEASE {
        assert!(anonymous <= IDLE, "{anonymous} KiB");
    }
}

#[test]
fn each_of_ten_thousand_tracked_files_takes_no_more_than_its_budget() {
    in_private_namespace(|| {
        let tmpfs = files(10_000);
        track(&Served::at(tmpfs.path(), &[]), 10_000);
    });
}

#[test]
fn each_tracked_file_takes_no_more_than_its_budget_at_the_machines_limit_of_descriptors() {
    /// Beyond it the test takes minutes.
    const MOST: u64 = 100_000;
    if !can_be_nobody() {
        return;
    }
    // As nobody, since root's gofer raises the limit.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if limit > MOST && !say::long() {
        return say::skipped(format_args!("the machine's limit is {limit}: GOFER_LONG=1 runs it"));
    }
    in_private_namespace(|| {
        let count = limit - OWN;
        let tmpfs = files(count);
        run("chmod", ["755".as_ref(), tmpfs.path().as_os_str()]);
        track(&Served::started(tmpfs.path(), &[], as_nobody), count);
    });
}

#[test]
fn each_tracked_file_takes_no_more_than_its_budget_at_the_kernels_limit_of_descriptors() {
    if !say::long() {
        return say::skipped("a million files: GOFER_LONG=1 runs it");
    }
    let ceiling = std::fs::read_to_string("/proc/sys/fs/nr_open").expect("the kernel's limit");
    let count = ceiling.trim().parse::<u64>().expect("a number") - OWN;
    in_private_namespace(|| {
        let tmpfs = files(count);
        track(&Served::at(tmpfs.path(), &[]), count);
    });
}

/// A file system with `count` files, whose names have 32 bytes.
fn files(count: u64) -> Mounted {
    let tmpfs = Mounted::tmpfs("size=100%,nr_inodes=0");
    for number in 0..count {
        File::create(tmpfs.path().join(name(number))).expect("a file");
    }
    tmpfs
}

fn name(number: u64) -> String {
    format!("file-{number:027}")
}

/// Holds `count` files and looks at what each of them takes.
fn track(served: &Served, count: u64) {
    // What the first requests warm up is not the files'.
    let warm = served.client.walk_to(served.root, &name(0));
    served.client.close(&[warm]);
    let before = served.gofer.anonymous_kib();
    let held: Vec<FdId> = (0..count).map(|number| served.client.walk_to(served.root, &name(number))).collect();
    assert!(served.descriptors() as u64 > count);
    let after = served.gofer.anonymous_kib();
    let each = (after - before) * 1024 / count;
    for some in held.chunks(10_000) {
        served.client.close(some);
    }
    assert!(eventually(|| (served.descriptors() as u64) < OWN));
    let left = served.gofer.anonymous_kib();
    say::measured(format_args!(
        "{count} tracked files: {each} bytes each; {before} KiB before, {after} with them, {left} after"
    ));
    assert!(each <= TRACKED_FILE, "{each} bytes for each of {count} files");
    assert!(Path::new(served.path()).join(name(0)).exists());
}
