//! The combined file: it behaves as the runsc in it, its gofers are the chosen ones, and what cannot be one is refused.

mod behaves;
mod gofers;
mod refuses;
mod wrapped;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gofer_integration::runsc::Runsc;
use gofer_integration::sandbox::forget_network;
use gofer_integration::{Gofer, say};
use tempfile::TempDir;

/// A directory in which a combined file is made.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("gofer-interpose-").tempdir().expect("a directory");
        // The sandbox executes the file as nobody, who has to reach it.
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A combined file of `runsc` in `mode`.
    fn combined(&self, runsc: &Runsc, mode: &str) -> PathBuf {
        let out = self.path("combined");
        let output = install(&runsc.path, &out, &[&format!("--gofer={mode}")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }

    /// Names of what is in it.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("listed");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        forget_network(&self.path("state"));
    }
}

/// `gofer install --runsc RUNSC --out OUT FLAGS...`
fn install(runsc: &Path, out: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(Gofer::binary());
    command.arg("install").arg("--runsc").arg(runsc).arg("--out").arg(out).args(flags);
    command.output().expect("gofer starts")
}

/// `gofer switch MODE PATH`
fn switch(mode: &str, path: &Path) -> Output {
    Command::new(Gofer::binary()).args(["switch", mode]).arg(path).output().expect("gofer starts")
}

/// The one line that a refusal says.
fn sentence(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Runs a test for each runsc that is there.
fn each(mut test: impl FnMut(&Runsc)) {
    let all = Runsc::all();
    if all.is_empty() {
        say::skipped("there is no runsc; `make runsc` fetches some");
    }
    for runsc in &all {
        test(runsc);
    }
}

/// As [`each`], for tests that start sandboxes.
fn each_with_sandbox(test: impl FnMut(&Runsc)) {
    if rustix::process::geteuid().is_root() {
        each(test);
    } else {
        say::skipped("sandboxes need root");
    }
}
