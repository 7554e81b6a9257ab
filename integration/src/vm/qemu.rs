//! Which qemu, which machine, and its life: it never outlives the test that started it.

use std::io::{self, BufRead as _, BufReader, PipeReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::{env, thread};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::VmError;

/// What the kernel is told besides the job.
pub(super) const KERNEL_WORDS: &[&str] = &[
    "console=ttyS0",
    // Errors still reach the console, and nothing else gets between the program's lines.
    "quiet",
    // A panic, or an init that ended, stops the machine at once instead of hanging it. qemu takes the reset as the end.
    "panic=-1",
    "reboot=t",
    // Self-tests of ciphers that nobody uses here: an eighth of the time to boot.
    "cryptomgr.notests",
];

/// A plain PC, emulated.
///
/// The `microvm` machine boots half a second sooner, but without ACPI it has one CPU and a clock of 4 ms, and with ACPI
/// the kernel now and then hangs while it calibrates its clock. KVM is left alone even where it is offered: on nested
/// hosts with a `/dev/kvm` that opens, a guest has been seen to spin for ever.
const MACHINE: &[&str] = &["-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max"];

/// No devices but a serial port; a reset ends qemu.
const DEVICES: &[&str] =
    &["-no-user-config", "-nodefaults", "-display", "none", "-serial", "stdio", "-nic", "none", "-no-reboot"];

/// What the kernel takes of its command line on x86-64; it cuts off the rest without a word.
pub(super) const COMMAND_LINE_SIZE: usize = 2048;

const PROGRAM: &str = "qemu-system-x86_64";

const FETCH: &str = "run `make vm` (integration/vm/fetch.sh)";

/// The host's qemu, and the kernel to boot.
pub(super) struct Program {
    qemu: PathBuf,
    kernel: PathBuf,
}

/// One machine, as qemu is told about it.
pub(super) struct Machine<'a> {
    pub memory_mib: u32,
    pub cpus: u32,
    pub initramfs: &'a Path,
    pub command_line: &'a str,
}

/// A qemu that runs, and ends with this value.
pub(super) struct Running {
    child: Child,
    /// The console's lines, qemu's own complaints among them; closed when qemu has ended.
    pub lines: Receiver<String>,
}

/// Finds qemu and the kernel, or says what to run.
pub(super) fn find() -> Result<Program, VmError> {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/vm/vmlinuz");
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(qemu) = env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|file| file.is_file()) else {
        return Err(VmError::Missing(format!("no {PROGRAM} on the PATH: {FETCH}")));
    };
    if kernel.is_file() {
        Ok(Program { qemu, kernel })
    } else {
        Err(VmError::Missing(format!("no kernel at {}: {FETCH}", kernel.display())))
    }
}

impl Machine<'_> {
    /// Starts qemu with the console on a pipe.
    pub(super) fn start(&self, program: &Program) -> Result<Running, VmError> {
        let start = || -> io::Result<Running> {
            let (reader, writer) = io::pipe()?;
            let mut command = self.command(program);
            command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            let child = command.spawn()?;
            // Ours are the last open ends of the writer: while they live, the reader sees no end.
            drop(command);
            Ok(Running { child, lines: lines_of(reader) })
        };
        start().map_err(|cause| VmError::host(&format!("starting {}", program.qemu.display()), cause))
    }

    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.qemu);
        command
            .args(DEVICES)
            .args(MACHINE)
            .args(["-m", &format!("{}M", self.memory_mib), "-smp", &self.cpus.to_string()])
            .args(["-append", self.command_line])
            .arg("-kernel")
            .arg(&program.kernel)
            .arg("-initrd")
            .arg(self.initramfs);
        // SAFETY: between fork and exec only async-signal-safe code may run; the closure makes one system call, and
        // neither allocates nor takes a lock. No safe way exists: the setting is cleared by fork, so that only the
        // child can make it, and it survives exec.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        command
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a child that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread that ends with the pipe; the channel lets its reader wait with a deadline.
fn lines_of(pipe: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            let line = String::from_utf8_lossy(&line);
            // The console is a terminal, which ends lines with a carriage return as well.
            if sender.send(line.trim_end_matches('\r').to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}
