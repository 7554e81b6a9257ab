//! CPU limits in, worker plan out: how many workers, how many blocking threads, and why.
//!
//! The launcher, the gofer and the benchmarks all size themselves by this one policy. A host with 192 CPUs must not
//! cost a small container 192 threads, so every limit counts: the CPUs this thread may run on, the cpuset of its
//! cgroup, and the CPU quotas of that cgroup and of all its ancestors.
//!
//! * `host`: where facts come from, a root directory, so that a test is a directory
//! * `cgroup`: which cgroup is ours and where it is mounted: v1, v2, hybrid, nested
//! * `cpu`: the limits found there
//! * `overrides`: what the operator asked for instead
//! * `policy`: limits and overrides to a plan
//!
//! Nothing here spawns, logs, or reads a file that makes the kernel flush statistics: no `cpu.stat`, no `memory.stat`,
//! no `io.stat`. One such read can cost a big host milliseconds on every CPU.

#![forbid(unsafe_code)]

mod cgroup;
mod cpu;
mod host;
mod overrides;
mod policy;

use std::fmt;

pub use cpu::{Kind, Limit, Limits, Quota};
pub use host::{Host, Note};
pub use overrides::{
    BLOCKING_FLAG, BLOCKING_VARIABLE, Given, MAX_BLOCKING, MAX_WORKERS, OverrideError, Overrides, WORKERS_FLAG,
    WORKERS_VARIABLE,
};
pub use policy::{Rule, WorkerPlan, decide};

/// The plan for this process on this host.
///
/// Cannot fail: a file that is unreadable or malformed takes its limit out of the plan, and the plan says so. When the
/// workers are overridden no file is read at all; to see the limits even then, use [`Limits::find`] and [`decide`].
pub fn plan(host: &Host, overrides: &Overrides) -> WorkerPlan {
    let limits = if overrides.settles_workers() { Limits::default() } else { Limits::find(host) };
    decide(limits, overrides)
}

/// The whole story on one line, for the log line at start.
impl fmt::Display for WorkerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.workers {
            Some(workers) => write!(f, "workers={workers}")?,
            None => write!(f, "workers=unbounded")?,
        }
        write!(f, " blocking={} rule={}", self.blocking, self.rule.name())?;
        if let Rule::Override(by) | Rule::Uncapped(by) = self.rule {
            write!(f, " workers-by={by}")?;
        }
        if let Some(by) = self.blocking_by {
            write!(f, " blocking-by={by}")?;
        }
        self.limits.fmt(f)
    }
}

/// Continues a line: each limit after a semicolon, then the groups that were asked, then what went wrong.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for limit in &self.found {
            write!(f, "; {limit}")?;
        }
        // Without a quota the group's path is what shows a process that was put into the wrong group.
        if let Some(group) = &self.cpu_group {
            let unlimited = if self.found.iter().any(|l| l.kind == Kind::Quota) { "" } else { ", no quota" };
            write!(f, "; cpu group {group:?}{unlimited}")?;
        }
        if let Some(group) = self.cpuset_group.as_ref().filter(|&group| Some(group) != self.cpu_group.as_ref()) {
            write!(f, "; cpuset group {group:?}")?;
        }
        for note in &self.notes {
            write!(f, "; note: {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.name())?;
        match self.quota {
            Some(quota) => write!(f, "{quota}")?,
            None => write!(f, "{}", self.cpus)?,
        }
        match &self.file {
            Some(file) => write!(f, " {file:?}"),
            None => Ok(()),
        }
    }
}
