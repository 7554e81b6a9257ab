//! How a server ends, though its clients do not want it to.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use gofer_integration::{Gofer, Listening, Served, eventually};
use gofer_protocol::Mid;

use super::terminate;

/// Sends requests until the server no longer takes them, because nobody reads its replies.
fn stall(stream: &UnixStream) {
    let frame = [&[0; 4][..], &Mid::MOUNT.0.to_le_bytes(), &[0; 2]].concat();
    let mut stream = stream;
    stream.set_nonblocking(true).expect("a non-blocking socket");
    loop {
        match stream.write(&frame) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // It may only be slow.
                std::thread::sleep(std::time::Duration::from_millis(200));
                if stream.write(&frame).is_err() {
                    return;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_client_that_reads_no_replies_does_not_keep_a_server_from_ending() {
    let mut server = Listening::with(&[], |_| ());
    let (client, _) = server.client();
    stall(&client.stream);
    terminate(&server.gofer);
    assert!(eventually(|| !server.gofer.is_alive()), "it waits for ever");
    assert_eq!(server.gofer.child().wait().expect("status").code(), Some(0));
    assert!(!server.socket().exists());
}

#[test]
fn the_only_client_does_not_keep_its_server_from_ending_by_reading_no_replies() {
    let Served { client, mut gofer, .. } = Served::new();
    stall(&client.stream);
    terminate(&gofer);
    assert!(eventually(|| !gofer.is_alive()), "it waits for ever");
    assert_eq!(gofer.child().wait().expect("status").code(), Some(0));
}

/// The file of the server that takes over may get the inode number that the old one's had.
#[test]
fn a_server_that_lingers_leaves_the_socket_of_its_successor_alone() {
    let mut old = Listening::with(&[], |_| ());
    let (client, _) = old.client();
    stall(&client.stream);
    let before = fs::symlink_metadata(old.socket()).expect("a socket").ino();
    terminate(&old.gofer);
    assert!(eventually(|| UnixStream::connect(old.socket()).is_err()), "it listens on");

    let mut command = Command::new(Gofer::binary());
    command.arg("serve").arg("--root").arg(old.path()).arg("--socket").arg(old.socket());
    let _new = Gofer::of(command.stderr(Stdio::null()).spawn().expect("gofer starts"));
    assert!(eventually(|| UnixStream::connect(old.socket()).is_ok()), "the successor listens");
    let after = fs::symlink_metadata(old.socket()).expect("a socket").ino();
    assert_ne!(before, after, "the old server cannot tell the two apart");

    drop(client);
    assert!(old.gofer.child().wait().expect("it ends").success());
    assert!(UnixStream::connect(old.socket()).is_ok(), "it removed its successor's socket");
}
