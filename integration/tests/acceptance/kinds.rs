//! Serving policy: files of the host that are more than files.

use std::fs;
use std::os::unix::net::UnixListener;

use gofer::contract::Generation;
use gofer::launch::{Launched, Launcher, Mount};
use gofer_integration::plant::{fifo, null_device};
use gofer_integration::{Ask, Raw, new_in};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use crate::subject::{Subject, clients, each, is_stock, one};

const STREAM: u32 = 1;

/// 45.
#[test]
fn host_uds_says_whether_sockets_of_the_host_can_be_connected_to_and_made() {
    each(|subject| {
        let _listener = UnixListener::bind(subject.path("volume/socket")).expect("a socket");
        for (flag, open, create) in [
            ("", false, false),
            ("--host-uds=none", false, false),
            ("--host-uds=open", true, false),
            ("--host-uds=create", false, true),
            ("--host-uds=all", true, true),
            ("--fsgofer-host-uds=true", true, false),
        ] {
            let what = format!("{:?} {flag}", subject.generation);
            let (_gofer, client, root) = serving(subject, flag);
            match found(subject, &client, root, "socket", open) {
                Some(socket) => {
                    assert!(client.fstat(socket).is_ok(), "{what}: it can be looked at");
                    let connected = client.connect(socket, STREAM).map(drop);
                    assert_eq!(connected, if open { Ok(()) } else { Err(Errno::EPERM) }, "{what}");
                }
                None => assert!(!open, "{what}"),
            }
            let made = client.bind(new_in(root, FileType::Socket, 0o600), STREAM, "new").map(drop);
            assert_eq!(made, if create { Ok(()) } else { Err(Errno::EPERM) }, "{what}");
            assert_eq!(fs::remove_file(subject.path("volume/new")).is_ok(), create, "{what}");
        }
    });
}

/// 45.
#[test]
fn host_fifo_says_whether_fifos_of_the_host_can_be_opened() {
    each(|subject| {
        fifo(&subject.path("volume/fifo"));
        // Somebody has it open for both, so that the original does not wait.
        let _peer = fs::File::options().read(true).write(true).open(subject.path("volume/fifo")).expect("a FIFO");
        for (flag, open) in [("", false), ("--host-fifo=none", false), ("--host-fifo=open", true)] {
            let what = format!("{:?} {flag}", subject.generation);
            let (_gofer, client, root) = serving(subject, flag);
            match found(subject, &client, root, "fifo", open) {
                Some(fifo) => {
                    let opened = client.open(fifo, 0).map(drop);
                    assert_eq!(opened, if open { Ok(()) } else { Err(Errno::EPERM) }, "{what}");
                }
                None => assert!(!open, "{what}"),
            }
        }
    });
}

/// 45.
#[test]
fn character_device_policy_says_whether_devices_of_the_host_can_be_opened() {
    each(|subject| {
        null_device(&subject.path("volume/null"));
        let has_policy = subject.generation == Generation::E26;
        let flags: &[_] = if has_policy {
            &[
                ("", false),
                ("--character-device-policy=emulated-only", false),
                ("--character-device-policy=prefer-emulated", true),
                ("--character-device-policy=passthrough", true),
            ]
        } else {
            &[("", true)]
        };
        for (flag, open) in flags {
            let (_gofer, client, root) = serving(subject, flag);
            let opened = client.open(client.walk_to(root, "null"), 2).map(drop);
            assert_eq!(opened, if *open { Ok(()) } else { Err(Errno::EPERM) }, "{:?} {flag}", subject.generation);
        }
    });
}

/// 45.
#[test]
fn the_connection_for_dev_is_exempt_from_the_policy_of_character_devices() {
    one(Generation::E26, |subject| {
        fs::create_dir(subject.path("root/dev")).expect("a directory");
        null_device(&subject.path("root/dev/null"));
        let launcher = subject.launcher(&subject.bundle()).dev().global("--nvproxy=true");
        let mut gofer = subject.started(launcher);
        let (root, dev) = (clients(&mut gofer).remove(0), Raw::new(gofer.take_dev().expect("a connection")));
        let (in_root, in_dev) = (root.walk_to(root.mount(), "dev/null"), dev.walk_to(dev.mount(), "null"));
        assert_eq!(root.open(in_root, 2).map(drop), Err(Errno::EPERM));
        assert_eq!(dev.open(in_dev, 2).map(drop), Ok(()));
    });
}

/// 45's neighbour: no flag lets these through.
#[test]
fn block_devices_cannot_be_opened() {
    each(|subject| {
        gofer_integration::plant::node(&subject.path("volume/block"), rustix::fs::FileType::BlockDevice, (7, 200));
        let (_gofer, client, root) = serving(subject, "");
        // The originals refuse it at the walk.
        let block = client.walk(root, &["block"]).map(|(_, inodes)| inodes);
        let opened = block.and_then(|inodes| client.open(inodes[0].control_fd, 0).map(drop));
        assert_eq!(opened, Err(Errno::EPERM), "{:?}", subject.generation);
    });
}

/// A client of the volume, of a gofer with `flag`.
fn serving(subject: &Subject, flag: &str) -> (Launched, Raw, FdId) {
    let launcher = subject.launcher(&subject.bundle().mount(Mount::bind("/volume", subject.path("volume"))));
    let mut gofer = subject.started(if flag.is_empty() { launcher } else { Launcher::global(launcher, flag) });
    let mut clients = clients(&mut gofer);
    let client = clients.remove(1);
    let root = client.mount();
    (gofer, client, root)
}

/// A socket or a FIFO. E22's original refuses one that may not be opened when it is walked to.
fn found(subject: &Subject, client: &Raw, root: FdId, name: &str, open: bool) -> Option<FdId> {
    if is_stock() && subject.generation == Generation::E22 && !open {
        assert_eq!(client.walk(root, &[name]).err(), Some(Errno::EPERM));
        return None;
    }
    Some(client.walk_to(root, name))
}
