//! What is mounted, where, and what may be written there.

use crate::arms::{outcome, same};

#[test]
fn a_bound_directory_takes_writes_to_the_host() {
    same(|sandbox| {
        let host = tempfile::tempdir().expect("a directory");
        let sandbox = sandbox.bind(host.path(), "/data", &["rbind", "rw"]);
        let output = outcome(&sandbox.run("echo out > /data/file && cat /data/file"));
        assert_eq!(output, "Some(0): out\n");
        assert_eq!(std::fs::read(host.path().join("file")).expect("written"), b"out\n");
        output
    });
}

#[test]
fn a_bound_directory_that_is_read_only_takes_no_writes() {
    same(|sandbox| {
        let host = tempfile::tempdir().expect("a directory");
        let sandbox = sandbox.bind(host.path(), "/data", &["rbind", "ro"]);
        let output = outcome(&sandbox.run("echo out 2>/dev/null > /data/file || echo refused"));
        assert!(!host.path().join("file").exists());
        assert!(output.ends_with("refused\n"), "{output}");
        output
    });
}

#[test]
fn a_read_only_root_takes_no_writes() {
    same(|sandbox| {
        let sandbox = sandbox.flag("--overlay2=none").read_only();
        let output = outcome(&sandbox.run("echo out > /data/file || echo refused"));
        assert!(!sandbox.root().join("data/file").exists());
        assert!(output.ends_with("refused\n"), "{output}");
        output
    });
}
