//! A root whose content changes while the gofer sets it up: another container may share it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gofer::launch::{Ended, Mount};
use gofer_integration::{Ask, Outside, say};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::subject::{clients, each_of_ours};

/// 25.
#[test]
fn a_destination_that_becomes_a_link_to_the_host_during_set_up_never_leads_outside() {
    let time = Duration::from_secs(if say::long() { 60 } else { 1 });
    // Within a second, the originals of E22 and E24 have made a file on the host; docs/parity.md has it.
    each_of_ours(|subject| {
        let outside = Outside::new();
        for (name, target) in [("a", outside.path().join("dir")), ("f", up_to(&outside.path().join("dir")))] {
            fs::create_dir(subject.path("root").join(name)).expect("a directory");
            symlink(target, subject.path("root").join(format!("{name}-link"))).expect("a link");
        }
        symlink(outside.path().join("secret"), subject.path("root/secret-link")).expect("a link");
        fs::write(subject.path("root/secret"), "of the container").expect("a file");
        let bundle = subject
            .bundle()
            .mount(Mount::bind("/a/deep/er", subject.path("volume")))
            .mount(Mount::bind("/f/file", subject.path("volume/file")))
            .mount(Mount::bind("/secret", subject.path("volume/file")))
            .cwd("/a/work");
        let stop = AtomicBool::new(false);
        let (mut served, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| swap(&subject.path("root"), &stop));
            let start = Instant::now();
            while start.elapsed() < time && !swapping.is_finished() {
                let mut gofer = subject.launcher(&bundle).spawn().expect("a process");
                gofer.release();
                if gofer.read_mounts().is_err() {
                    assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
                    refused += 1;
                    continue;
                }
                served += 1;
                let clients = clients(&mut gofer);
                // Once the list of mounts is there, what it says is what is served, whatever becomes of the names.
                assert!(!outside.holds(&clients[0].mounted().expect("a root").0.stat));
                clients[1].find(clients[1].mount(), "file");
                for file in &clients[2..] {
                    assert_eq!(file.mounted().expect("a file").0.stat.size, 13, "of the volume");
                }
            }
            stop.store(true, Ordering::Relaxed);
            let swaps: u64 = swapping.join().expect("the one who swaps");
            say::measured(format_args!(
                "{:?}: {served} served and {refused} refused during {swaps} swaps",
                subject.generation
            ));
        });
        assert!(served > 0, "nothing was tried");
        outside.assert_untouched();
    });
}

/// Exchanges directories and a file with links to the host, over and over; how often.
fn swap(root: &Path, stop: &AtomicBool) -> u64 {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        for name in ["a", "f", "secret"] {
            let (one, other) = (root.join(name), root.join(format!("{name}-link")));
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("an exchange");
            count += 1;
        }
    }
    count
}

/// A path that goes up further than any root is deep, and then to `path` of the host.
fn up_to(path: &Path) -> std::path::PathBuf {
    Path::new("../../../../../../../../../../..").join(path.strip_prefix("/").expect("an absolute path"))
}
