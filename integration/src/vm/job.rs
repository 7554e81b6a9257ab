//! What init is asked to do, as words of the kernel's command line, and the marks of its answers on the console.
//!
//! ```text
//! gofer_run=/bin/prog,first%20argument,second  gofer_env=HOME=/tmp,LANG=C  gofer_descriptors=400000
//! ```
//!
//! A comma parts the items, and `%xx` is a byte that would otherwise part something. The kernel takes words that it
//! does not know for init's environment; init reads `/proc/cmdline` instead, where they are as they were written.

/// Marks the line that names the kernel's release.
pub const KERNEL: &str = "GOFER_VM_KERNEL=";
/// Marks the line that counts the CPUs.
pub const CPUS: &str = "GOFER_VM_CPUS=";
/// Marks the line that names the program; its output follows.
pub const RUN: &str = "GOFER_VM_RUN=";
/// Marks the line that ends the output with the program's exit status.
pub const EXIT: &str = "GOFER_VM_EXIT=";

/// A program to run in the guest, and what it needs there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The program's path in the guest, and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// How many descriptors it may open, if that is to be changed.
    pub descriptors: Option<u64>,
}

impl Job {
    /// The job as words for the kernel's command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![format!("gofer_run={}", join(self.argv.iter().map(|word| encode(word))))];
        if !self.env.is_empty() {
            let pairs = self.env.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
            words.push(format!("gofer_env={}", join(pairs)));
        }
        words.extend(self.descriptors.map(|limit| format!("gofer_descriptors={limit}")));
        words
    }

    /// Finds the job among the words of a command line. None if there is no program, or a word is malformed.
    pub fn parse(command_line: &str) -> Option<Self> {
        let mut job = Self::default();
        for word in command_line.split_whitespace() {
            if let Some(argv) = word.strip_prefix("gofer_run=") {
                job.argv = argv.split(',').map(decode).collect::<Option<_>>()?;
            } else if let Some(env) = word.strip_prefix("gofer_env=") {
                job.env = env.split(',').map(pair).collect::<Option<_>>()?;
            } else if let Some(limit) = word.strip_prefix("gofer_descriptors=") {
                job.descriptors = Some(limit.parse().ok()?);
            }
        }
        (!job.argv.is_empty()).then_some(job)
    }
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((decode(name)?, decode(value)?))
}

/// Writes all but letters, digits and a few harmless marks as `%xx`; among them the kernel's own quotes.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/.-_:+@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

fn decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut out = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        out.push(u8::from_str_radix(code, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_command_line() {
        let text = |text: &str| text.to_owned();
        let job = Job {
            argv: vec![text("/bin/prog"), text("a b,c=%41\"\n"), text(""), text("gr\u{fc}n")],
            env: vec![(text("HOME"), text("/t m,p=")), (text("EMPTY"), text(""))],
            descriptors: Some(400_000),
        };
        let line = format!("console=ttyS0 {} quiet\n", job.words().join(" "));
        assert_eq!(Job::parse(&line), Some(job));
    }

    #[test]
    fn a_word_is_readable_on_the_command_line() {
        let job = Job { argv: vec!["/bin/x".to_owned(), "1 2".to_owned()], ..Job::default() };
        assert_eq!(job.words(), ["gofer_run=/bin/x,1%202"]);
    }

    #[test]
    fn malformed_words_are_refused() {
        for line in ["quiet", "gofer_run=%4", "gofer_run=%zz", "gofer_run=x gofer_descriptors=many"] {
            assert_eq!(Job::parse(line), None, "{line}");
        }
    }
}
