//! Who serves: stock's gofer first, which says what is right, then ours.

use gofer_integration::{Gofer, runsc::Runsc, sandbox::Sandbox, say};
use std::path::Path;
use std::process::{Command, Output};

/// Runs `scenario` in every generation, directfs on and off, on stock and then on ours; the outcomes are equal.
pub(super) fn same(scenario: impl Fn(Sandbox) -> String) {
    let all = Runsc::all();
    if all.is_empty() {
        say::skipped("no runsc of a known generation: make runsc");
        return;
    }
    let ours_too = std::env::var("PARITY_ARMS").map_or(true, |arms| arms.split(',').any(|arm| arm == "ours"));
    let dir = tempfile::tempdir().expect("a directory");
    for runsc in &all {
        let combined = dir.path().join(format!("{:?}", runsc.generation));
        if ours_too {
            combine(&runsc.path, &combined);
        }
        for &directfs in runsc.generation.directfs() {
            let stock = scenario(Sandbox::new(&runsc.path, runsc, directfs));
            if ours_too {
                let ours = scenario(Sandbox::new(&combined, runsc, directfs));
                assert_eq!(stock, ours, "{:?}, directfs {directfs:?}: stock, then ours", runsc.generation);
            }
        }
    }
}

/// Runs `test` with a file in which `runsc` has our gofer, for every generation.
pub(super) fn ours(test: impl Fn(&Path, &Runsc)) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    for runsc in Runsc::all() {
        let combined = dir.path().join(format!("{:?}", runsc.generation));
        combine(&runsc.path, &combined);
        test(&combined, &runsc);
    }
}

/// What a command said and how it ended; stdout only, since messages of runsc have times in them.
pub(super) fn outcome(output: &Output) -> String {
    format!("{:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stdout))
}

fn combine(runsc: &Path, out: &Path) {
    let mut command = Command::new(Gofer::binary());
    command.args(["install", "--gofer=ours", "--runsc"]).arg(runsc).arg("--out").arg(out);
    let output = command.output().expect("gofer starts");
    assert!(output.status.success(), "gofer install: {}", String::from_utf8_lossy(&output.stderr));
}
