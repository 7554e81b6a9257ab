//! The host calls that a gofer makes, counted by strace(1).

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use gofer_integration::{Gofer, say};
use rustix::process::{Pid, Signal, kill_process};

/// How often each system call was made.
#[derive(Debug)]
pub(crate) struct Calls(HashMap<String, u64>);

impl Calls {
    /// Counts what `gofer` calls during `work`; none, said aloud, without strace.
    pub(crate) fn during(gofer: &Gofer, work: impl FnOnce()) -> Option<Self> {
        let report = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-o"]).arg(report.path()).args(["-p", &gofer.pid().to_string()]);
        let mut strace = match command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() {
            Ok(strace) => strace,
            Err(error) => {
                say::skipped(format_args!("no strace (integration/setup.sh installs it): {error}"));
                work();
                return None;
            }
        };
        let mut said = BufReader::new(strace.stderr.take().expect("a pipe")).lines();
        let attached = said.any(|line| line.is_ok_and(|line| line.contains("attached")));
        work();
        kill_process(Pid::from_child(&strace), Signal::INT).expect("strace is there");
        strace.wait().expect("strace ends");
        if !attached {
            say::skipped("strace may not attach");
            return None;
        }
        Some(Self(parse(&std::fs::read_to_string(report.path()).expect("a report"))))
    }

    /// How often `name` was called.
    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// How often attributes were asked for, in any way.
    pub(crate) fn stats(&self) -> u64 {
        ["stat", "lstat", "fstat", "newfstatat", "statx"].iter().map(|name| self.of(name)).sum()
    }
}

/// Lines of percentage, seconds, microseconds a call, calls, perhaps errors, and the name.
fn parse(report: &str) -> HashMap<String, u64> {
    let line = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let calls = fields.get(3)?.parse().ok()?;
        let name = *fields.last()?;
        (name != "total").then(|| (name.to_owned(), calls))
    };
    report.lines().filter_map(line).collect()
}
