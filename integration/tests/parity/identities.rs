//! Containers whose ids are others on the host.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use gofer_integration::mounts::in_private_namespace;
use gofer_integration::sandbox::Sandbox;
use gofer_integration::say;
use rustix::mount::mount_bind;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::arms::{ours, outcome, same};

const NOBODY: u32 = 65_534;
/// What an administrator gives a user.
const RANGE: u32 = 100_000;

#[test]
fn a_container_with_65536_ids_of_others_reads_and_writes() {
    let scenario = |sandbox: Sandbox| {
        let host = volume(RANGE);
        let sandbox = sandbox.ids(&[(0, RANGE, 65_536)]).bind(host.path(), "/data", &["rbind", "rw"]);
        let output = outcome(&sandbox.run(SCRIPT));
        assert_eq!(output, SAID);
        assert_eq!(std::fs::metadata(host.path().join("new")).expect("a file").uid(), RANGE);
        output
    };
    if say::long() {
        return same(scenario);
    }
    ours(|combined, runsc| {
        scenario(Sandbox::new(combined, runsc, runsc.generation.directfs().last().copied().flatten()));
    });
}

/// `newuidmap` maps the ids while the gofer waits.
#[test]
fn a_container_that_nobody_started_reads_and_writes() {
    if !["newuidmap", "newgidmap"].iter().all(|tool| Path::new("/usr/bin").join(tool).exists()) {
        return say::skipped("no newuidmap (integration/setup.sh installs it)");
    }
    ours(|combined, runsc| {
        for &directfs in runsc.generation.directfs() {
            if directfs == Some(false) && !say::long() {
                continue;
            }
            let host = volume(NOBODY);
            let lists = tempfile::tempdir().expect("a directory");
            let list = lists.path().join("list");
            std::fs::write(&list, format!("nobody:{RANGE}:65536\n")).expect("a file");
            let sandbox = Sandbox::new(combined, runsc, directfs).ids(&[(0, NOBODY, 1), (1, RANGE, 65_536)]);
            let sandbox = sandbox.bind(host.path(), "/data", &["rbind", "rw"]);
            in_private_namespace(|| {
                for at in ["/etc/subuid", "/etc/subgid"] {
                    mount_bind(&list, at).expect("a list of our own");
                }
                // Of this thread, and of what it starts.
                let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                set_thread_groups(&[]).expect("no groups");
                set_thread_res_gid(group, group, group).expect("a group");
                set_thread_res_uid(user, user, user).expect("a user");
                sandbox.start("sleep 1000");
                assert_eq!(outcome(&sandbox.exec(SCRIPT)), SAID, "{:?}", runsc.generation);
                drop(sandbox);
            });
            let file = std::fs::metadata(host.path().join("new")).expect("a file");
            assert_eq!(file.uid(), NOBODY, "{:?}", runsc.generation);
        }
    });
}

const SCRIPT: &str = "cat /data/file && echo out > /data/new && busybox stat -c %u:%g /data/new";
const SAID: &str = "Some(0): in\n0:0\n";

/// A directory of `owner`'s with a file in it.
fn volume(owner: u32) -> tempfile::TempDir {
    let host = tempfile::tempdir().expect("a directory");
    std::fs::write(host.path().join("file"), "in\n").expect("a file");
    lchown(host.path(), Some(owner), Some(owner)).expect("chown");
    host
}
