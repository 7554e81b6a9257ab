//! Serving: connections side by side, read-only ones, directfs.

use gofer::contract::Generation;
use gofer::launch::Mount;
use gofer_integration::Ask;
use gofer_protocol::Errno;

use crate::subject::{clients, each};

/// 42 and 43.
#[test]
fn a_silent_and_a_closed_connection_do_not_disturb_the_others() {
    each(|subject| {
        let volume = subject.path("volume");
        let bundle = subject.bundle().mount(Mount::bind("/a", &volume)).mount(Mount::bind("/b", &volume));
        let mut gofer = subject.start(&bundle);
        let mut clients = clients(&mut gofer);
        let root = clients[0].mount();
        clients[1].mount();
        drop(clients.remove(1));
        for _ in 0..3 {
            clients[0].find(root, "a");
        }
    });
}

/// 44, with one request; the others are in `threats/read_only.rs`.
#[test]
fn a_read_only_mount_refuses_writes_and_a_writable_root_does_not() {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/ro", subject.path("volume")).option("ro"));
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        assert_eq!(clients[1].create(clients[1].mount(), "new").err(), Some(Errno::EROFS));
        clients[0].create(clients[0].mount(), "new").expect("a file");
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
