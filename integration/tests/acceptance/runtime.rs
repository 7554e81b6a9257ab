//! A `runsc` with our gofer in it, or as it is with `GOFER_UNDER_TEST=stock`; its state; containers of busybox.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use gofer_integration::runsc::{Generation, Runsc};
use gofer_integration::sandbox::forget_network;
use gofer_integration::{Gofer, eventually, say};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::subject::is_stock;

/// A program, its flags and its state directory. What is left of its containers goes with it.
pub(crate) struct Runtime {
    pub(crate) generation: Generation,
    program: PathBuf,
    flags: Vec<String>,
    dir: TempDir,
    has_cgroups: bool,
}

/// Runs a test for each generation, with directfs where there is such a thing.
pub(crate) fn each(test: impl Fn(Runtime)) {
    each_with(|runsc, program| {
        let directfs = runsc.generation.directfs().last().copied().flatten();
        test(Runtime::new(runsc, program, directfs));
    });
}

/// Runs a test for one generation.
pub(crate) fn one(generation: Generation, test: impl Fn(Runtime)) {
    each_with(|runsc, program| {
        if runsc.generation == generation {
            test(Runtime::new(runsc, program, None));
        }
    });
}

/// Runs a test for each generation with the file that is to be run.
pub(crate) fn each_with(test: impl Fn(&Runsc, &Path)) {
    if !rustix::process::geteuid().is_root() {
        return say::skipped("sandboxes need root");
    }
    let all = Runsc::all();
    if all.is_empty() {
        say::skipped("there is no runsc; `make runsc` fetches some");
    }
    let dir = open_to_all();
    for runsc in &all {
        let combined = dir.path().join(format!("{:?}", runsc.generation));
        if is_stock() {
            fs::copy(&runsc.path, &combined).expect("a copy");
        } else {
            let mut command = Command::new(Gofer::binary());
            command.args(["install", "--gofer=ours", "--runsc"]).arg(&runsc.path).arg("--out").arg(&combined);
            let output = command.output().expect("gofer starts");
            assert!(output.status.success(), "gofer install: {}", String::from_utf8_lossy(&output.stderr));
        }
        test(runsc, &combined);
    }
}

impl Runtime {
    pub(crate) fn new(runsc: &Runsc, program: &Path, directfs: Option<bool>) -> Self {
        let dir = open_to_all();
        fs::create_dir(dir.path().join("logs")).expect("a directory");
        let mut flags = vec![
            format!("--root={}", dir.path().join("state").display()),
            format!("--platform={}", runsc.generation.platform()),
            "--network=none".to_owned(),
        ];
        flags.extend(directfs.map(|on| format!("--directfs={on}")));
        let has_cgroups = has_cgroups();
        if !has_cgroups {
            flags.push("--ignore-cgroups".to_owned());
        }
        Self { generation: runsc.generation, program: program.to_owned(), flags, dir, has_cgroups }
    }

    /// With a flag of `runsc`.
    pub(crate) fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs `runsc` to its end; its output is a file's, since containers inherit it.
    pub(crate) fn runsc(&self, arguments: &[&str]) -> Output {
        let said = self.path("said");
        let file = || File::options().create(true).append(true).open(&said).expect("a file");
        fs::write(&said, "").expect("a file");
        let mut command = self.command(arguments);
        let status = command.stdout(file()).stderr(file()).status().expect("runsc starts");
        Output { status, stdout: fs::read(&said).expect("what it said"), stderr: Vec::new() }
    }

    /// As [`Runtime::runsc`], where it must succeed.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.runsc(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let what = format_args!("{:?}: {:?} {arguments:?}", self.generation, self.flags);
        assert!(output.status.success(), "{what}: {}: {said}", output.status);
        said
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.flags).args(arguments).stdin(Stdio::null());
        command
    }

    /// A container that runs a shell script in a root of its own.
    pub(crate) fn container(&self, name: &str, script: &str) -> Container<'_> {
        fill(&self.path(name).join("root"));
        let unique = self.dir.path().file_name().expect("a name").to_string_lossy();
        // Sockets and cgroups that are named after it are the whole host's.
        let id = format!("{unique}-{name}");
        let spec = json!({
            "ociVersion": "1.0.0",
            "process": {
                "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/bin"], "args": ["/bin/sh", "-c", script],
            },
            "root": {"path": self.path(name).join("root")},
            "mounts": [{"type": "proc", "source": "proc", "destination": "/proc"}],
            "linux": {"cgroupsPath": format!("/{id}"), "namespaces": [{"type": "pid"}, {"type": "mount"}]},
        });
        Container { runtime: self, bundle: self.path(name), id, spec }
    }

    /// Whatever runs on behalf of this state directory. Zombies have no command line.
    pub(crate) fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let mine = self.dir.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let all = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
            Some((pid, words.collect::<Vec<_>>()))
        });
        all.filter(|(_, words)| words.iter().any(|word| word.contains(&mine))).collect()
    }

    /// No process, no mount and no cgroup is there any more.
    pub(crate) fn assert_nothing_is_left(&self) {
        let what = format!("{:?} {:?}", self.generation, self.flags);
        assert!(eventually(|| self.processes().is_empty()), "{what}: {:?}", self.processes());
        assert_eq!(self.mounts(), BTreeSet::new(), "{what}");
        // E22 and E24 remove them when the gofer is gone for sure.
        assert!(eventually(|| self.cgroups().is_empty()), "{what}: {:?}", self.cgroups());
    }

    fn mounts(&self) -> BTreeSet<String> {
        let mine = self.dir.path().to_string_lossy().into_owned();
        let all = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        let all = all.lines().filter(|line| line.contains(&mine) && !line.contains("/null-netns "));
        all.map(str::to_owned).collect()
    }

    fn cgroups(&self) -> Vec<PathBuf> {
        if !self.has_cgroups {
            return Vec::new();
        }
        let mine = self.dir.path().file_name().expect("a name").to_string_lossy().into_owned();
        let within = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let tops: Vec<_> = within(PathBuf::from("/sys/fs/cgroup")).collect();
        let below = tops.clone().into_iter().flat_map(within);
        tops.iter().cloned().chain(below).filter(|path| path.to_string_lossy().contains(&mine)).collect()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            end(pid, Signal::KILL);
        }
        // As `runsc delete` does, which takes seconds under the older ones where the host's first process reaps late.
        let _ = eventually(|| {
            // Busy while one of them is on its way out.
            self.cgroups().iter().for_each(|cgroup| fs::remove_dir(cgroup).unwrap_or(()));
            self.processes().is_empty() && self.cgroups().is_empty()
        });
        forget_network(&self.path("state"));
    }
}

/// One bundle.
pub(crate) struct Container<'r> {
    runtime: &'r Runtime,
    bundle: PathBuf,
    pub(crate) id: String,
    pub(crate) spec: Value,
}

impl Container<'_> {
    /// Mounts `source` at `destination`.
    pub(crate) fn bind(self, source: &Path, destination: &str) -> Self {
        self.mount(json!({"type": "bind", "source": source, "destination": destination, "options": ["rbind"]}))
    }

    pub(crate) fn mount(mut self, mount: Value) -> Self {
        self.spec["mounts"].as_array_mut().expect("mounts").push(mount);
        self
    }

    /// As the one that a pod begins with.
    pub(crate) fn begins_pod(mut self) -> Self {
        self.spec["annotations"] = json!({"io.kubernetes.cri.container-type": "sandbox"});
        self
    }

    /// As one more of a pod.
    pub(crate) fn in_pod(mut self, pod: &Container<'_>) -> Self {
        self.spec["annotations"] = json!({
            "io.kubernetes.cri.container-type": "container", "io.kubernetes.cri.sandbox-id": pod.id,
        });
        self
    }

    /// `create`, and what it said.
    pub(crate) fn create(&self) -> Output {
        self.write();
        self.runtime.runsc(&["create", "--bundle", self.bundle(), &self.id])
    }

    /// `create` and `start`.
    pub(crate) fn started(&self) {
        self.write();
        self.runtime.done(&["create", "--bundle", self.bundle(), &self.id]);
        self.runtime.done(&["start", &self.id]);
    }

    /// `run`, attached.
    pub(crate) fn run(&self) -> Command {
        self.write();
        self.runtime.command(&["run", "--bundle", self.bundle(), &self.id])
    }

    /// A word of `runsc` about it, which must succeed.
    pub(crate) fn done(&self, word: &str) -> String {
        self.runtime.done(&[word, &self.id])
    }

    pub(crate) fn delete(&self) {
        self.runtime.done(&["delete", "--force", &self.id]);
    }

    pub(crate) fn exec(&self, script: &str) -> String {
        self.runtime.done(&["exec", &self.id, "/bin/sh", "-c", script])
    }

    /// The process in which its sandbox runs.
    pub(crate) fn sandbox(&self) -> u32 {
        let state = self.done("state");
        let state: Value = serde_json::from_str(&state).unwrap_or_else(|error| panic!("{error}: {state}"));
        state["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process")
    }

    /// Its gofer, which must be there.
    pub(crate) fn gofer(&self) -> u32 {
        let mut found = None;
        assert!(eventually(|| {
            found = self.find_gofer();
            found.is_some()
        }));
        found.expect("a gofer")
    }

    pub(crate) fn find_gofer(&self) -> Option<u32> {
        let processes = self.runtime.processes().into_iter();
        // The originals execute themselves under other names and with other forms of flags.
        let names_bundle = |word: &String| word.strip_prefix("--bundle=").unwrap_or(word) == self.bundle();
        let is_mine = |words: &[String]| words.iter().any(|word| word == "gofer") && words.iter().any(names_bundle);
        let mut mine = processes.filter(|(_, words)| is_mine(words)).map(|(pid, _)| pid);
        mine.next()
    }

    pub(crate) fn bundle(&self) -> &str {
        self.bundle.to_str().expect("a path")
    }

    pub(crate) fn write(&self) {
        fs::write(self.bundle.join("config.json"), self.spec.to_string()).expect("a specification");
    }
}

/// What scripts use.
fn fill(root: &Path) {
    for name in ["bin", "tmp", "data"] {
        fs::create_dir_all(root.join(name)).expect("a directory");
    }
    let busybox = root.join("bin/busybox");
    let copied = ["/usr/bin/busybox", "/bin/busybox"].into_iter().any(|from| fs::copy(from, &busybox).is_ok());
    assert!(copied, "busybox-static is installed");
    for applet in ["sh", "sleep", "cat", "stat", "chmod", "true"] {
        symlink("busybox", root.join("bin").join(applet)).expect("a link");
    }
}

/// A process that is ended with its test, if it has not ended.
pub(crate) struct Attached(pub(crate) Child);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn end(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // It may be gone.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a process runs; a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Whether cgroups can be made here.
fn has_cgroups() -> bool {
    let room = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .into_iter()
        .find_map(|place| tempfile::Builder::new().prefix("gofer-try-").tempdir_in(place).ok());
    // The kernel's files in it cannot be removed, and need not be.
    room.is_some_and(|dir| fs::remove_dir(dir.keep()).is_ok())
}

/// The sandbox's first process is nobody, who has to reach what is in it.
fn open_to_all() -> TempDir {
    let dir = tempfile::Builder::new().prefix("gofer-acceptance-").tempdir().expect("a directory");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    dir
}
