//! `gofer serve`: its socket, its signals, its errors.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gofer_integration::child::{as_nobody, can_be_nobody};
use gofer_integration::mounts::run;
use gofer_integration::{Ask, Gofer, Listening, Raw, Served, eventually, nothing};
use gofer_protocol::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::{gofer, sentence};

fn start(root: &Path, socket: &Path, flags: &[&str]) -> Child {
    let mut command = Command::new(Gofer::binary());
    command.arg("serve").arg("--root").arg(root).arg("--socket").arg(socket).args(flags);
    command.stderr(Stdio::piped()).spawn().expect("gofer starts")
}

fn listens(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

fn signal(gofer: &Gofer, signal: Signal) {
    kill_process(Pid::from_raw(gofer.pid().cast_signed()).expect("a pid"), signal).expect("a signal");
}

#[test]
fn the_socket_is_never_open_to_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let seen_open = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if let Ok(metadata) = fs::symlink_metadata(&socket)
                    && metadata.permissions().mode() & 0o7777 != 0o600
                {
                    seen_open.store(true, Ordering::Relaxed);
                }
            }
        });
        for _ in 0..20 {
            let gofer = Gofer::of(start(dir.path(), &socket, &[]));
            assert!(eventually(|| socket.exists()));
            drop(gofer);
            let _ = fs::remove_file(&socket);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(!seen_open.load(Ordering::Relaxed));
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    // A socket whose server died without removing it.
    drop(UnixListener::bind(&socket).expect("a socket"));
    let first = Gofer::of(start(dir.path(), &socket, &[]));
    assert!(eventually(|| listens(&socket)));

    let second = start(dir.path(), &socket, &[]).wait_with_output().expect("it ends");
    let complaint = sentence(&second);
    assert!(complaint.contains("another server listens there"), "{complaint}");
    assert!(listens(&socket), "the first one goes on");
    drop(first);
}

#[test]
fn of_many_servers_that_want_one_stale_socket_one_gets_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    drop(UnixListener::bind(&socket).expect("a socket"));
    let mut servers: Vec<Gofer> = (0..8).map(|_| Gofer::of(start(dir.path(), &socket, &[]))).collect();
    assert!(eventually(|| servers.iter_mut().filter_map(|gofer| gofer.is_alive().then_some(())).count() == 1));
    assert!(eventually(|| listens(&socket)));
}

#[test]
fn what_is_not_a_socket_is_not_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("precious");
    fs::write(&file, "data").expect("a file");
    let output = start(dir.path(), &file, &[]).wait_with_output().expect("it ends");
    assert!(sentence(&output).contains("not a socket"));
    assert_eq!(fs::read_to_string(&file).expect("still there"), "data");
}

#[test]
fn terminate_and_interrupt_remove_the_socket_and_exit_with_0() {
    for kind in [Signal::TERM, Signal::INT] {
        let mut server = Listening::with(&[], nothing);
        let _client = server.client();
        signal(&server.gofer, kind);
        let status = server.gofer.child().wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{kind:?}");
        assert!(!server.socket().exists(), "{kind:?}");
    }
}

#[test]
fn a_socket_that_is_someone_elses_by_now_is_left_alone() {
    let mut server = Listening::with(&[], nothing);
    fs::remove_file(server.socket()).expect("it is there");
    let _other = UnixListener::bind(server.socket()).expect("a socket");
    signal(&server.gofer, Signal::TERM);
    assert!(server.gofer.child().wait().expect("it ends").success());
    assert!(fs::symlink_metadata(server.socket()).expect("still there").file_type().is_socket());
}

#[test]
fn a_request_that_runs_when_the_signal_comes_is_answered() {
    // A write to a file system that takes its time: a file of 64 MiB, synchronised while the signal arrives.
    let mut server = Listening::with(&[], nothing);
    let (client, root) = server.client();
    let (_, open, _) = client.create(root, "big").expect("create");
    let file = fs::OpenOptions::new().write(true).open(server.path().join("big")).expect("the file");
    file.set_len(64 << 20).expect("a size");
    let mut request = Vec::new();
    request.extend_from_slice(&1u16.to_le_bytes());
    request.extend_from_slice(&open.0.to_le_bytes());
    client.send(gofer_protocol::Mid::FSYNC.0, &request);
    std::thread::sleep(Duration::from_millis(20));
    signal(&server.gofer, Signal::TERM);
    let answer = client.receive().expect("an answer before the end");
    assert_eq!(answer.mid, gofer_protocol::Mid::FSYNC);
    assert!(client.receive().is_none(), "then the end");
    assert_eq!(server.gofer.child().wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_server_on_an_inherited_socket_ends_with_its_client() {
    let Served { client, mut gofer, .. } = served();
    drop(client);
    assert!(eventually(|| !gofer.is_alive()));
    assert_eq!(gofer.child().wait().expect("it ended").code(), Some(0));
}

fn served() -> Served {
    Served::new()
}

#[test]
fn many_clients_are_served_at_once_and_beyond_the_limit_refused() {
    let server = Listening::with(&["--max-clients", "50"], |dir| fs::write(dir.join("f"), "x").expect("a file"));
    let clients: Vec<_> = (0..50).map(|_| server.client()).collect();
    for (client, root) in &clients {
        assert_eq!(client.fstat(client.walk_to(*root, "f")).expect("stat").size, 1);
    }
    let refused = Raw::new(UnixStream::connect(server.socket()).expect("the kernel accepts"));
    assert!(refused.receive().is_none(), "the connection is closed");
    drop(clients);
    assert!(eventually(|| server.gofer.descriptors().len() < 20), "what they held is closed");
    let (client, root) = server.client();
    assert_eq!(client.fstat(root).map(|stat| stat.ino), Ok(fs::metadata(server.path()).expect("there").ino()));
}

#[test]
fn a_client_at_its_limit_gets_emfile_and_goes_on_when_it_has_closed_some() {
    let served = Served::with(&["--max-fds", "10"], |dir| {
        (0..20).for_each(|number| fs::write(dir.join(number.to_string()), "").expect("a file"));
    });
    let mut held = Vec::new();
    let refused = loop {
        match served.client.walk(served.root, &[held.len().to_string().as_bytes()]) {
            Ok((_, inodes)) => held.push(inodes[0].control_fd),
            Err(errno) => break errno,
        }
    };
    assert_eq!(refused, Errno::EMFILE);
    // The root is one of the ten.
    assert_eq!(held.len(), 9);
    assert_eq!(served.client.create(served.root, "new").map(|_| ()), Err(Errno::EMFILE));
    assert!(!served.path().join("new").exists(), "nothing was made");
    served.client.close(&held[..2]);
    assert!(served.client.create(served.root, "new").is_ok());
}

#[test]
fn each_failure_is_one_sentence_with_exit_code_1() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_str().expect("text");
    let long = format!("{root}/{}", "x".repeat(120));
    let missing = format!("{root}/missing");
    let nowhere = format!("{root}/nowhere/s");
    let socket = format!("{root}/s");
    let cases = [
        (vec!["serve", "--root", &missing, "--socket", &socket], "missing: No such file"),
        (vec!["serve", "--root", root, "--socket", &long], "too long"),
        (vec!["serve", "--root", root, "--socket", &nowhere], "nowhere/s: No such file"),
        (vec!["serve", "--root", root, "--fd", "77"], "--fd 77: it is not open"),
        (vec!["serve", "--root", root, "--fd", "0"], "--fd 0: standard input"),
        (vec!["client", "--socket", &missing, "ls"], "missing"),
    ];
    for (args, words) in cases {
        let complaint = sentence(&gofer(&args));
        assert!(complaint.contains(words), "{args:?}: {complaint}");
    }
}

#[test]
fn a_user_without_the_right_to_a_directory_is_told_so() {
    if !can_be_nobody() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("secret");
    fs::create_dir(&root).expect("a directory");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("a mode");
    let home = tempfile::tempdir().expect("a directory");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("a mode");
    let binary = home.path().join("gofer");
    // A copy that others can run. By another process, lest a child of another test hold it open for writing when it is
    // to be run.
    run("cp", [Gofer::binary(), binary.clone()]);
    let mut command = Command::new(&binary);
    as_nobody(&mut command).current_dir("/");
    command.args(["serve", "--root"]).arg(&root).arg("--socket").arg(home.path().join("s"));
    let complaint = sentence(&command.output().expect("gofer starts"));
    assert!(complaint.contains("secret: Permission denied"), "{complaint}");

    let mut command = Command::new(&binary);
    as_nobody(&mut command).current_dir("/");
    command.args(["serve", "--root", "/usr", "--socket"]).arg(home.path().join("s"));
    let complaint = sentence(&command.output().expect("gofer starts"));
    assert!(complaint.contains("Permission denied"), "{complaint}");
}

#[test]
fn a_wrong_command_line_ends_with_usage_and_exit_code_2() {
    for args in [
        &["serve"][..],
        &["serve", "--root", "/tmp"],
        &["serve", "--root", "/tmp", "--socket", "/tmp/s", "--fd", "3"],
        &["serve", "--root", "/tmp", "--fd", "three"],
        &["serve", "--root", "/tmp", "--fd", "3", "--host-uds", "perhaps"],
        &["serve", "--root", "/tmp", "--fd", "3", "--max-fds", "0"],
        &["client", "ls"],
        &["client", "--socket", "s", "mkdir", "--mode", "9", "d"],
        &["frobnicate"],
        &[],
    ] {
        let output = gofer(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains("Usage") || text.contains("try '--help'"), "{args:?}: {text}");
    }
    assert!(gofer(&["--help"]).status.success());
    assert!(gofer(&["serve", "--help"]).status.success());
}

#[test]
fn it_says_that_it_is_not_confined() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let child = start(dir.path(), &socket, &[]);
    assert!(eventually(|| listens(&socket)));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().filter(|line| line.contains("unconfined")).count(), 1, "{text}");
}

#[test]
fn starting_takes_no_time_to_speak_of() {
    // No claim, but a server that looks at every file of its tree first would be noticed.
    let start = Instant::now();
    let served = Served::new();
    eprintln!("exec to first Mount reply: {:?}", start.elapsed());
    drop(served);
}
