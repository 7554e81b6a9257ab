//! Hand-shakes.

use std::fs;
use std::io::Write;

use gofer::contract::Generation;
use gofer::launch::Ended;

use crate::subject::{one, proc};

/// 37.
#[test]
fn no_mount_changes_before_the_peer_of_sync_chroot_closes() {
    one(Generation::E26, |subject| {
        let mut gofer = subject.launcher(&subject.bundle()).spawn().expect("a process");
        let before = proc(&gofer, "mountinfo");
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(proc(&gofer, "mountinfo"), before);
        let root = format!("/proc/{}/root/{}", gofer.pid(), subject.path("root").display());
        assert!(fs::exists(root).expect("a look"), "the root is the host's");
        gofer.release();
        gofer.read_mounts().expect("a list");
        assert_ne!(proc(&gofer, "mountinfo"), before);
    });
}

/// 37, of E24.
#[test]
fn no_mount_changes_before_the_peer_of_sync_nvproxy_closes() {
    one(Generation::E24, |subject| {
        let mut gofer = subject.launcher(&subject.bundle()).sync_nvproxy().spawn().expect("a process");
        let before = proc(&gofer, "mountinfo");
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(proc(&gofer, "mountinfo"), before);
        gofer.release();
        gofer.read_mounts().expect("a list");
    });
}

/// 38.
#[test]
fn a_byte_instead_of_the_end_of_a_sync_is_fatal() {
    one(Generation::E26, |subject| {
        let mut gofer = subject.launcher(&subject.bundle()).spawn().expect("a process");
        for mut end in gofer.take_sync() {
            end.write_all(b"!").expect("a byte");
        }
        assert_ne!(gofer.wait().expect("an end"), Ended::Exited(0));
    });
}
