//! The built `gofer` as a process: started on an inherited socket or a listening one, watched through `/proc`.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// A running gofer. Killed on drop.
#[derive(Debug)]
pub struct Gofer {
    child: Child,
}

/// Number under which a child gets its socket.
const INHERITED: i32 = 3;

impl Gofer {
    /// The binary under test: `GOFER_BINARY`, or what `cargo build` made beside this test.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn binary() -> PathBuf {
        if let Some(binary) = std::env::var_os("GOFER_BINARY") {
            return binary.into();
        }
        // This test is target/<triple>/<profile>/deps/name-hash.
        let exe = std::env::current_exe().expect("the test's own path");
        let profile = exe.ancestors().nth(2).expect("a target directory");
        let binary = profile.join("gofer");
        assert!(binary.exists(), "{} is missing: run `cargo build -p gofer` first", binary.display());
        binary
    }

    /// Starts `gofer serve --root ROOT --fd 3 FLAGS...` and returns the client's end of its socket.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn serve(root: &Path, flags: &[&str]) -> (Self, UnixStream) {
        Self::serve_with(root, flags, |command| command)
    }

    /// As [`Gofer::serve`], with the command changed before it starts.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn serve_with(
        root: &Path,
        flags: &[&str],
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let mut command = Command::new(Self::binary());
        command.arg("serve").arg("--root").arg(root).args(["--fd", &INHERITED.to_string()]).args(flags);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        change(&mut command);
        inherit(&mut command, theirs.into());
        let child = command.spawn().expect("gofer starts");
        (Self { child }, ours)
    }

    /// A gofer that was started otherwise.
    #[must_use]
    pub fn of(child: Child) -> Self {
        Self { child }
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child, to wait for it.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether the process still runs.
    ///
    /// # Panics
    /// If it cannot be told.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("status of the child").is_none()
    }

    /// Where each descriptor of the process leads, as `/proc/PID/fd` has it.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn descriptors(&self) -> Vec<PathBuf> {
        let dir = format!("/proc/{}/fd", self.pid());
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{dir}: {error}"));
        entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
    }

    /// How many descriptors the process has, once it has closed what it donated: a reply arrives before that.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn settled_descriptors(&self) -> usize {
        let mut before = self.descriptors().len();
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.descriptors().len();
            if now == before {
                return now;
            }
            before = now;
        }
    }

    /// Fails unless the process has this many descriptors, now or soon.
    ///
    /// # Panics
    /// Then.
    #[track_caller]
    pub fn assert_descriptors(&self, count: usize, why: &str) {
        let settled = eventually(|| self.descriptors().len() == count);
        assert!(settled, "{why}: {} descriptors, not {count}: {:?}", self.descriptors().len(), self.descriptors());
    }

    /// Device and inode of what each descriptor of the process holds.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn held_files(&self) -> Vec<(u64, u64)> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the process lives");
        let held = entries.flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
        held.map(|is| (is.dev(), is.ino())).collect()
    }

    /// Where each descriptor leads, and its `open(2)` flags.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn descriptor_flags(&self) -> Vec<(PathBuf, OFlags)> {
        let dir = format!("/proc/{}", self.pid());
        let entries = fs::read_dir(format!("{dir}/fd")).expect("the process lives");
        let described = entries.flatten().filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let info = fs::read_to_string(format!("{dir}/fdinfo/{}", entry.file_name().display())).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags").trim();
            Some((target, OFlags::from_bits_retain(u32::from_str_radix(flags, 8).expect("octal flags"))))
        });
        described.collect()
    }

    /// Changes how many descriptors the process may have. Those beyond stay open.
    ///
    /// # Panics
    /// If we may not.
    pub fn limit_descriptors(&self, limit: usize) {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid())).expect("limits");
        let hard = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
        let maximum = hard.split_whitespace().nth(1).and_then(|hard| hard.parse().ok());
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let limits = Rlimit { current: u64::try_from(limit).ok(), maximum };
        prlimit(pid, Resource::Nofile, limits).expect("a limit");
    }

    /// Private anonymous memory in KiB.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn anonymous_kib(&self) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).expect("smaps_rollup");
        field(&rollup, "Pss_Anon:")
    }

    /// How many descriptors it may have.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn descriptor_limit(&self) -> u64 {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid())).expect("limits");
        field(&limits, "Max open files")
    }

    /// Shared memory in KiB, its share of what others map too.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn shared_kib(&self) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).expect("smaps_rollup");
        field(&rollup, "Pss_Shmem:")
    }

    /// Threads that serve channels.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn channel_threads(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("the process lives").flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim_end() == "gofer channel").count()
    }

    /// Threads.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    /// A number of `/proc/PID/status`, such as `VmPeak:`.
    ///
    /// # Panics
    /// If the process is gone or has no such line.
    #[must_use]
    pub fn status(&self, line: &str) -> u64 {
        field(&fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status"), line)
    }

    /// Mappings.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn mappings(&self) -> usize {
        fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("maps").lines().count()
    }

    /// CPU time that the process has used, in milliseconds, user and system.
    ///
    /// # Panics
    /// If the process is gone.
    #[must_use]
    pub fn cpu_ms(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("stat");
        // The command's name, which may hold anything, ends with the last parenthesis.
        let (_, behind) = stat.rsplit_once(')').expect("a name");
        let ticks: u64 = behind.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().expect("ticks")).sum();
        // 100 in a second, on every architecture (USER_HZ).
        ticks * 10
    }
}

impl Drop for Gofer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done`, and says whether it came to pass within ten seconds.
pub fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Leaves `fd` to the child as number 3.
#[allow(unsafe_code, reason = "a child's descriptors are set up between fork and exec")]
fn inherit(command: &mut Command, fd: OwnedFd) {
    let set_up = move || {
        // SAFETY: dup2(2) is async-signal-safe and takes two integers; `fd` is open, because the closure owns it.
        match unsafe { libc::dup2(fd.as_raw_fd(), INHERITED) } {
            -1 => Err(std::io::Error::last_os_error()),
            // dup2 to itself leaves CLOEXEC on; then clear it.
            same if same == fd.as_raw_fd() => {
                // SAFETY: fcntl(2) with F_SETFD takes integers and is async-signal-safe.
                unsafe { libc::fcntl(same, libc::F_SETFD, 0) };
                Ok(())
            }
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes async-signal-safe system calls only, and neither allocates nor locks.
    unsafe { command.pre_exec(set_up) };
}
