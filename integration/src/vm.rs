//! A virtual machine for what the test host cannot give: 300,000 descriptors, a cgroup tree of our own, another kernel.
//!
//! qemu emulates the processor, so neither KVM nor nested virtualisation is needed. The kernel is Debian's cloud kernel
//! and the initramfs holds nothing but our own static binaries: `vm-init` as process 1, and the program under test.
//! `integration/vm/fetch.sh` brings qemu and the kernel.
//!
//! Guest and host share only the serial console. The guest's lines are collected here and also echoed to stderr as they
//! come, where the test harness shows them for a test that failed.

mod console;
mod cpio;
pub mod job;
mod qemu;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use console::Console;
use cpio::Archive;
use job::Job;

/// A machine to be started: which init, which files, which resources.
#[derive(Clone, Debug)]
pub struct Vm {
    init: PathBuf,
    files: Vec<(PathBuf, String)>,
    kernel_words: Vec<String>,
    job: Job,
    memory_mib: u32,
    cpus: u32,
    timeout: Duration,
}

/// What a machine did that booted, ran its program and stopped.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The program's exit status; 128 and the signal's number where a signal ended it, as in a shell.
    pub status: i32,
    /// What the program wrote to stdout and stderr.
    pub output: Vec<String>,
    /// The guest kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The CPUs that init may run on.
    pub cpus: usize,
    /// From starting qemu until it was gone.
    pub elapsed: Duration,
}

/// Why a machine brought no outcome.
#[derive(Debug)]
pub enum VmError {
    /// qemu or the kernel is not on this host; the text says what to run.
    Missing(String),
    /// The host side failed at the named step.
    Host(String, io::Error),
    /// The guest did not report an exit status in time, or at all. Carries the last console lines.
    Guest(String, Vec<String>),
}

impl Vm {
    /// A machine with one CPU, 256 MiB and three minutes' time, which only a failure takes, whose process 1 is the static
    /// binary `init` (`vm-init`).
    pub fn new(init: impl Into<PathBuf>) -> Self {
        Self {
            init: init.into(),
            files: Vec::new(),
            kernel_words: Vec::new(),
            job: Job::default(),
            memory_mib: 256,
            cpus: 1,
            timeout: Duration::from_secs(180),
        }
    }

    /// Copies the host's file `host` into the guest as `guest`, an absolute path, with its executable bit.
    #[must_use]
    pub fn file(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.files.push((host.into(), guest.to_owned()));
        self
    }

    /// Adds a word to the kernel's command line.
    #[must_use]
    pub fn kernel_word(mut self, word: &str) -> Self {
        self.kernel_words.push(word.to_owned());
        self
    }

    /// Sets a variable in the program's environment, which is empty otherwise.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.job.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets the program open this many descriptors: both of its limits, and the kernel's own.
    #[must_use]
    pub const fn descriptors(mut self, limit: u64) -> Self {
        self.job.descriptors = Some(limit);
        self
    }

    /// Gives the guest this much memory, its files included.
    #[must_use]
    pub const fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Gives the guest this many CPUs.
    #[must_use]
    pub const fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Ends the machine, and fails, when it has not stopped by itself after this long.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Boots, runs the program (`argv[0]` is its path in the guest) and waits until the machine has stopped.
    ///
    /// qemu is ended when this function is left in any way, and when the calling process dies.
    pub fn run<S: AsRef<str>>(mut self, argv: impl IntoIterator<Item = S>) -> Result<Outcome, VmError> {
        self.job.argv = argv.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let program = qemu::find()?;
        let work = tempfile::tempdir().map_err(|cause| VmError::host("making a directory for the initramfs", cause))?;
        let initramfs = work.path().join("initramfs");
        self.write_initramfs(&initramfs)?;

        let started = Instant::now();
        let machine = qemu::Machine {
            memory_mib: self.memory_mib,
            cpus: self.cpus,
            initramfs: &initramfs,
            command_line: &self.command_line()?,
        };
        let running = machine.start(&program)?;
        let console = Console::read(&running.lines, started + self.timeout)?;
        console.outcome(started.elapsed())
    }

    fn write_initramfs(&self, path: &Path) -> Result<(), VmError> {
        let file = File::create(path).map_err(|cause| VmError::host("creating the initramfs", cause))?;
        let mut archive = Archive::new(io::BufWriter::new(file));
        let init = (&self.init, "/init");
        let others = self.files.iter().map(|(host, guest)| (host, guest.as_str()));
        for (host, guest) in std::iter::once(init).chain(others) {
            archive
                .add(host, guest)
                .map_err(|cause| VmError::host(&format!("packing {} as {guest}", host.display()), cause))?;
        }
        archive.finish().map_err(|cause| VmError::host("finishing the initramfs", cause))
    }

    fn command_line(&self) -> Result<String, VmError> {
        let fixed = qemu::KERNEL_WORDS.iter().map(|word| (*word).to_owned());
        let line = fixed.chain(self.kernel_words.iter().cloned()).chain(self.job.words()).collect::<Vec<_>>().join(" ");
        if line.len() < qemu::COMMAND_LINE_SIZE {
            Ok(line)
        } else {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, format!("{} bytes are too many", line.len()));
            Err(VmError::host("composing the kernel's command line", cause))
        }
    }
}

/// Whether machines can be started here; the error says what to run where they cannot.
pub fn available() -> Result<(), VmError> {
    qemu::find().map(drop)
}

impl VmError {
    fn host(step: &str, cause: io::Error) -> Self {
        Self::Host(step.to_owned(), cause)
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => out.write_str(what),
            Self::Host(step, cause) => write!(out, "{step}: {cause}"),
            Self::Guest(what, tail) => write!(out, "{what}; the console ended with:\n{}", tail.join("\n")),
        }
    }
}

impl std::error::Error for VmError {}
