//! Connecting under another identity than the server's. Needs root, to have identities to lend.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gofer_integration::{Gofer, Raw, Requests, Served, each_way};
use gofer_protocol::codec::Padding;
use gofer_protocol::message::ConnectWithCredsRequest;
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::net::sockopt::socket_peercred;

fn with_creds(fd: FdId, uid: u32, gid: u32) -> ConnectWithCredsRequest {
    ConnectWithCredsRequest { fd, sock_type: 1, padding: Padding, uid: Uid(uid), gid: Gid(gid) }
}

fn socket(served: &Served) -> UnixListener {
    let listener = UnixListener::bind(served.path().join("s")).expect("a socket");
    fs::set_permissions(served.path().join("s"), PermissionsExt::from_mode(0o777)).expect("a mode");
    listener.set_nonblocking(true).expect("a non-blocking socket");
    listener
}

fn peer(listener: &UnixListener) -> (u32, u32) {
    let (accepted, _) = listener.accept().expect("a connection");
    let peer = socket_peercred(&accepted).expect("a peer");
    (peer.uid.as_raw(), peer.gid.as_raw())
}

/// Real, effective, saved and file-system ids, and groups, of every thread.
fn identities(gofer: &Gofer) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", gofer.pid())).expect("threads");
    let status = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let ids = |status: String| {
        let lines =
            status.lines().filter(|line| ["Uid:", "Gid:", "Groups:", "Cap"].iter().any(|at| line.starts_with(at)));
        lines.collect::<Vec<_>>().join("\n")
    };
    status.map(ids).collect()
}

/// Threat: privilege confusion in ConnectWithCreds: the peer sees the ids, and the server keeps its own.
#[test]
fn the_peer_sees_the_ids_and_the_server_stays_who_it_is() {
    let served = Served::with(&["--host-uds", "open"], |_| ());
    let listener = socket(&served);
    let file = served.client.walk_to(served.root, "s");
    let before = identities(&served.gofer);
    assert_eq!(before.len(), 1);
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    each_way(&served.client, |client| {
        for (uid, gid, seen) in [
            (1000, 1001, (1000, 1001)),
            (u32::MAX, 1001, (own.0, 1001)),
            (1000, u32::MAX, (1000, own.1)),
            (u32::MAX, u32::MAX, own),
        ] {
            let answer = client.ask(&with_creds(file, uid, gid)).expect("a connection");
            assert_eq!((answer.fds.len(), peer(&listener)), (1, seen));
            client.connect(file).expect("a connection");
            assert_eq!(peer(&listener), own, "the next request is the server's own");
        }
    });
    assert_eq!(identities(&served.gofer), before);
}

/// Threat: privilege confusion in ConnectWithCreds: the mode of the socket's file counts for the ids, not the server.
#[test]
fn a_socket_that_the_ids_may_not_use_is_eacces() {
    let served = Served::with(&["--host-uds", "open"], |_| ());
    let listener = socket(&served);
    let file = served.client.walk_to(served.root, "s");
    let before = identities(&served.gofer);
    each_way(&served.client, |client| {
        for mode in [0o600, 0o000, 0o771] {
            fs::set_permissions(served.path().join("s"), PermissionsExt::from_mode(mode)).expect("a mode");
            assert_eq!(client.ask(&with_creds(file, 1000, 1001)).err(), Some(Errno::EACCES), "mode {mode:o}");
            client.connect(file).expect("the server itself may");
            peer(&listener);
        }
    });
    assert_eq!(identities(&served.gofer), before);
}

/// Threat: privilege confusion in ConnectWithCreds: the server's supplementary groups are its own.
#[test]
fn the_groups_of_the_server_open_no_socket_to_the_ids() {
    const GROUP: u32 = 4242;
    let dir = tempfile::tempdir().expect("a directory");
    let (gofer, stream) = Gofer::serve_with(dir.path(), &["--host-uds", "open"], |command| in_group(command, GROUP));
    let listener = UnixListener::bind(dir.path().join("s")).expect("a socket");
    std::os::unix::fs::chown(dir.path().join("s"), Some(0), Some(GROUP)).expect("an owner, which needs root");
    fs::set_permissions(dir.path().join("s"), PermissionsExt::from_mode(0o770)).expect("a mode");
    let client = Raw::new(stream);
    let root = client.mount();
    let file = client.walk_to(root, "s");
    assert!(identities(&gofer).iter().all(|ids| ids.contains(&GROUP.to_string())), "the server is in the group");
    each_way(&client, |client| {
        assert_eq!(client.ask(&with_creds(file, 1000, 1001)).err(), Some(Errno::EACCES));
        assert!(client.ask(&with_creds(file, 1000, GROUP)).is_ok(), "the group that was asked for does");
        listener.accept().expect("a connection");
    });
}

/// Starts a command in a supplementary group.
#[allow(unsafe_code, reason = "groups are set between fork and exec")]
fn in_group(command: &mut Command, group: u32) -> &mut Command {
    let set_group = move || {
        // SAFETY: setgroups(2) reads one group from a place that outlives the call; after fork there is one thread.
        match unsafe { libc::setgroups(1, &raw const group) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one async-signal-safe system call, and neither allocates nor locks.
    unsafe { command.pre_exec(set_group) }
}

/// Threat: privilege confusion in ConnectWithCreds: fail rather than fall back.
#[test]
fn a_server_that_cannot_take_on_the_ids_refuses_instead_of_lending_its_own() {
    const NOBODY: u32 = 65_534;
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let listener = UnixListener::bind(dir.path().join("s")).expect("a socket");
    fs::set_permissions(dir.path().join("s"), PermissionsExt::from_mode(0o777)).expect("a mode");
    listener.set_nonblocking(true).expect("a non-blocking socket");
    let (gofer, stream) =
        Gofer::serve_with(dir.path(), &["--host-uds", "open"], |command| command.uid(NOBODY).gid(NOBODY));
    let client = Raw::new(stream);
    let root = client.mount();
    let file = client.walk_to(root, "s");
    let before = identities(&gofer);
    each_way(&client, |client| {
        for (uid, gid) in [(1000, NOBODY), (NOBODY, 1000), (0, 0), (1000, 1000), (0, u32::MAX), (u32::MAX, 0)] {
            assert_eq!(client.ask(&with_creds(file, uid, gid)).err(), Some(Errno::EPERM), "{uid}:{gid}");
            assert!(listener.accept().is_err(), "connected nevertheless, as {uid}:{gid}");
        }
        for (uid, gid) in [(NOBODY, NOBODY), (u32::MAX, u32::MAX), (NOBODY, u32::MAX)] {
            client.ask(&with_creds(file, uid, gid)).expect("its own ids");
            assert_eq!(peer(&listener), (NOBODY, NOBODY));
        }
    });
    assert_eq!(identities(&gofer), before);
}
