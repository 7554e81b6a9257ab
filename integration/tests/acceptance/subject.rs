//! What is tested, and a container for it: a bundle with a root and a source of mounts, in a temporary directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gofer::contract::Generation;
use gofer::launch::{Bundle, Launched, Launcher, Namespaces};
use gofer_integration::{Gofer, Raw, say};
use tempfile::TempDir;

/// A container that is yet to get a gofer.
pub(crate) struct Subject {
    pub(crate) generation: Generation,
    pub(crate) executable: PathBuf,
    dir: TempDir,
}

impl Subject {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The container's root.
    pub(crate) fn bundle(&self) -> Bundle {
        Bundle::new(self.path("root"))
    }

    /// A launcher for it, as `runsc` has it by default: with a user name space where there is directfs.
    pub(crate) fn launcher(&self, bundle: &Bundle) -> Launcher {
        self.launcher_of(&self.executable, bundle)
    }

    /// The same of another program.
    pub(crate) fn launcher_of(&self, executable: &Path, bundle: &Bundle) -> Launcher {
        let directory = self.path("bundle");
        bundle.write(&directory).expect("a bundle");
        self.launcher_in(&directory).executable(executable)
    }

    /// The same of a bundle that is there.
    pub(crate) fn launcher_in(&self, directory: &Path) -> Launcher {
        let launcher = Launcher::new(self.generation, &self.executable, directory).log(self.create("log"));
        let launcher = launcher.global(format!("--root={}", self.path("state").display()));
        match self.generation {
            Generation::E22 => launcher,
            Generation::E24 | Generation::E26 => launcher.namespaces(Namespaces::with_identity()),
        }
    }

    /// A gofer that serves.
    pub(crate) fn start(&self, bundle: &Bundle) -> Launched {
        self.started(self.launcher(bundle))
    }

    pub(crate) fn started(&self, launcher: Launcher) -> Launched {
        launcher.start().unwrap_or_else(|error| panic!("{:?}: {error}; its log: {}", self.generation, self.log()))
    }

    /// A file of the temporary directory, to be appended to as `runsc` does.
    pub(crate) fn create(&self, name: &str) -> File {
        File::options().create(true).append(true).open(self.path(name)).expect("a log")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

/// Runs a test for each generation.
pub(crate) fn each(test: impl Fn(&Subject)) {
    for generation in [Generation::E22, Generation::E24, Generation::E26] {
        one(generation, &test);
    }
}

/// Runs a test where only ours keeps the sentence; the reason is in `docs/parity.md`.
pub(crate) fn each_of_ours(test: impl Fn(&Subject)) {
    if is_stock() {
        return say::skipped_by_choice("the original does not keep this sentence");
    }
    each(test);
}

/// Runs a test for one generation.
pub(crate) fn one(generation: Generation, test: impl Fn(&Subject)) {
    if !rustix::process::geteuid().is_root() {
        return say::skipped("needs root, to make name spaces");
    }
    let executable = if is_stock() { stock(generation) } else { Gofer::binary() };
    if !executable.exists() {
        return say::skipped(format_args!("no {}", executable.display()));
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let subject = Subject { generation, executable, dir };
    for name in ["root", "volume"] {
        fs::create_dir(subject.path(name)).expect("a directory");
    }
    fs::write(subject.path("volume/file"), "of the volume").expect("a file");
    test(&subject);
}

/// Clients of all connections, root first.
pub(crate) fn clients(launched: &mut Launched) -> Vec<Raw> {
    launched.take_clients().into_iter().map(Raw::new).collect()
}

/// The text of one of its files below `/proc/PID`.
pub(crate) fn proc(launched: &Launched, name: &str) -> String {
    fs::read_to_string(format!("/proc/{}/{name}", launched.pid())).expect("a file of /proc")
}

pub(crate) fn is_stock() -> bool {
    std::env::var_os("GOFER_UNDER_TEST").is_some_and(|which| which == "stock")
}

/// The generation's `runsc`, if it is there.
pub(crate) fn stock(generation: Generation) -> PathBuf {
    let name = format!("{generation:?}").to_lowercase();
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/runsc")).join(name).join("runsc")
}
