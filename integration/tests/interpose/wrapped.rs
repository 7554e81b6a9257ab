//! Combined files as input, and combined files that tools have been at.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use gofer_integration::say;

use super::{Place, each, install, sentence, switch};

#[test]
fn wrapping_a_wrapped_file_gives_the_same_file() {
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        let once = fs::read(&combined).expect("read");
        let output = install(&combined, &combined, &["--gofer=stock"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(&combined).expect("read") == once, "{runsc:?}: the bytes differ");
    });
}

#[test]
fn the_runsc_ends_the_file_byte_for_byte_and_anybody_may_run_it() {
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "ours");
        let plain = fs::read(&runsc.path).expect("read");
        assert!(fs::read(&combined).expect("read").ends_with(&plain), "{runsc:?}");
        assert_eq!(fs::metadata(&combined).expect("there").permissions().mode() & 0o7777, 0o755);
        assert_eq!(place.names(), ["combined"]);
    });
}

#[test]
fn switching_there_and_back_gives_the_same_file() {
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "ours");
        let before = fs::read(&combined).expect("read");
        assert!(switch("stock", &combined).status.success());
        let between = fs::read(&combined).expect("read");
        assert_eq!(before.iter().zip(&between).filter(|(a, b)| a != b).count(), 1, "one byte is the mode");
        assert!(switch("ours", &combined).status.success());
        assert!(fs::read(&combined).expect("read") == before, "{runsc:?}");
    });
}

#[test]
fn a_stripped_file_exits_127_and_says_why() {
    if Command::new("strip").arg("--version").output().is_err() {
        return say::skipped("there is no strip");
    }
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        assert!(Command::new("strip").arg(&combined).status().expect("strip").success());
        let output = Command::new(&combined).arg("--version").output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(127), "{said}");
        assert_eq!(said, "gofer: the payload is missing; was this file stripped?\n");
        let said = sentence(&install(&combined, &place.path("out"), &[]));
        assert!(said.contains("has lost its runsc"), "{said}");
    });
}
