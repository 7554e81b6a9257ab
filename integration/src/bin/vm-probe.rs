//! The program that the virtual machine's own tests run: shows from inside that the machine gives what it promises.
//!
//! ```text
//! vm-probe exit STATUS          ends with this status
//! vm-probe signal               is ended by a signal
//! vm-probe descriptors COUNT    opens this many, a quarter of them files on tmpfs, the others eventfds
//! vm-probe cgroup               makes a group with a CPU quota and moves into it
//! vm-probe pivot                makes a tmpfs its root
//! vm-probe hang                 never ends
//! ```

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, thread};

use rustix::event::{EventfdFlags, eventfd};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Signal, getpid, getrlimit, kill_process, pivot_root};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match probe(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("vm-probe: {error}");
            ExitCode::from(100)
        }
    }
}

fn probe(words: &[&str]) -> io::Result<u8> {
    match *words {
        ["exit", status] => return number(status),
        ["signal"] => kill_process(getpid(), Signal::KILL)?,
        ["descriptors", count] => open_descriptors(number(count)?)?,
        ["cgroup"] => join_group()?,
        ["pivot"] => change_root()?,
        ["hang"] => loop {
            thread::park();
        },
        _ => return Err(io::Error::other(format!("no such probe: {words:?}"))),
    }
    Ok(0)
}

fn open_descriptors(count: usize) -> io::Result<()> {
    println!("limit {:?}", getrlimit(Resource::Nofile).current);
    let started = Instant::now();
    let mut held: Vec<OwnedFd> = Vec::with_capacity(count);
    for index in 0..count {
        held.push(if index % 4 == 0 {
            File::create(format!("/tmp/{index}"))?.into()
        } else {
            eventfd(0, EventfdFlags::CLOEXEC)?
        });
    }
    let highest = held.iter().map(OwnedFd::as_raw_fd).max().unwrap_or(-1);
    println!("opened {} in {} ms, the highest is {highest}", held.len(), started.elapsed().as_millis());
    for name in ["/proc/sys/fs/file-nr", "/proc/meminfo"] {
        print!("{}", fs::read_to_string(name)?.lines().take(3).map(|line| format!("{line}\n")).collect::<String>());
    }
    Ok(())
}

fn join_group() -> io::Result<()> {
    println!("offered {}", fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control")?.trim());
    fs::create_dir("/sys/fs/cgroup/probe")?;
    fs::write("/sys/fs/cgroup/probe/cpu.max", "150000 100000")?;
    fs::write("/sys/fs/cgroup/probe/cgroup.procs", "0")?;
    println!("cpu.max {}", fs::read_to_string("/sys/fs/cgroup/probe/cpu.max")?.trim());
    println!("member of {}", fs::read_to_string("/proc/self/cgroup")?.trim());
    Ok(())
}

fn change_root() -> io::Result<()> {
    fs::create_dir("/tmp/new")?;
    mount("tmpfs", "/tmp/new", "tmpfs", MountFlags::empty(), None)?;
    fs::create_dir("/tmp/new/old")?;
    pivot_root("/tmp/new", "/tmp/new/old")?;
    let mut names = fs::read_dir("/")?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    println!("root has {names:?}");
    Ok(())
}

fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("not a number in range: {text}")))
}
