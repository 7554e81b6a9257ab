//! Where facts come from: files under a root directory, and the kernel's answer about affinity.
//!
//! Paths are those the process itself sees (`/proc/self/cgroup`); only this file puts the root in front of them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A host to ask: the running one, or a directory that stands in for one.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
    /// CPUs of the affinity mask; `None` asks the kernel.
    pub(crate) affinity: Option<usize>,
}

impl Host {
    /// The host this process runs on.
    pub fn running() -> Self {
        Self { root: PathBuf::from("/"), affinity: None }
    }

    /// A host described by the files under `root`, on which the process may run on `affinity` CPUs.
    pub fn described(root: impl Into<PathBuf>, affinity: usize) -> Self {
        Self { root: root.into(), affinity: Some(affinity) }
    }

    fn place(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Something that could not be learned, and why. It never fails a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file or directory, as the process sees it.
    pub file: PathBuf,
    /// What was wrong with it, and what that means.
    pub problem: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.file, self.problem)
    }
}

/// One look at a host: reads files and keeps notes about those that were no good.
pub(crate) struct Survey<'h> {
    pub(crate) host: &'h Host,
    pub(crate) notes: Vec<Note>,
}

impl<'h> Survey<'h> {
    pub(crate) fn of(host: &'h Host) -> Self {
        Self { host, notes: Vec::new() }
    }

    /// The value in a small file. `None` if the file is missing, which is ordinary (the controller is not enabled
    /// here), if it holds no limit, or, with a note, if it is unreadable or malformed.
    pub(crate) fn value<T>(
        &mut self,
        path: &Path,
        parse: impl FnOnce(&str) -> Result<Option<T>, Malformed>,
    ) -> Option<T> {
        let text = match File::open(self.host.place(path)).and_then(whole_text) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                self.note(path, format!("unreadable, left out: {error}"));
                return None;
            }
        };
        parse(text.trim()).unwrap_or_else(|Malformed| {
            let start: String = text.chars().take(SHOWN).collect();
            self.note(path, format!("malformed, left out: {start:?}"));
            None
        })
    }

    /// Hands each line of a file to `each`, without its line feed. Lines are bytes: cgroups and mounts can have any
    /// name. False, with a note, if the file cannot be read to its end.
    pub(crate) fn lines(&mut self, path: &Path, each: impl FnMut(&[u8])) -> bool {
        let outcome = File::open(self.host.place(path)).and_then(|file| each_line(file, each));
        if let Err(error) = &outcome {
            self.note(path, format!("unreadable, its limits left out: {error}"));
        }
        outcome.is_ok()
    }

    /// Notes a directory that cannot be seen; what its ancestors say still counts.
    pub(crate) fn expect_directory(&mut self, path: &Path) {
        if let Err(error) = fs::metadata(self.host.place(path)) {
            self.note(path, format!("own group not visible, only its ancestors are: {error}"));
        }
    }

    /// Keeps the first note about each file: what follows from it is no news.
    pub(crate) fn note(&mut self, file: &Path, problem: String) {
        if !self.notes.iter().any(|note| note.file == file) {
            self.notes.push(Note { file: file.to_owned(), problem });
        }
    }
}

/// The text does not say what its file always says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A number in plain decimal digits: no sign, no blanks, nothing that does not fit.
pub(crate) fn digits<T: std::str::FromStr>(text: &str) -> Result<T, Malformed> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| Malformed),
        false => Err(Malformed),
    }
}

// Both of these retry a read that a signal interrupted, as opening does: std promises it for each call used here.

fn whole_text(mut file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Line by line, because the mount table of a busy host can be megabytes, and the heap would keep them.
fn each_line(file: impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = BufReader::with_capacity(4096, file);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        each(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    Ok(())
}

/// So much of a malformed file is quoted.
const SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose every second read is interrupted, and which never gives more than three bytes.
    struct Interrupted<'t> {
        rest: &'t [u8],
        now: bool,
    }

    impl Read for Interrupted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.now = !self.now;
            if self.now {
                return Err(ErrorKind::Interrupted.into());
            }
            let most = buffer.len().min(3);
            self.rest.read(&mut buffer[..most])
        }
    }

    #[test]
    fn a_signal_during_a_read_is_retried() {
        let text = "200000 100000\nand another line\nno line feed";
        let file = || Interrupted { rest: text.as_bytes(), now: false };
        assert_eq!(whole_text(file()).unwrap(), text);
        let mut lines = Vec::new();
        each_line(file(), |line| lines.push(String::from_utf8_lossy(line).into_owned())).unwrap();
        assert_eq!(lines, ["200000 100000", "and another line", "no line feed"]);
    }

    #[test]
    fn digits_take_no_sign_no_blank_and_no_overflow() {
        assert_eq!(digits::<u64>("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "+1", "-1", " 1", "1 ", "0x1", "1.0", "18446744073709551616"] {
            assert_eq!(digits::<u64>(text), Err(Malformed), "{text:?}");
        }
    }
}
