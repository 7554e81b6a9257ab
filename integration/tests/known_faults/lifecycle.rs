//! What a server holds over its life: descriptors follow what clients hold, and running out of them is survived.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

use gofer_integration::child::{as_nobody, can_be_nobody, limit_descriptors};
use gofer_integration::mounts::{Mounted, in_private_namespace};
use gofer_integration::{Ask, Served, say};
use gofer_protocol::{Errno, FdId};

/// Row B126.
#[test]
fn three_hundred_thousand_files_are_walked_with_descriptors_for_live_numbers_only() {
    const COUNT: usize = 300_000;
    const AT_A_TIME: usize = 1000;
    const KEPT: usize = 20_000;
    in_private_namespace(|| {
        let tmpfs = Mounted::tmpfs("nr_inodes=0");
        for number in 0..COUNT {
            File::create(tmpfs.path().join(number.to_string())).expect("a file");
        }
        let served = Served::at(tmpfs.path(), &[]);
        let (descriptors, memory) = (served.descriptors(), served.gofer.anonymous_kib());
        let mut live = Vec::with_capacity(AT_A_TIME);
        for number in 0..COUNT {
            live.push(served.client.walk_to(served.root, &number.to_string()));
            if live.len() == AT_A_TIME {
                if number % 50_000 < AT_A_TIME {
                    assert_eq!(served.descriptors(), descriptors + AT_A_TIME);
                }
                served.client.close(&live);
                live.clear();
            }
        }
        assert_eq!(served.descriptors(), descriptors);
        let after = served.gofer.anonymous_kib();
        say::measured(format_args!("{COUNT} files walked, none kept: {memory} KiB before, {after} after"));
        assert!(after <= memory + 1024, "{memory} KiB became {after}");

        let limit = usize::try_from(served.gofer.descriptor_limit()).unwrap_or(usize::MAX);
        let kept = KEPT.min(limit - descriptors - 10);
        let live: Vec<FdId> = (0..kept).map(|number| served.client.walk_to(served.root, &number.to_string())).collect();
        assert_eq!(served.descriptors(), descriptors + kept);
        let memory = served.gofer.anonymous_kib();
        say::measured(format_args!("{kept} of them kept: {memory} KiB"));
        for some in live.chunks(1000) {
            served.client.close(some);
        }
        assert_eq!(served.descriptors(), descriptors);
    });
}

/// Row B126.
#[test]
fn at_a_low_limit_of_descriptors_the_answer_is_emfile_and_all_is_well_when_some_are_given_back() {
    if can_be_nobody() {
        runs_out_and_recovers(Some(256));
    }
}

/// Row B126.
#[test]
fn at_the_machines_limit_of_descriptors_the_answer_is_emfile_and_all_is_well_when_some_are_given_back() {
    if can_be_nobody() {
        runs_out_and_recovers(None);
    }
}

fn runs_out_and_recovers(limit: Option<u64>) {
    /// Beyond it the test takes minutes.
    const MOST: u64 = 100_000;
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    for name in ["a", "b"] {
        File::create(dir.path().join(name)).expect("a file");
    }
    let served = Served::started(dir.path(), &[], |command| {
        let command = as_nobody(command);
        match limit {
            Some(limit) => limit_descriptors(command, limit),
            None => command,
        }
    });
    let limit = served.gofer.descriptor_limit();
    if limit > MOST && !say::long() {
        return say::skipped(format_args!("the machine's limit is {limit}: GOFER_LONG=1 runs it"));
    }
    let file = served.client.walk_to(served.root, "a");
    let (open, _) = served.client.open(file, 0).expect("open");
    let before = served.descriptors();
    let mut held = Vec::new();
    let refused = loop {
        match served.client.walk(served.root, &["b"]) {
            Ok((_, inodes)) => held.push(inodes[0].control_fd),
            Err(errno) => break errno,
        }
        assert!(held.len() as u64 <= limit, "more than the limit");
    };
    let count = held.len();
    say::measured(format_args!("{count} files held at a limit of {limit}"));
    assert_eq!(refused, Errno::EMFILE);
    assert!(count as u64 + before as u64 + 1 >= limit, "all that the limit allows: {count} of {limit}");

    // What is held goes on, and what is refused leaves nothing behind.
    assert!(served.client.fstat(file).is_ok() && served.client.pread(open, 0, 10).is_ok());
    assert_eq!(served.client.open(file, 0).map(|_| ()), Err(Errno::EMFILE));
    assert_eq!(served.client.walk(served.root, &["a"]).map(|_| ()), Err(Errno::EMFILE));
    assert_eq!(served.client.channel().map(|_| ()), Err(Errno::EMFILE));
    assert!(served.client.walk_stat(served.root, &["a"]).is_ok(), "which needs none");

    for some in held.chunks(1000) {
        served.client.close(some);
    }
    assert_eq!(served.descriptors(), before);
    assert!(served.client.open(file, 0).is_ok());
    let channel = served.client.on_channel();
    assert!(channel.request(gofer_protocol::Mid::FSTAT.0, &[&file.0.to_le_bytes()]).is_ok());
    for _ in 0..100 {
        held.push(served.client.walk_to(served.root, "b"));
    }
}
