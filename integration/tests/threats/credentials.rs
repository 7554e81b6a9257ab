//! Connecting under another identity than the server's. Needs root, to have identities to lend.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gofer_integration::child::NOBODY;
use gofer_integration::{Ask, Gofer, Served, Trial, nothing, over_both, over_both_on, over_both_unprivileged};
use gofer_protocol::codec::Padding;
use gofer_protocol::message::ConnectWithCredsRequest;
use gofer_protocol::{Errno, FdId, Gid, Uid};
use rustix::net::sockopt::socket_peercred;

fn with_creds(fd: FdId, uid: u32, gid: u32) -> ConnectWithCredsRequest {
    ConnectWithCredsRequest { fd, sock_type: 1, padding: Padding, uid: Uid(uid), gid: Gid(gid) }
}

fn socket(t: &Trial<'_>) -> UnixListener {
    let listener = UnixListener::bind(t.host("s")).expect("a socket");
    fs::set_permissions(t.host("s"), PermissionsExt::from_mode(0o777)).expect("a mode");
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
    over_both(&["--host-uds", "open"], nothing, |t| {
        let listener = socket(t);
        let file = t.client.walk_to(t.root, "s");
        let before = identities(t.gofer());
        assert_eq!(before.len(), 1);
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        for (uid, gid, seen) in [
            (1000, 1001, (1000, 1001)),
            (u32::MAX, 1001, (own.0, 1001)),
            (1000, u32::MAX, (1000, own.1)),
            (u32::MAX, u32::MAX, own),
        ] {
            let answer = t.client.ask(&with_creds(file, uid, gid)).expect("a connection");
            assert_eq!((answer.fds.len(), peer(&listener)), (1, seen));
            t.client.connect(file, 1).expect("a connection");
            assert_eq!(peer(&listener), own, "the next request is the server's own");
        }
        assert_eq!(identities(t.gofer()), before);
    });
}

/// Threat: privilege confusion in ConnectWithCreds: the mode of the socket's file counts for the ids, not the server.
#[test]
fn a_socket_that_the_ids_may_not_use_is_eacces() {
    over_both(&["--host-uds", "open"], nothing, |t| {
        let listener = socket(t);
        let file = t.client.walk_to(t.root, "s");
        let before = identities(t.gofer());
        for mode in [0o600, 0o000, 0o771] {
            fs::set_permissions(t.host("s"), PermissionsExt::from_mode(mode)).expect("a mode");
            assert_eq!(t.client.ask(&with_creds(file, 1000, 1001)).err(), Some(Errno::EACCES), "mode {mode:o}");
            t.client.connect(file, 1).expect("the server itself may");
            peer(&listener);
        }
        assert_eq!(identities(t.gofer()), before);
    });
}

/// Threat: privilege confusion in ConnectWithCreds: the server's supplementary groups are its own.
#[test]
fn the_groups_of_the_server_open_no_socket_to_the_ids() {
    const GROUP: u32 = 4242;
    let dir = tempfile::tempdir().expect("a directory");
    let listener = UnixListener::bind(dir.path().join("s")).expect("a socket");
    std::os::unix::fs::chown(dir.path().join("s"), Some(0), Some(GROUP)).expect("an owner, which needs root");
    fs::set_permissions(dir.path().join("s"), PermissionsExt::from_mode(0o770)).expect("a mode");
    let start = || Served::started(dir.path(), &["--host-uds", "open"], |command| in_group(command, GROUP));
    over_both_on(start, |t| {
        let file = t.client.walk_to(t.root, "s");
        assert!(identities(t.gofer()).iter().all(|ids| ids.contains(&GROUP.to_string())), "the server is in the group");
        assert_eq!(t.client.ask(&with_creds(file, 1000, 1001)).err(), Some(Errno::EACCES));
        assert!(t.client.ask(&with_creds(file, 1000, GROUP)).is_ok(), "the group that was asked for does");
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
    over_both_unprivileged(&["--host-uds", "open"], nothing, |t| {
        let listener = socket(t);
        let file = t.client.walk_to(t.root, "s");
        let before = identities(t.gofer());
        for (uid, gid) in [(1000, NOBODY), (NOBODY, 1000), (0, 0), (1000, 1000), (0, u32::MAX), (u32::MAX, 0)] {
            assert_eq!(t.client.ask(&with_creds(file, uid, gid)).err(), Some(Errno::EPERM), "{uid}:{gid}");
            assert!(listener.accept().is_err(), "connected nevertheless, as {uid}:{gid}");
        }
        for (uid, gid) in [(NOBODY, NOBODY), (u32::MAX, u32::MAX), (NOBODY, u32::MAX)] {
            t.client.ask(&with_creds(file, uid, gid)).expect("its own ids");
            assert_eq!(peer(&listener), (NOBODY, NOBODY));
        }
        assert_eq!(identities(t.gofer()), before);
    });
}
