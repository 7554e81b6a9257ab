//! The runscs of this machine, which sandboxes of the tests run under: one of each generation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Gofer;

/// A generation of runsc, as `make runsc` names its directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Debian 12's.
    E22,
    /// Debian 13's.
    E24,
    /// Upstream's of September 2026.
    E26,
}

impl Generation {
    /// The generation in what `runsc --version` says.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let known = [("0.0~2022", Self::E22), ("0.0~2024", Self::E24), ("release-2026", Self::E26)];
        known.into_iter().find(|(prefix, _)| version.starts_with(prefix)).map(|(_, generation)| generation)
    }

    /// E22's systrap is not ready for use.
    #[must_use]
    pub const fn platform(self) -> &'static str {
        if matches!(self, Self::E22) { "ptrace" } else { "systrap" }
    }

    /// What can be said of directfs: E22 has none, and knows no such flag.
    #[must_use]
    pub const fn directfs(self) -> &'static [Option<bool>] {
        if matches!(self, Self::E22) { &[None] } else { &[Some(false), Some(true)] }
    }
}

/// A runsc that is there.
#[derive(Debug, Clone)]
pub struct Runsc {
    /// The program.
    pub path: PathBuf,
    /// Which flags it knows.
    pub generation: Generation,
}

impl Runsc {
    /// One of each generation: from target/runsc first, then from PATH. Says which are missing.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/runsc");
        let mut places: Vec<PathBuf> = ["e22", "e24", "e26"].iter().map(|name| fetched.join(name)).collect();
        places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut found: Vec<Self> = Vec::new();
        for runsc in places.iter().filter_map(|place| Self::at(&place.join("runsc"))) {
            if found.iter().all(|other| other.generation != runsc.generation) {
                found.push(runsc);
            }
        }
        if found.len() < 3 {
            let there: Vec<_> = found.iter().map(|runsc| runsc.generation).collect();
            crate::say::skipped(format_args!("of E22, E24 and E26 only {there:?} are there: make runsc"));
        }
        found
    }

    /// Writes a file to `out` that behaves as this runsc, with our gofer.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn with_our_gofer(&self, out: &Path) {
        let mut command = Command::new(Gofer::binary());
        command.args(["install", "--gofer=ours", "--runsc"]).arg(&self.path).arg("--out").arg(out);
        let output = command.output().expect("gofer starts");
        assert!(output.status.success(), "gofer install: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn at(path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        let generation = Generation::of(said.strip_prefix("runsc version ")?)?;
        Some(Self { path: path.to_owned(), generation })
    }
}
