//! What a server could be made to wait for, for ever.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use gofer_integration::{Ask, Gofer, eventually, over_both};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, makedev, mknodat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

/// The kernel's log waits for the next line, but for `O_NONBLOCK`: a flag of the description that the client shares.
#[test]
fn a_client_cannot_make_the_server_wait_for_a_device_by_the_flags_of_its_donated_descriptor() {
    let prepare = |dir: &Path| {
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, dir.join("kmsg"), FileType::CharacterDevice, mode, makedev(1, 11)).expect("a device (needs root)");
    };
    over_both(&["--character-device-policy", "passthrough"], prepare, |trial| {
        let client = trial.client;
        let device = client.walk_to(trial.root, "kmsg");
        let (open, fds) = client.open(device, 0).expect("open");
        let ours = File::from(fds.into_iter().next().expect("the device's descriptor"));
        fcntl_setfl(&ours, fcntl_getfl(&ours).expect("flags").difference(OFlags::NONBLOCK)).expect("flags");
        (&ours).seek(SeekFrom::End(0)).expect("the end of the log");
        // Any answer will do, but there must be one.
        let _ = client.pread(open, 0, 1 << 16);
        assert!(client.fstat(device).is_ok());
    });
}

fn clients_that_fill_the_backlog(path: &Path) -> Vec<std::os::fd::OwnedFd> {
    let address = SocketAddrUnix::new(path).expect("a short path");
    let client = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
        connect(&socket, &address).ok().map(|()| socket)
    };
    std::iter::from_fn(client).collect()
}

/// The other server may be stopped, and then would be waited for with the directory locked.
#[test]
fn a_server_whose_backlog_is_full_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let stopped = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&stopped, &SocketAddrUnix::new(&path).expect("a short path")).expect("bind");
    listen(&stopped, 0).expect("listen");
    let _stopped = UnixListener::from(stopped);
    let _clients = clients_that_fill_the_backlog(&path);

    let mut command = std::process::Command::new(Gofer::binary());
    command.arg("serve").arg("--root").arg(dir.path()).arg("--socket").arg(&path).stderr(Stdio::null());
    let mut gofer = Gofer::of(command.spawn().expect("gofer starts"));
    assert!(eventually(|| !gofer.is_alive()), "it waits");
    assert_eq!(gofer.child().wait().expect("status").code(), Some(1));
    assert!(path.exists(), "it is someone else's");
}
