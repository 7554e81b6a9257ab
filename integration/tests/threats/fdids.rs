//! Numbers of the wrong kind, closed, guessed, of another connection, and closed while they are in use.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gofer_integration::{Actor, Ask, Exchange, Listening, Served, new_in, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Mid};

/// Every message with a number at the front of its payload, and which kind it takes.
const TAKES: [(Mid, Kind); 27] = [
    (Mid::SET_STAT, Kind::Control),
    (Mid::WALK, Kind::Control),
    (Mid::WALK_STAT, Kind::Control),
    (Mid::OPEN_AT, Kind::Control),
    (Mid::OPEN_CREATE_AT, Kind::Control),
    (Mid::FSYNC, Kind::Open),
    (Mid::PWRITE, Kind::Open),
    (Mid::PREAD, Kind::Open),
    (Mid::MKDIR_AT, Kind::Control),
    (Mid::MKNOD_AT, Kind::Control),
    (Mid::SYMLINK_AT, Kind::Control),
    (Mid::LINK_AT, Kind::Control),
    (Mid::FSTAT_FS, Kind::Control),
    (Mid::FALLOCATE, Kind::Open),
    (Mid::READ_LINK_AT, Kind::Control),
    (Mid::CONNECT, Kind::Control),
    (Mid::CONNECT_WITH_CREDS, Kind::Control),
    (Mid::UNLINK_AT, Kind::Control),
    (Mid::RENAME_AT, Kind::Control),
    (Mid::RENAME_AT2, Kind::Control),
    (Mid::GETDENTS64, Kind::Open),
    (Mid::FGET_XATTR, Kind::Control),
    (Mid::FSET_XATTR, Kind::Control),
    (Mid::FLIST_XATTR, Kind::Control),
    (Mid::FREMOVE_XATTR, Kind::Control),
    (Mid::LISTEN, Kind::Bound),
    (Mid::ACCEPT, Kind::Bound),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Control,
    Open,
    Bound,
}

/// A payload that is in order but for its numbers.
fn payload(mid: Mid, fd: FdId) -> Vec<u8> {
    let fd = fd.0.to_le_bytes();
    match mid {
        Mid::FSYNC => [&[1, 0][..], &fd].concat(),
        Mid::PWRITE | Mid::PREAD => [&[0; 8][..], &fd, &[0; 8]].concat(),
        Mid::OPEN_CREATE_AT => [&fd[..], &[0; 20], &[1, 0, b'n']].concat(),
        Mid::MKDIR_AT => [&fd[..], &[0; 16], &[1, 0, b'n']].concat(),
        Mid::MKNOD_AT => [&fd[..], &[0; 24], &[1, 0, b'n']].concat(),
        Mid::SYMLINK_AT => [&fd[..], &[0; 8], &[1, 0, b'n', 1, 0, b't']].concat(),
        Mid::LINK_AT => [&fd[..], &fd, &[1, 0, b'n']].concat(),
        Mid::UNLINK_AT => [&fd[..], &[0; 4], &[1, 0, b'n']].concat(),
        Mid::RENAME_AT | Mid::RENAME_AT2 => [&fd[..], &fd, &[1, 0, b'n', 1, 0, b'm'], &[0; 4]].concat(),
        Mid::FGET_XATTR | Mid::FSET_XATTR => [&fd[..], &[0; 4], &[6, 0], b"user.x", &[0; 2]].concat(),
        Mid::FREMOVE_XATTR => [&fd[..], &[6, 0], b"user.x"].concat(),
        _ => [&fd[..], &[0; 64]].concat(),
    }
}

/// Threat: use FDIDs of the wrong kind, closed, guessed.
#[test]
fn a_number_of_the_wrong_kind_is_einval_and_an_unknown_one_ebadf() {
    over_both(
        &["--host-uds", "all"],
        |dir| fs::write(dir.join("f"), "").expect("a file"),
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(control, 2).expect("open");
            let (socket, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").expect("bind");
            let closed = t.client.walk_to(t.root, "f");
            t.client.close(&[closed]);
            for (mid, takes) in TAKES {
                for (fd, kind) in [(control, Kind::Control), (open, Kind::Open), (bound, Kind::Bound)] {
                    if kind != takes {
                        let outcome = t.client.exchange(mid.0, &payload(mid, fd)).err();
                        assert_eq!(outcome, Some(Errno::EINVAL), "{mid:?} takes {takes:?}, not {kind:?}");
                    }
                }
                for fd in [FdId(0), closed, FdId(bound.0 + 1000), FdId(1 << 32 | control.0), FdId(u64::MAX)] {
                    let outcome = t.client.exchange(mid.0, &payload(mid, fd)).err();
                    assert_eq!(outcome, Some(Errno::EBADF), "{mid:?} with {fd:?}");
                }
            }
            assert_eq!(t.client.fstat(bound), Err(Errno::EINVAL));
            assert_eq!(t.client.fstat(closed), Err(Errno::EBADF));
            // Closing what is not there is no error, and harms nothing that is.
            t.client.close(&[FdId(0), closed, closed, FdId(u64::MAX)]);
            assert!([control, open, socket.control_fd].iter().all(|fd| t.client.fstat(*fd).is_ok()));
        },
    );
}

/// Threat: use FDIDs of another connection.
#[test]
fn numbers_of_one_connection_mean_nothing_on_another() {
    let listening = Listening::with(&[], |dir| fs::write(dir.join("f"), "secret").expect("a file"));
    let ((owner, root), (thief, _)) = (listening.client(), listening.client());
    let file = owner.walk_to(root, "f");
    let (open, _) = owner.open(file, 0).expect("open");
    for thief in [&thief as &dyn Exchange, &thief.on_channel()] {
        for fd in [file, open] {
            for (mid, _) in TAKES {
                assert_eq!(thief.exchange(mid.0, &payload(mid, fd)).err(), Some(Errno::EBADF), "{mid:?}");
            }
        }
        thief.close(&[file, open]);
    }
    assert_eq!(owner.pread(open, 0, 6).as_deref(), Ok(&b"secret"[..]), "the owner's are still there");
}

/// Threat: close an FD while another RPC uses it.
#[test]
fn closing_what_another_request_uses_ends_in_success_or_ebadf() {
    let served = Served::with(&["--host-uds", "all"], |dir| {
        fs::create_dir_all(dir.join("d/e")).expect("directories");
        fs::write(dir.join("d/f"), vec![7; 4096]).expect("a file");
    });
    let baseline = served.descriptors();
    // The highest number that was seen; the closer takes what is near.
    let highest = Arc::new(AtomicU64::new(served.root.0 + 1));
    let closer = {
        let (channel, highest, root) = (served.client.on_channel(), Arc::clone(&highest), served.root.0);
        Actor::repeat(move || {
            let near = highest.load(Ordering::Relaxed);
            let fds: Vec<FdId> = (near.saturating_sub(4).max(root + 1)..near + 8).map(FdId).collect();
            channel.close(&fds);
        })
    };
    let user = served.client.on_channel();
    for n in 0..1500 {
        use_numbers(&user, served.root, &highest);
        use_numbers(&served.client, served.root, &highest);
        assert!(!closer.has_failed(), "round {n}");
    }
    drop(closer);
    let all: Vec<FdId> = (served.root.0 + 1..highest.load(Ordering::Relaxed) + 100).map(FdId).collect();
    all.chunks(60_000).for_each(|some| served.client.close(some));
    // The memory of the channels, and their descriptor sockets.
    let channels = 1 + 2;
    served.gofer.assert_descriptors(baseline + channels, "descriptors leaked");
}

/// Makes numbers and uses them, though they may be gone at any moment.
fn use_numbers(client: &dyn Exchange, root: FdId, highest: &AtomicU64) {
    fn expected<T>(outcome: Result<T, Errno>) -> Option<T> {
        // A name is left over where the number of its directory was gone before it could be removed.
        let allowed = |errno| matches!(errno, Errno::EBADF | Errno::EEXIST | Errno::EADDRINUSE | Errno::ENOENT);
        outcome.map_err(|errno| assert!(allowed(errno), "{errno:?}")).ok()
    }
    let Some((_, inodes)) = expected(client.walk(root, &["d", "f"])) else { return };
    let [dir, file] = [inodes[0].control_fd, inodes[1].control_fd];
    highest.store(file.0, Ordering::Relaxed);
    if let Some((open, _)) = expected(client.open(file, 2)) {
        expected(client.pread(open, 0, 4096));
        expected(client.pwrite(open, 0, &[7; 512]));
        expected(client.fstat(open));
    }
    if let Some((open, _)) = expected(client.open(dir, 0)) {
        expected(client.getdents(open, -65_536));
    }
    expected(client.link(dir, file, "l"));
    expected(client.bind(new_in(dir, FileType::Socket, 0o755), 1, "s"));
    for name in ["l", "s"] {
        expected(client.unlink(dir, name));
    }
}

/// Threat: use FDIDs that are guessed. Abnormal input: FDIDs guessed before they are announced.
#[test]
fn a_number_that_is_closed_before_it_is_announced_harms_no_one() {
    let served = Served::new();
    let baseline = served.descriptors();
    let next = Arc::new(AtomicU64::new(served.root.0 + 1));
    let guesser = {
        let (channel, next) = (served.client.on_channel(), Arc::clone(&next));
        Actor::repeat(move || {
            let near = next.load(Ordering::Relaxed);
            let fds: Vec<FdId> = (near..near + 4).map(FdId).collect();
            channel.close(&fds);
        })
    };
    for n in 0..1500 {
        let name = format!("f{n}");
        // Whatever becomes of the numbers: the reply is whole.
        let (child, open, fds) = served.client.create(served.root, &name).expect("create");
        assert_eq!((child.stat.size, fds.len(), open.0), (0, 1, child.control_fd.0 + 1));
        next.store(open.0 + 1, Ordering::Relaxed);
        served.client.unlink(served.root, &name).expect("unlink");
        served.client.close(&[child.control_fd, open]);
    }
    drop(guesser);
    served.gofer.assert_descriptors(baseline + 2, "descriptors leaked");
}
