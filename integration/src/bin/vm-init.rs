//! Process 1 of the virtual machine: mounts what programs expect, runs the one it was given, reports, stops it all.
//!
//! It is the whole user land of the guest. Whatever fails here is said on the console and becomes exit status 127; a
//! panic is the kernel's panic, which stops the machine and leaves the host without an exit line.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Write as _};
use std::process::Command;
use std::thread::available_parallelism;

use gofer_integration::vm::job::{self, Job};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, WaitStatus, chdir, chroot, setrlimit, wait};
use rustix::system::{RebootCommand, reboot, uname};

/// A step that failed, and why.
type Failure = String;

fn main() {
    let status = run().unwrap_or_else(|failure| {
        println!("vm-init: {failure}");
        127
    });
    // The mark begins a line of its own, since the program need not have ended its last.
    print!("\n{}{status}\n", job::EXIT);
    // With the console gone there is nobody to tell.
    let _ = io::stdout().flush();
    // A reset is what qemu is told to take for the end. Powering off would need ACPI, whose start takes longer.
    let stopped = reboot(RebootCommand::Restart);
    println!("vm-init: cannot stop the machine: {stopped:?}");
}

fn run() -> Result<i32, Failure> {
    leave_rootfs()?;
    mount_all()?;
    open_controllers()?;
    let job = read_job()?;
    if let Some(limit) = job.descriptors {
        raise_descriptors(limit)?;
    }
    print_facts();
    run_program(&job)
}

/// Puts the root on a mount of its own.
///
/// The kernel unpacks the initramfs into rootfs, the one mount without a parent, and `pivot_root` cannot leave such a
/// root. Programs that build a new root, ours among them, would fail here and nowhere else.
fn leave_rootfs() -> Result<(), Failure> {
    let steps = || -> rustix::io::Result<()> {
        rustix::fs::mkdir("/root-mount", 0o755.into())?;
        mount_bind("/", "/root-mount")?;
        chdir("/root-mount")?;
        mount_move(".", "/")?;
        chroot(".")
    };
    steps().map_err(|cause| format!("giving the root a mount: {cause}"))
}

fn mount_all() -> Result<(), Failure> {
    mount_at("proc", "/proc", c"")?;
    mount_at("sysfs", "/sys", c"")?;
    mount_at("devtmpfs", "/dev", c"")?;
    mount_at("cgroup2", "/sys/fs/cgroup", c"")?;
    // Bounded by the guest's memory only: a test may want a file for each of its descriptors.
    mount_at("tmpfs", "/tmp", c"size=100%,nr_inodes=0,mode=1777")
}

fn mount_at(kind: &str, place: &str, options: &CStr) -> Result<(), Failure> {
    // Kernel file systems bring their own mount points; in the initramfs there are none.
    fs::create_dir_all(place).map_err(|cause| format!("creating {place}: {cause}"))?;
    mount(kind, place, kind, MountFlags::empty(), Some(options))
        .map_err(|cause| format!("mounting {kind} at {place}: {cause}"))
}

/// Makes the controllers available to the root's children; on other hosts it is the service manager who does that.
fn open_controllers() -> Result<(), Failure> {
    let steps = || -> io::Result<()> {
        let offered = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")?;
        let wanted = offered.split_whitespace().filter(|name| ["cpu", "cpuset", "memory", "pids", "io"].contains(name));
        let change = wanted.map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ");
        fs::write("/sys/fs/cgroup/cgroup.subtree_control", change)
    };
    steps().map_err(|cause| format!("enabling cgroup controllers: {cause}"))
}

fn read_job() -> Result<Job, Failure> {
    let line = fs::read_to_string("/proc/cmdline").map_err(|cause| format!("reading /proc/cmdline: {cause}"))?;
    Job::parse(&line).ok_or_else(|| format!("the command line has no program to run: {line}"))
}

/// The kernel's limits come first: a process's may not exceed `nr_open`, whoever asks.
fn raise_descriptors(limit: u64) -> Result<(), Failure> {
    raise_to("/proc/sys/fs/nr_open", limit)?;
    // Counts open files of all processes; the room is for a program's peers.
    raise_to("/proc/sys/fs/file-max", limit.saturating_mul(4))?;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) })
        .map_err(|cause| format!("raising the limit of descriptors to {limit}: {cause}"))
}

/// Raises a kernel setting, and leaves one that is high enough already.
fn raise_to(setting: &str, least: u64) -> Result<(), Failure> {
    let steps = || -> io::Result<()> {
        let now = fs::read_to_string(setting)?.trim().parse::<u64>().map_err(io::Error::other)?;
        if now < least { fs::write(setting, least.to_string()) } else { Ok(()) }
    };
    steps().map_err(|cause| format!("raising {setting} to {least}: {cause}"))
}

fn print_facts() {
    println!("{}{}", job::KERNEL, uname().release().to_string_lossy());
    println!("{}{}", job::CPUS, available_parallelism().map_or(0, usize::from));
}

fn run_program(job: &Job) -> Result<i32, Failure> {
    let (program, arguments) = job.argv.split_first().ok_or("no program")?;
    println!("{}{program}", job::RUN);
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .spawn()
        .map_err(|cause| format!("starting {program}: {cause}"))?;
    reap_until(Pid::from_child(&child)).map_err(|cause| format!("waiting for {program}: {cause}"))
}

/// Waits for everybody, since orphans become children of process 1, until the program itself ends.
fn reap_until(program: Pid) -> rustix::io::Result<i32> {
    loop {
        match wait(WaitOptions::empty())? {
            Some((pid, status)) if pid == program => return Ok(shell_status(status)),
            _ => {}
        }
    }
}

fn shell_status(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(127)
}
