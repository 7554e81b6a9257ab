//! What lies below the served tree, and what the host does to it meanwhile.

use std::fs::{self, File};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use gofer_integration::mounts::{Mounted, in_private_namespace};
use gofer_integration::{Ask, Listening, Raw, Served, say};
use gofer_protocol::FdId;

/// Row B90.
#[test]
fn a_mount_over_the_served_root_stays_invisible_and_one_below_it_is_seen() {
    in_private_namespace(|| {
        let (old, new) = (Mounted::tmpfs("size=1m"), Mounted::tmpfs("size=1m"));
        fs::create_dir(old.path().join("below")).expect("a directory");
        fs::write(old.path().join("old"), "").expect("a file");
        fs::write(new.path().join("new"), "").expect("a file");
        let served = Served::at(old.path(), &[]);
        let below = served.client.walk_to(served.root, "below");
        let names = |dir| {
            let (open, _) = served.client.open(dir, 0).expect("open");
            let mut names: Vec<_> = served.client.list(open).into_iter().map(|e| e.name).collect();
            names.sort();
            names
        };

        let _below = Mounted::bind(new.path(), &old.path().join("below"));
        assert_eq!(names(served.client.walk_to(served.root, "below")), [b"new"], "seen by a new walk");
        assert!(names(below).is_empty(), "what was walked to before stays what it was");

        let _over = Mounted::bind(new.path(), old.path());
        assert!(old.path().join("new").exists(), "the host sees the new one");
        assert_eq!(names(served.root), [&b"below"[..], b"old"]);
        assert_eq!(names(served.client.mount()), [&b"below"[..], b"old"], "a second Mount as well");
        let inodes = served.client.walk(served.root, &["new"]).expect("walk").1;
        assert!(inodes.is_empty());
    });
}

/// Row B101.
#[test]
fn twenty_clients_that_list_a_huge_directory_take_memory_for_their_replies_only() {
    const CLIENTS: usize = 20;
    let count = if say::long() { 1_000_000 } else { 100_000 };
    in_private_namespace(|| {
        let tmpfs = Mounted::tmpfs("nr_inodes=0");
        for number in 0..count {
            File::create(tmpfs.path().join(format!("file-{number:08}"))).expect("a file");
        }
        let listening = Listening::at(tmpfs.path(), &[]);
        let gofer = &listening.gofer;
        let clients: Vec<(Raw, FdId)> = (0..CLIENTS).map(|_| listening.client()).collect();
        let before = gofer.anonymous_kib();
        let (start, done, peak) = (Barrier::new(CLIENTS), AtomicBool::new(false), AtomicU64::new(before));
        let began = Instant::now();
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    peak.fetch_max(gofer.anonymous_kib(), Ordering::Relaxed);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            });
            let listing: Vec<_> = clients
                .iter()
                .map(|(client, root)| {
                    let start = &start;
                    scope.spawn(move || {
                        let (open, _) = client.open(*root, 0).expect("open");
                        start.wait();
                        // The largest budget there is.
                        let mut listed = 0;
                        loop {
                            let some = client.getdents(open, i32::MAX).expect("list").len();
                            listed += some;
                            if some == 0 {
                                return listed;
                            }
                        }
                    })
                })
                .collect();
            let listed: Vec<_> = listing.into_iter().map(|thread| thread.join().expect("a listing")).collect();
            done.store(true, Ordering::Relaxed);
            watching.join().expect("the watch");
            assert_eq!(listed, [count; CLIENTS]);
        });
        let (peak, after) = (peak.into_inner(), gofer.anonymous_kib());
        let time = began.elapsed();
        say::measured(format_args!(
            "{CLIENTS} listings of {count} in {time:?}: {before} KiB before, {peak} at the peak, {after} after"
        ));
        // A quarter of what messages of full size would come to.
        assert!(peak < before + CLIENTS as u64 * 512, "{before} KiB became {peak}");
        // What the allocator keeps of freed buffers is less than they were.
        assert!(after <= before + CLIENTS as u64 * 256, "{before} KiB became {after} for good");
    });
}
