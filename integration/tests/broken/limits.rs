//! Limits that an administrator sets on the process, and that a client runs it into.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use gofer_integration::child::{can_be_nobody, limit};
use gofer_integration::client::encoded;
use gofer_integration::process::eventually;
use gofer_integration::{Gofer, Raw, Requests, Served, each_way};
use gofer_protocol::message::{ErrorReply, FAllocateRequest};
use gofer_protocol::record::StatxMask;
use gofer_protocol::{Errno, Mid};
use rustix::process::Resource;

use super::terminate;

/// A user of whom no other process is, for a limit that counts threads of all processes of a user.
const SOLITARY: u32 = 65_533;

/// By default the kernel ends a process that writes beyond `RLIMIT_FSIZE`.
#[test]
fn beyond_the_largest_file_that_the_process_may_write_a_client_gets_efbig_and_nobody_dies() {
    // Room for the windows of four channels, which are files too.
    const LARGEST: u64 = 8 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let mut served = Served::started(dir.path(), &[], |command| limit(command, Resource::Fsize, LARGEST));
    let (inode, open, _) = served.client.create(served.root, "f").expect("create");
    each_way(&served.client, |client| {
        assert_eq!(client.pwrite(open, LARGEST, b"x"), Err(Errno::EFBIG));
        let reply = client.set_stat(inode.control_fd, |set| (set.mask, set.size) = (StatxMask::SIZE, LARGEST + 1));
        assert_eq!(reply.expect("a reply").failure_errno, Errno::EFBIG.raw());
        let allocate = FAllocateRequest { fd: open, mode: 0, offset: 0, length: LARGEST + 1 };
        let answer = client.try_exchange(Mid::FALLOCATE.0, &encoded(&allocate)).expect("an answer");
        assert_eq!(answer.decode::<ErrorReply>().errno, Errno::EFBIG.raw());
        assert_eq!(client.pwrite(open, LARGEST - 1, b"x"), Ok(1));
    });
    assert!(served.gofer.is_alive());
}

/// The limit counts the threads of all processes of a user, and a client has five.
#[test]
fn a_server_that_gets_no_further_thread_still_ends_in_good_order() {
    if !can_be_nobody() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let writable = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), writable).expect("a mode");
    let socket = dir.path().join("s");
    let mut command = Command::new(Gofer::binary());
    command.arg("serve").arg("--root").arg(dir.path()).arg("--socket").arg(&socket);
    limit(command.uid(SOLITARY).gid(SOLITARY), Resource::Nproc, 4);
    let mut gofer = Gofer::of(command.stderr(Stdio::null()).spawn().expect("gofer starts"));
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "the server listens");
    let client = Raw::new(UnixStream::connect(&socket).expect("the server listens"));
    let root = client.mount();

    // There are the main thread, that of the connection, and perhaps one that is about to end.
    let channels: Vec<_> = std::iter::from_fn(|| client.channel().ok()).collect();
    assert!(channels.len() < 3, "the limit holds");
    assert!(client.fstat(root).is_ok());
    terminate(&gofer);
    assert_eq!(gofer.child().wait().expect("it ends").code(), Some(0));
    assert!(!socket.exists());
}

/// As above, for a server of one client, which needs two more threads: it says so, and ends.
#[test]
fn a_server_that_gets_no_thread_to_start_with_fails_with_exit_code_1() {
    if !can_be_nobody() {
        return;
    }
    for threads in 1..=2 {
        let dir = tempfile::tempdir().expect("a directory");
        let alone = SOLITARY - threads;
        let (mut gofer, _client) = Gofer::serve_with(dir.path(), &[], |command| {
            limit(command.uid(alone).gid(alone), Resource::Nproc, threads.into())
        });
        assert_eq!(gofer.child().wait().expect("it ends").code(), Some(1), "{threads} threads");
    }
}
