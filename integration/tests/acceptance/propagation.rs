//! What a mount on one side is to the other.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use gofer::contract::Generation;
use gofer::launch::Mount;
use gofer_integration::Ask;
use gofer_integration::mounts::in_private_namespace;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

use crate::mountinfo::{TMPFS, at, lines, read};
use crate::subject::{Subject, clients, each, is_stock};

/// Makes a directory a mount that is shared with copies of it.
fn share(path: &Path) {
    mount_bind(path, path).expect("a mount");
    mount_change(path, MountPropagationFlags::SHARED).expect("a shared mount");
}

fn tmpfs(at: &Path) {
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), None::<&CStr>).expect("a tmpfs");
}

/// 28.
#[test]
fn the_host_sees_no_mount_of_the_gofers() {
    each(|subject| {
        in_private_namespace(|| {
            // Whatever the gofer does to copies of these would show here, if it did not see to it.
            for name in ["root", "volume"] {
                share(&subject.path(name));
            }
            fs::create_dir(subject.path("root/data")).expect("a mount point");
            let table = || fs::read_to_string("/proc/thread-self/mountinfo").expect("our mounts");
            let here = |table: &str| {
                let mine = |point: &str| Path::new(point).starts_with(subject.path(""));
                let all = read(table).into_iter();
                all.filter(|line| mine(&line.point) || line.source == TMPFS).map(|line| line.point).collect()
            };
            let before: Vec<String> = here(&table());
            assert_eq!(before.len(), 2, "{before:?}");
            let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("volume")));
            let mut gofer = subject.start(&bundle.mount(Mount::bind("/more", subject.path("volume")).option("ro")));
            let held = clients(&mut gofer);
            held[1].find(held[1].mount(), "file");
            let now: Vec<String> = here(&table());
            assert_eq!(now, before);
        });
    });
}

/// 28.
#[test]
fn a_mount_on_the_host_below_a_slave_root_becomes_visible() {
    each(|subject| {
        in_private_namespace(|| {
            share(&subject.path("root"));
            let late = subject.path("root/late");
            fs::create_dir(&late).expect("a mount point");
            let bundle = subject.bundle();
            let mut gofer = subject.start(&bundle);
            let held = clients(&mut gofer);
            let root = held[0].mount();
            assert!(lines(&gofer).iter().all(|line| line.point != "/late"));
            tmpfs(&late);
            fs::write(late.join("file"), "later").expect("a file");
            assert_eq!(at(&gofer, "/late").source, "tmpfs");
            held[0].find(root, "late/file");
        });
    });
}

/// 29.
#[test]
fn propagation_words_of_submounts_end_up_in_mountinfo() {
    each(|subject| {
        in_private_namespace(|| {
            let volume = subject.path("volume");
            share(&volume);
            let mount = |word: &str| Mount::bind(format!("/{word}"), &volume).option(word);
            let words = ["rprivate", "private", "rslave", "slave"];
            let bundle = words.iter().fold(subject.bundle(), |bundle, word| bundle.mount(mount(word)));
            let mut gofer = subject.start(&bundle);
            for word in words {
                let line = at(&gofer, &format!("/{word}"));
                let master = line.propagation.iter().any(|field| field.starts_with("master:"));
                let shared = line.propagation.iter().any(|field| field.starts_with("shared:"));
                assert!(!shared && master == word.contains("slave"), "{:?}: {line:?}", subject.generation);
            }
            for client in &clients(&mut gofer)[1..] {
                client.find(client.mount(), "file");
            }
        });
    });
}

/// 29.
#[test]
fn an_unbindable_submount_is_served() {
    each(|subject: &Subject| {
        if is_stock() && subject.generation == Generation::E26 {
            // It serves the bare mount point; docs/parity.md has it.
            return;
        }
        let volume = subject.path("volume");
        let mount = |word: &str| Mount::bind(format!("/{word}"), &volume).option(word);
        let bundle = subject.bundle().mount(mount("unbindable")).mount(mount("runbindable"));
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        for (client, word) in clients[1..].iter().zip(["unbindable", "runbindable"]) {
            client.find(client.mount(), "file");
            let line = at(&gofer, &format!("/{word}"));
            assert_eq!(line.propagation, ["unbindable"], "{:?}: {line:?}", subject.generation);
        }
    });
}
