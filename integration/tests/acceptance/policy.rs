//! Serving: connections side by side, read-only ones, directfs.

use std::fs;

use gofer::contract::Generation;
use gofer::launch::Mount;
use gofer_integration::specimen::specimens;
use gofer_integration::{Ask, Exchange};
use gofer_protocol::{Errno, FdId, Mid};

use crate::subject::{clients, each, is_stock};

/// 42.
#[test]
fn a_connection_on_which_no_message_arrives_does_not_disturb_the_others() {
    each(|subject| {
        let volume = subject.path("volume");
        let bundle = subject.bundle().mount(Mount::bind("/a", &volume)).mount(Mount::bind("/b", &volume));
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        for client in [&clients[0], &clients[2]] {
            client.mount();
        }
        clients[2].walk_to(clients[2].mount(), "file");
        clients[0].walk_to(clients[0].mount(), "b");
    });
}

/// 43.
#[test]
fn a_connection_other_than_the_roots_that_is_closed_leaves_the_rest_working() {
    each(|subject| {
        let volume = subject.path("volume");
        let bundle = subject.bundle().mount(Mount::bind("/a", &volume)).mount(Mount::bind("/b", &volume));
        let mut gofer = subject.start(&bundle);
        let mut clients = clients(&mut gofer);
        let (root, other) = (clients[0].mount(), clients[2].mount());
        clients[1].mount();
        drop(clients.remove(1));
        for _ in 0..3 {
            clients[0].walk_to(root, "a/file");
            clients[1].walk_to(other, "file");
        }
    });
}

/// 44.
#[test]
fn read_only_connections_answer_erofs_to_each_mutating_request_including_bind() {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/ro", subject.path("volume")).option("ro"));
        let launcher = subject.launcher(&bundle).global("--directfs=false").global("--host-uds=all");
        let launcher = match subject.generation {
            Generation::E22 => subject.launcher(&bundle).global("--host-uds=all"),
            _ => launcher,
        };
        let mut gofer = subject.started(launcher);
        let client = clients(&mut gofer).remove(1);
        let root = client.mount();
        let file = client.walk_to(root, "file");
        let (open, _) = client.open(file, 0).expect("reading is allowed");
        for mid in Mid::ALL.iter().copied().filter(|mid| mid.changes_files()) {
            // The older originals forget one, and do not know the other.
            let older = is_stock() && subject.generation != Generation::E26;
            if older && (mid == Mid::BIND_AT || mid == Mid::RENAME_AT2) {
                continue;
            }
            let of_open_file = mid == Mid::PWRITE || mid == Mid::FALLOCATE;
            for fd in [root, file].map(|fd| if of_open_file { open } else { fd }) {
                let answer = client.exchange(mid.0, &payload(mid, fd)).map(drop);
                assert_eq!(answer, Err(Errno::EROFS), "{:?} {mid:?}", subject.generation);
            }
        }
        // O_WRONLY, O_RDWR, O_TRUNC.
        for flags in [1, 2, 0o1000] {
            assert_eq!(client.open(file, flags).err(), Some(Errno::EROFS), "flags {flags:o}");
        }
        assert_eq!(fs::read(subject.path("volume/file")).expect("it is there"), b"of the volume");
    });
}

/// 46.
#[test]
fn mount_donates_a_descriptor_with_directfs_alone() {
    each(|subject| {
        let has_directfs = subject.generation != Generation::E22;
        let mut gofer = subject.start(&subject.bundle());
        assert_eq!(clients(&mut gofer)[0].mounted().expect("mounted").1.len(), usize::from(has_directfs));
        if has_directfs {
            let mut gofer = subject.started(subject.launcher(&subject.bundle()).global("--directfs=false"));
            assert_eq!(clients(&mut gofer)[0].mounted().expect("mounted").1.len(), 0);
        }
    });
}

fn payload(mid: Mid, fd: FdId) -> Vec<u8> {
    let found = specimens(fd, b"new").into_iter().find(|specimen| specimen.mid == mid);
    found.expect("one of every message").payload
}
