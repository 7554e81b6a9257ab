//! It behaves as the runsc in it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use gofer_integration::sandbox::Sandbox;

use super::{Place, each, each_with_sandbox};

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_combined_file_says_the_version_of_the_runsc_in_it() {
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        let plain = Command::new(&runsc.path).arg("--version").output().expect("runsc");
        let ours = Command::new(&combined).arg("--version").output().expect("combined");
        assert_eq!(text(&ours), text(&plain));
    });
}

#[test]
fn do_runs_a_command() {
    each_with_sandbox(|runsc| {
        let place = Place::new();
        let output = Command::new(place.combined(runsc, "stock"))
            .arg(format!("--root={}", place.path("state").display()))
            .arg(format!("--platform={}", runsc.generation.platform()))
            .args(["--network=none", "--ignore-cgroups", "do", "echo", "works"])
            .output()
            .expect("the combined file starts");
        assert_eq!(text(&output), "works\n", "{runsc:?}");
    });
}

#[test]
fn a_container_is_created_started_entered_and_deleted() {
    each_with_sandbox(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        for &directfs in runsc.generation.directfs() {
            let sandbox = Sandbox::new(&combined, runsc, directfs);
            sandbox.start("sleep 1000");
            assert_eq!(text(&sandbox.exec("echo inside > /tmp/file; cat /tmp/file")), "inside\n", "{runsc:?}");
            text(&sandbox.delete());
        }
    });
}

#[test]
fn without_an_environment_and_under_a_gofers_name_other_commands_are_the_runscs() {
    each(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "ours");
        let link = place.path("runsc-gofer");
        std::os::unix::fs::symlink(&combined, &link).expect("symlink");
        let named = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            command.arg0("runsc-gofer");
            text(&command.env_clear().args(args).output().expect("starts"))
        };
        assert_eq!(named(&link, &["--version"]), named(&runsc.path, &["--version"]), "{runsc:?}");
        // A word before the sub-command's name makes it another sub-command, whatever its arguments are.
        assert_eq!(named(&link, &["help", "gofer"]), named(&runsc.path, &["help", "gofer"]), "{runsc:?}");
    });
}
