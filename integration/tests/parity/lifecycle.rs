//! Containers that run, or are created, started, entered and deleted.

use crate::arms::{outcome, same};

#[test]
fn run_ends_with_the_status_of_its_command() {
    same(|sandbox| {
        let output = outcome(&sandbox.run("echo hello; exit 7"));
        assert_eq!(output, "Some(7): hello\n");
        output
    });
}

#[test]
fn a_started_container_can_be_entered_and_deleted() {
    same(|sandbox| {
        sandbox.start("sleep 1000");
        let output = outcome(&sandbox.exec("echo in > /tmp/file && cat /tmp/file"));
        assert_eq!(output, "Some(0): in\n");
        assert_eq!(sandbox.delete().status.code(), Some(0));
        output
    });
}
