//! Limits that an administrator sets on the process, and that a client runs it into.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use gofer_integration::child::{can_be_nobody, limit};
use gofer_integration::{Ask, Gofer, Raw, Served, change, eventually, over_both_on};
use gofer_protocol::Errno;
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::StatxMask;
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
    let start = || Served::started(dir.path(), &[], |command| limit(command, Resource::Fsize, LARGEST));
    over_both_on(start, |trial| {
        let client = trial.client;
        let (inode, open, _) = client.create(trial.root, "f").expect("create");
        assert_eq!(client.pwrite(open, LARGEST, b"x"), Err(Errno::EFBIG));
        let larger = SetStatRequest { size: LARGEST + 1, ..change(inode.control_fd, StatxMask::SIZE) };
        assert_eq!(client.set_stat(&larger).expect("a reply").failure_errno, Errno::EFBIG.raw());
        assert_eq!(client.fallocate(open, 0, 0, LARGEST + 1), Err(Errno::EFBIG));
        assert_eq!(client.pwrite(open, LARGEST - 1, b"x"), Ok(1));
        client.unlink(trial.root, "f").expect("the server lives");
    });
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

/// As above, for a server of one client, which needs one more thread: it says so, and ends.
#[test]
fn a_server_that_gets_no_thread_to_start_with_fails_with_exit_code_1() {
    if !can_be_nobody() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let alone = SOLITARY - 1;
    let (mut gofer, _client) =
        Gofer::serve_with(dir.path(), &[], |command| limit(command.uid(alone).gid(alone), Resource::Nproc, 1));
    assert_eq!(gofer.child().wait().expect("it ends").code(), Some(1));
}

/// Whoever may open a directory may lock it for ever.
#[test]
fn a_directory_that_someone_keeps_locked_is_a_sentence_after_a_while() {
    let dir = tempfile::tempdir().expect("a directory");
    let held = std::fs::File::open(dir.path()).expect("the directory");
    held.lock().expect("a lock");
    let mut command = Command::new(Gofer::binary());
    command.arg("serve").arg("--root").arg(dir.path()).arg("--socket").arg(dir.path().join("s"));
    let output = command.output().expect("gofer starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("keeps its directory locked"));
}
