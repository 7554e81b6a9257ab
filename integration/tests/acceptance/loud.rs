//! What must fail loudly: with a record for the user, exit code 128, and nothing served.

use std::ffi::CStr;
use std::fs;

use gofer::contract::{Generation, Lower, MountConf, Upper};
use gofer::launch::{Bundle, Ended, Launcher, Mount};
use gofer_integration::mounts::in_private_namespace;
use rustix::mount::{MountFlags, mount, mount_remount};
use serde_json::Value;

use crate::subject::{Subject, each, each_of_ours, is_stock};

/// Starts a gofer that must not serve, but say why, and name `object`; an original has words of its own.
fn fails(subject: &Subject, launcher: Launcher, object: &str) {
    let _ = fs::remove_file(subject.path("log"));
    let mut gofer = launcher.log(subject.create("log")).spawn().expect("a process");
    gofer.release();
    assert!(gofer.read_mounts().is_err(), "{:?} {object}", subject.generation);
    assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128), "{:?} {object}", subject.generation);
    let log = subject.log();
    let record: Value = serde_json::from_str(&log).unwrap_or_else(|error| panic!("{error}: {object}: {log:?}"));
    assert_eq!(record["level"], "error");
    assert!(is_stock() || log.contains(object), "{:?} {object}: {log}", subject.generation);
}

#[test]
fn a_specification_that_is_none_ends_it() {
    each(|subject| {
        let plain = MountConf { lower: Lower::Lisafs, upper: Upper::None, size: None };
        for text in ["{", "", "[]", "{\"root\":7}"] {
            let launcher = subject.launcher(&subject.bundle()).confs([plain.clone()]);
            fs::write(subject.path("bundle/config.json"), text).expect("a file");
            fails(subject, launcher, "specification");
        }
        fails(subject, subject.launcher(&Bundle::new("")), "root");
        fails(subject, subject.launcher(&Bundle::new("nowhere")), "nowhere");
    });
}

#[test]
fn a_destination_that_cannot_be_one_ends_it() {
    each(|subject| {
        fs::write(subject.path("root/file"), "").expect("a file");
        let to = |destination: &str| subject.bundle().mount(Mount::bind(destination, subject.path("volume")));
        fails(subject, subject.launcher(&to("relative")), "relative");
        fails(subject, subject.launcher(&to("/file/below")), "/file/below");
        // A directory on a file.
        fails(subject, subject.launcher(&to("/file")), "/file");
    });
}

#[test]
fn a_mount_point_that_cannot_be_made_ends_it() {
    each(|subject| {
        in_private_namespace(|| {
            let root = subject.path("root");
            mount("tmpfs", &root, "tmpfs", MountFlags::empty(), None::<&CStr>).expect("a tmpfs");
            mount_remount(&root, MountFlags::RDONLY, c"").expect("a read-only one");
            let bundle = subject.bundle().mount(Mount::bind("/new", subject.path("volume")));
            fails(subject, subject.launcher(&bundle), "/new");
        });
    });
}

#[test]
fn other_numbers_of_connections_or_configurations_than_mounts_end_it() {
    // That of E22 sends the list all the same.
    each_of_ours(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("volume")));
        let less = subject.launcher(&bundle).arguments(|words| {
            let last = words.iter().rposition(|word| word.starts_with("--io-fds=")).expect("connections");
            words.remove(last);
        });
        fails(subject, less, "--io-fds");
        if subject.generation != Generation::E22 {
            let plain = MountConf { lower: Lower::Lisafs, upper: Upper::None, size: None };
            for count in [1, 3] {
                let confs: Vec<_> = std::iter::repeat_n(plain.clone(), count).collect();
                fails(subject, subject.launcher(&bundle).confs(confs), "--gofer-mount-confs");
            }
        }
    });
}
