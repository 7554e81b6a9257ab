//! What the guest says on its console: lines of init that are marked, and between them the program's own.

use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::job::{CPUS, EXIT, KERNEL, RUN};
use super::{Outcome, VmError};

/// How many lines of a console explain a failure.
const TAIL: usize = 40;

/// All the lines of a machine that has stopped.
pub(super) struct Console(Vec<String>);

impl Console {
    /// Collects lines until qemu closes the console, and echoes each; an error when the deadline passes first.
    pub(super) fn read(lines: &Receiver<String>, deadline: Instant) -> Result<Self, VmError> {
        let mut console = Self(Vec::new());
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    eprintln!("vm| {line}");
                    console.0.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(console),
                Err(RecvTimeoutError::Timeout) => return Err(console.failure("the machine did not stop in time")),
            }
        }
    }

    /// Reads what init reported; an error when a part is missing, as after a crash.
    pub(super) fn outcome(&self, elapsed: Duration) -> Result<Outcome, VmError> {
        let (run, exit) = (self.position(RUN)?, self.position(EXIT)?);
        let mut output = self.0.get(run + 1..exit).unwrap_or_default().to_vec();
        // Init begins a line for its mark, since the program need not have ended its last.
        output.pop_if(|line| line.is_empty());
        Ok(Outcome { status: self.value(EXIT)?, output, kernel: self.value(KERNEL)?, cpus: self.value(CPUS)?, elapsed })
    }

    fn value<T: FromStr>(&self, mark: &str) -> Result<T, VmError> {
        let line = self.0.get(self.position(mark)?).map(String::as_str).unwrap_or_default();
        let value = line.strip_prefix(mark).unwrap_or_default();
        value.parse().map_err(|_| self.failure(&format!("the guest said {line}")))
    }

    /// The last line with this mark.
    fn position(&self, mark: &str) -> Result<usize, VmError> {
        let found = self.0.iter().rposition(|line| line.starts_with(mark));
        found.ok_or_else(|| self.failure(&format!("the guest never said {mark}")))
    }

    fn failure(&self, what: &str) -> VmError {
        VmError::Guest(what.to_owned(), self.0.iter().skip(self.0.len().saturating_sub(TAIL)).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str]) -> Result<Outcome, VmError> {
        Console(lines.iter().map(|line| (*line).to_owned()).collect()).outcome(Duration::ZERO)
    }

    #[test]
    fn output_is_what_stands_between_the_marks() {
        let got = outcome(&[
            "firmware",
            "GOFER_VM_KERNEL=6.1",
            "GOFER_VM_CPUS=2",
            "GOFER_VM_RUN=/bin/x",
            "one",
            "",
            "two",
            "",
            "GOFER_VM_EXIT=3",
        ])
        .unwrap();
        assert_eq!((got.status, got.kernel.as_str(), got.cpus), (3, "6.1", 2));
        assert_eq!(got.output, ["one", "", "two"]);
    }

    #[test]
    fn a_console_without_an_exit_line_is_a_failure_with_its_tail() {
        let error = outcome(&["GOFER_VM_KERNEL=6.1", "GOFER_VM_CPUS=1", "GOFER_VM_RUN=/bin/x", "Kernel panic"]);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("GOFER_VM_EXIT") && text.ends_with("Kernel panic"), "{text}");
    }

    #[test]
    fn an_exit_line_that_is_no_number_is_a_failure() {
        assert!(outcome(&["GOFER_VM_KERNEL=6.1", "GOFER_VM_CPUS=1", "GOFER_VM_RUN=x", "GOFER_VM_EXIT=oh"]).is_err());
    }

    #[test]
    fn a_silent_machine_is_stopped_at_its_deadline() {
        let (_sender, lines) = std::sync::mpsc::channel();
        let Err(VmError::Guest(what, _)) = Console::read(&lines, Instant::now()) else { panic!("not a failure") };
        assert!(what.contains("in time"), "{what}");
    }
}
