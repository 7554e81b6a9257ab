//! Where the commands print to a place that takes nothing.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

use gofer_integration::{Gofer, Listening};

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("/dev/full").into()
}

/// A pipe whose reader is gone.
fn unread() -> Stdio {
    std::io::pipe().expect("a pipe").1.into()
}

fn client(server: &Listening, args: &[&str], out: Stdio, err: Stdio) -> Output {
    let mut command = Command::new(Gofer::binary());
    command.arg("client").arg("--socket").arg(server.socket()).args(args);
    command.stdout(out).stderr(err).spawn().expect("it starts").wait_with_output().expect("it ends")
}

#[test]
fn a_full_or_unread_standard_output_is_a_failure_in_one_sentence() {
    let server = Listening::with(&[], |dir| std::fs::write(dir.join("f"), "hello").expect("a file"));
    let commands: [&[&str]; 8] = [
        &["ls"],
        &["ls", "-l"],
        &["--json", "ls"],
        &["stat", "f"],
        &["--json", "stat", "f"],
        &["cat", "f"],
        &["--json", "mv", "f", "f"],
        &["ping", "-n", "1"],
    ];
    for args in commands {
        for out in [full, unread] {
            let output = client(&server, args, out(), Stdio::piped());
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
            assert!(text.starts_with("gofer: cannot write") && text.lines().count() == 1, "{args:?}: {text}");
        }
    }
}

#[test]
fn a_full_standard_error_does_not_change_the_exit_code() {
    let server = Listening::with(&[], |_| ());
    for err in [full, unread] {
        let output = client(&server, &["stat", "none"], Stdio::null(), err());
        assert_eq!(output.status.code(), Some(1));
    }
}
