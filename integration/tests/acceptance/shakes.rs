//! Hand-shakes: what the gofer waits for before it changes anything.

use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gofer::contract::Generation;
use gofer::launch::{Ended, Launched, Launcher};
use gofer_integration::Ask;
use rustix::io::fcntl_dupfd_cloexec;

use crate::subject::{Subject, clients, each, one, proc};

/// 37.
#[test]
fn no_mount_changes_before_the_peer_of_sync_chroot_closes() {
    one(Generation::E26, |subject| {
        let mut gofer = subject.launcher(&subject.bundle()).spawn().expect("a process");
        let before = untouched(subject, &gofer);
        gofer.release();
        gofer.read_mounts().expect("a list");
        assert_ne!(proc(&gofer, "mountinfo"), before);
    });
}

/// 37, of E24.
#[test]
fn no_mount_changes_before_the_peer_of_sync_nvproxy_closes_and_mounts_made_meanwhile_are_served() {
    one(Generation::E24, |subject| {
        let place = subject.path("root/devices");
        fs::create_dir(&place).expect("a directory");
        let mut gofer = subject.launcher(&subject.bundle()).sync_nvproxy().spawn().expect("a process");
        let before = untouched(subject, &gofer);
        mount_a_tmpfs(&gofer, &place);
        gofer.release();
        gofer.read_mounts().expect("a list");
        assert_ne!(proc(&gofer, "mountinfo"), before);
        let client = clients(&mut gofer).remove(0);
        client.walk_to(client.mount(), "devices/node");
        assert!(!place.join("node").exists(), "only the gofer sees it");
    });
}

/// 38.
#[test]
fn a_byte_instead_of_the_end_of_sync_chroot_is_fatal() {
    one(Generation::E26, |subject| {
        fatal(subject, "sync-chroot-fd", subject.launcher(&subject.bundle()), None);
    });
}

/// 38.
#[test]
fn a_byte_instead_of_the_end_of_sync_nvproxy_is_fatal() {
    one(Generation::E24, |subject| {
        fatal(subject, "sync-nvproxy-fd", subject.launcher(&subject.bundle()).sync_nvproxy(), None);
    });
}

/// 38.
#[test]
fn a_byte_instead_of_the_end_of_sync_userns_is_fatal() {
    each(|subject| {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        // Above those that the launcher numbers.
        let theirs: OwnedFd = fcntl_dupfd_cloexec(&theirs, 200).expect("a number");
        let flag = format!("--sync-userns-fd={}", theirs.as_raw_fd());
        let launcher = subject.launcher(&subject.bundle()).stray(theirs).flag(flag);
        fatal(subject, "sync-userns-fd", launcher, Some(ours));
    });
}

/// Waits a while, and says what is mounted: what was in the beginning.
fn untouched(subject: &Subject, gofer: &Launched) -> String {
    let before = proc(gofer, "mountinfo");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(proc(gofer, "mountinfo"), before);
    let root = format!("/proc/{}/root/{}", gofer.pid(), subject.path("root").display());
    assert!(fs::exists(root).expect("a look"), "the root is the host's");
    before
}

/// As the tool for GPUs does: in the gofer's mount name space.
fn mount_a_tmpfs(gofer: &Launched, place: &Path) {
    let script = format!("mount -t tmpfs none {0} && touch {0}/node", place.display());
    let mut command = Command::new("nsenter");
    command.args(["--mount", "--target"]).arg(gofer.pid().to_string()).args(["sh", "-c", &script]);
    assert!(command.status().expect("nsenter(1)").success());
}

/// The byte goes into `sync`, if it is not one of the launcher's.
fn fatal(subject: &Subject, name: &str, launcher: Launcher, sync: Option<UnixStream>) {
    let mut gofer = launcher.spawn().expect("a process");
    match sync {
        Some(mut end) => {
            end.write_all(b"!").expect("a byte");
            gofer.release();
            assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128), "{name}");
        }
        None => {
            // Held open: the end of the file must not be what ends it.
            let mut ends = gofer.take_sync();
            ends.iter_mut().for_each(|end| end.write_all(b"!").expect("a byte"));
            assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128), "{name}");
        }
    }
    assert!(crate::subject::is_stock() || subject.log().contains(name), "{}", subject.log());
}
