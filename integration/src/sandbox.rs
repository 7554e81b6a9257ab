//! A bundle with busybox as its root, and the commands of runsc on it. Containers and state end on drop.

use crate::runsc::Runsc;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A bundle, and the state of the runsc that runs it.
#[derive(Debug)]
pub struct Sandbox {
    program: PathBuf,
    flags: Vec<String>,
    dir: TempDir,
    mounts: Vec<Value>,
    read_only: bool,
    ids: Vec<Value>,
}

impl Sandbox {
    /// Of `program`, which behaves as `runsc`; `directfs` is for generations that have it.
    ///
    /// # Panics
    /// If busybox or a directory cannot be had.
    #[must_use]
    pub fn new(program: &Path, runsc: &Runsc, directfs: Option<bool>) -> Self {
        let dir = tempfile::Builder::new().prefix("gofer-parity-").tempdir().expect("a directory");
        // The sandbox's first process is nobody, who has to reach the bundle.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
        for name in ["state", "root/bin", "root/tmp", "root/data"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("mkdir");
        }
        let busybox = dir.path().join("root/bin/busybox");
        std::fs::copy("/usr/bin/busybox", busybox)
            .or_else(|_| std::fs::copy("/bin/busybox", dir.path().join("root/bin/busybox")))
            .expect("busybox-static is installed");
        for applet in ["sh", "sleep", "cat"] {
            std::os::unix::fs::symlink("busybox", dir.path().join("root/bin").join(applet)).expect("symlink");
        }
        let mut flags = vec![
            format!("--root={}", dir.path().join("state").display()),
            format!("--platform={}", runsc.generation.platform()),
            "--network=none".to_owned(),
            "--ignore-cgroups".to_owned(),
        ];
        flags.extend(directfs.map(|on| format!("--directfs={on}")));
        Self { program: program.to_owned(), flags, dir, mounts: Vec::new(), read_only: false, ids: Vec::new() }
    }

    /// Whether its runsc knows directfs, on or off.
    #[must_use]
    pub fn has_directfs(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("--directfs"))
    }

    /// The container's root, on the host.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Adds a flag of runsc.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Mounts `source` of the host at `destination`.
    #[must_use]
    pub fn bind(mut self, source: &Path, destination: &str, options: &[&str]) -> Self {
        self.mounts.push(json!({
            "type": "bind", "source": source, "destination": destination, "options": options,
        }));
        self
    }

    /// Makes the root read-only.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// In a user name space with these ids, of users and groups alike: the first inside, the first outside, how many. The
    /// bundle and all below belong to the container's user 0.
    ///
    /// # Panics
    /// If that cannot be.
    #[must_use]
    pub fn ids(mut self, maps: &[(u32, u32, u32)]) -> Self {
        let map =
            |&(inner, outer, count): &(u32, u32, u32)| json!({"containerID": inner, "hostID": outer, "size": count});
        self.ids = maps.iter().map(map).collect();
        let owner = maps.iter().find(|(inner, ..)| *inner == 0).map(|(_, outer, _)| *outer);
        let own = |path: &Path| std::os::unix::fs::lchown(path, owner, owner).expect("chown");
        own(self.dir.path());
        for name in ["state", "root", "root/bin", "root/tmp", "root/data", "root/bin/busybox"] {
            own(&self.dir.path().join(name));
        }
        self
    }

    /// Runs a shell script as the container, to its end.
    #[must_use]
    pub fn run(&self, script: &str) -> Output {
        self.write_spec(script);
        self.runsc(&["run", &self.bundle(), &self.id()])
    }

    /// Creates and starts a container of a shell script.
    ///
    /// # Panics
    /// If runsc fails.
    pub fn start(&self, script: &str) {
        self.write_spec(script);
        for arguments in [&["create", &self.bundle(), &self.id()][..], &["start", &self.id()]] {
            // The container inherits what `create` has: a pipe would not end before it does.
            let status = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(status.expect("runsc starts").success(), "runsc {arguments:?} failed");
        }
    }

    /// Runs a shell script in the container that was started.
    #[must_use]
    pub fn exec(&self, script: &str) -> Output {
        self.runsc(&["exec", &self.id(), "/bin/sh", "-c", script])
    }

    /// The processes that serve files to the containers of this bundle, or are about to.
    ///
    /// # Panics
    /// If there is no `/proc`.
    #[must_use]
    pub fn gofers(&self) -> Vec<u32> {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = numbers.filter(|pid: &u32| {
            // Processes end while this looks at them.
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with("runsc-gofer\0") && line.contains(&self.bundle_dir())
        });
        ours.collect()
    }

    /// Ends what was started.
    #[must_use]
    pub fn delete(&self) -> Output {
        self.runsc(&["delete", "--force", &self.id()])
    }

    // Nobody else's, though the state directory is its own: runsc may name an abstract socket after it, which the whole
    // host shares.
    fn id(&self) -> String {
        self.dir.path().file_name().expect("a name").to_string_lossy().into_owned()
    }

    fn bundle(&self) -> String {
        format!("--bundle={}", self.bundle_dir())
    }

    fn bundle_dir(&self) -> String {
        self.dir.path().display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.flags).args(arguments).stdin(Stdio::null());
        command
    }

    fn runsc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("runsc starts")
    }

    fn write_spec(&self, script: &str) {
        let mut mounts = vec![json!({"type": "proc", "source": "proc", "destination": "/proc"})];
        mounts.extend(self.mounts.iter().cloned());
        let mut spec = json!({
            "ociVersion": "1.0.0",
            "process": {
                "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/bin"],
                "args": ["/bin/sh", "-c", script],
            },
            "root": {"path": "root", "readonly": self.read_only},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}]},
        });
        if !self.ids.is_empty() {
            spec["linux"] = json!({
                "namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "user"}],
                "uidMappings": self.ids, "gidMappings": self.ids,
            });
        }
        std::fs::write(self.dir.path().join("config.json"), spec.to_string()).expect("config.json");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.delete();
        forget_network(&self.dir.path().join("state"));
    }
}

/// Unmounts what the `runsc` of 2026 leaves in a state directory: the name space of a network without interfaces, for the
/// gofers to come. The directory cannot be removed before.
pub fn forget_network(state: &Path) {
    // Older ones leave nothing.
    let _ = rustix::mount::unmount(state.join("null-netns"), rustix::mount::UnmountFlags::DETACH);
}
