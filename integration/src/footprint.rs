//! What a gofer takes of the host, as `/proc` has it: descriptors, memory, threads, time. All panic if it is gone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use gofer_protocol::FdId;
use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::{Ask, Exchange, Gofer, eventually};

#[allow(clippy::missing_panics_doc, reason = "said above, for all")]
impl Gofer {
    /// Where each descriptor of the process leads, as `/proc/PID/fd` has it.
    #[must_use]
    pub fn descriptors(&self) -> Vec<PathBuf> {
        let dir = format!("/proc/{}/fd", self.pid());
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{dir}: {error}"));
        entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
    }

    /// How many descriptors the process has once it is done with what `client` asked for: a reply is out before the
    /// server has closed what it donated, but whoever answers the next request has done so.
    #[must_use]
    pub fn descriptors_behind(&self, client: &dyn Exchange) -> usize {
        let _ = client.fstat(FdId::NONE);
        self.descriptors().len()
    }

    /// Fails unless the process has this many descriptors, now or soon.
    #[track_caller]
    pub fn assert_descriptors(&self, count: usize, why: &str) {
        let settled = eventually(|| self.descriptors().len() == count);
        assert!(settled, "{why}: {} descriptors, not {count}: {:?}", self.descriptors().len(), self.descriptors());
    }

    /// Device and inode of what each descriptor of the process holds.
    #[must_use]
    pub fn held_files(&self) -> Vec<(u64, u64)> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the process lives");
        let held = entries.flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
        held.map(|is| (is.dev(), is.ino())).collect()
    }

    /// Where each descriptor leads, and its `open(2)` flags.
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
    pub fn limit_descriptors(&self, limit: usize) {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid())).expect("limits");
        let hard = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
        let maximum = hard.split_whitespace().nth(1).and_then(|hard| hard.parse().ok());
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let limits = Rlimit { current: u64::try_from(limit).ok(), maximum };
        prlimit(pid, Resource::Nofile, limits).expect("a limit");
    }

    /// Private anonymous memory in KiB.
    #[must_use]
    pub fn anonymous_kib(&self) -> u64 {
        anonymous_kib(self.pid())
    }

    /// How many descriptors it may have.
    #[must_use]
    pub fn descriptor_limit(&self) -> u64 {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid())).expect("limits");
        field(&limits, "Max open files")
    }

    /// Shared memory in KiB, its share of what others map too.
    #[must_use]
    pub fn shared_kib(&self) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).expect("smaps_rollup");
        field(&rollup, "Pss_Shmem:")
    }

    /// Threads that serve channels.
    #[must_use]
    pub fn channel_threads(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("the process lives").flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim_end() == "gofer channel").count()
    }

    /// Threads.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    /// A number of `/proc/PID/status`, such as `VmPeak:`.
    #[must_use]
    pub fn status(&self, line: &str) -> u64 {
        status(self.pid(), line)
    }

    /// Mappings.
    #[must_use]
    pub fn mappings(&self) -> usize {
        fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("maps").lines().count()
    }

    /// CPU time that the process has used, in milliseconds, user and system.
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

/// Private anonymous memory of a process in KiB.
///
/// # Panics
/// If it is gone.
#[must_use]
pub fn anonymous_kib(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("smaps_rollup"), "Pss_Anon:")
}

/// A number of `/proc/PID/status`, such as `Threads:`.
///
/// # Panics
/// If the process is gone.
#[must_use]
pub fn status(pid: u32, line: &str) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).expect("status"), line)
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}
