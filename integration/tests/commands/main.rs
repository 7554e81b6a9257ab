//! The commands that people type: what they print, how they end, and what they leave behind.

mod client;
mod serve;

use std::process::{Command, Output};

use gofer_integration::Gofer;

/// Runs `gofer` to its end.
fn gofer(args: &[&str]) -> Output {
    Command::new(Gofer::binary()).args(args).output().expect("gofer starts")
}

/// Standard error of a run that must fail with exit code 1 and say one line.
fn sentence(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    let complaint: Vec<_> = text.lines().filter(|line| line.starts_with("gofer: cannot")).collect();
    assert_eq!(complaint.len(), 1, "one clear sentence in: {text}");
    complaint.concat()
}
