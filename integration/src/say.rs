//! What a test has to say though it passes: past the test runner's capture, so that people see it.

use std::io::Write;

/// Says that a test did not run, and why. With `GOFER_NO_SKIP` set, that is a failure.
///
/// # Panics
/// If it must not be skipped.
pub fn skipped(why: impl std::fmt::Display) {
    assert!(std::env::var_os("GOFER_NO_SKIP").is_none(), "may not be skipped, but: {why}");
    say("SKIPPED", &why);
}

/// Says that a test did not run because no one asked for it.
pub fn skipped_by_choice(why: impl std::fmt::Display) {
    say("SKIPPED", &why);
}

/// Says a number that was measured.
pub fn measured(what: impl std::fmt::Display) {
    say("MEASURED", &what);
}

/// Whether the long sizes are wanted: `GOFER_LONG=1`.
#[must_use]
pub fn long() -> bool {
    std::env::var_os("GOFER_LONG").is_some_and(|value| value == "1")
}

fn say(kind: &str, what: &dyn std::fmt::Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    // Not eprintln!, which the runner captures; and on a line of its own, since the runner may have begun one. A closed
    // standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "\n{kind}: {test}: {what}");
}
