//! Starting and stopping again and again leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gofer_integration::sandbox::Sandbox;
use gofer_integration::{eventually, say};

use crate::arms::ours;

#[test]
fn fifty_cycles_leave_no_process_mount_descriptor_or_file() {
    let cycles = if say::long() { 1000 } else { 50 };
    ours(|program, runsc| {
        let directfs = runsc.generation.directfs()[0];
        let sandbox = Sandbox::new(program, runsc, directfs);
        let bundle = sandbox.root().parent().expect("a bundle").to_owned();
        // What the first one leaves for the others is E26's name space of an empty network.
        assert_eq!(sandbox.run("true").status.code(), Some(0));
        let before = (mounts(), descriptors(), files(&bundle));
        for _ in 0..cycles {
            assert_eq!(sandbox.run("echo x >/tmp/x; exit 3").status.code(), Some(3));
        }
        assert!(eventually(|| processes(&bundle).is_empty()), "{:?}", processes(&bundle));
        assert_eq!(before, (mounts(), descriptors(), files(&bundle)), "{:?}", runsc.generation);
        say::measured(format_args!("{cycles} cycles of {:?}", runsc.generation));
    });
}

/// Mount points of this name space that tests have a hand in.
fn mounts() -> BTreeSet<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let points = all.lines().filter_map(|line| line.split(' ').nth(4));
    // Other tests run beside this one, each with directories of its own.
    points.filter(|point| !point.contains("/null-netns")).map(str::to_owned).collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Zombies have no command line, and none are this process's: each command was waited for.
fn processes(bundle: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&*bundle.to_string_lossy())).collect()
}

fn files(bundle: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending = vec![bundle.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a directory").flatten() {
            if entry.file_type().expect("a type").is_dir() {
                pending.push(entry.path());
            }
            found.insert(entry.path().to_string_lossy().into_owned());
        }
    }
    found
}
