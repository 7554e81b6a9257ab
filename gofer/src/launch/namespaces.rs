//! The name spaces that a gofer is born into.

use std::fs;
use std::io;
use std::process::Command;

use rustix::process::Pid;

use super::LaunchError;

/// Which name spaces are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// Mounts. Without it the gofer would build the container's root in the caller's sight.
    pub mount: bool,
    /// Processes: the gofer is number 1.
    pub pid: bool,
    /// System V IPC and POSIX queues.
    pub ipc: bool,
    /// Host name.
    pub uts: bool,
    /// Network: a new one has nothing but a loopback device that is down.
    pub net: bool,
    /// Users; none for the caller's.
    pub user: Option<UserNamespace>,
}

impl Default for Namespaces {
    /// All but users: what `runsc` makes where it has no directfs.
    fn default() -> Self {
        Self { mount: true, pid: true, ipc: true, uts: true, net: true, user: None }
    }
}

impl Namespaces {
    /// As the default, and with a user name space whose ids are the caller's: what `runsc` adds for directfs.
    #[must_use]
    pub fn with_identity() -> Self {
        Self { user: Some(UserNamespace::Identity), ..Self::default() }
    }

    /// Flags for clone3(2).
    pub(super) fn clone_flags(&self) -> libc::c_int {
        [
            (self.mount, libc::CLONE_NEWNS),
            (self.pid, libc::CLONE_NEWPID),
            (self.ipc, libc::CLONE_NEWIPC),
            (self.uts, libc::CLONE_NEWUTS),
            (self.net, libc::CLONE_NEWNET),
            (self.user.is_some(), libc::CLONE_NEWUSER),
        ]
        .into_iter()
        .filter_map(|(wanted, flag)| wanted.then_some(flag))
        .fold(0, |all, flag| all | flag)
    }
}

/// Ids of a new user name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserNamespace {
    /// The caller's own ids, each under its own number.
    Identity,
    /// As said, one list for users and one for groups; 0 must be among the inner ids.
    Maps(Vec<IdMap>, Vec<IdMap>),
}

/// A run of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdMap {
    /// First id in the name space.
    pub inner: u32,
    /// First id outside.
    pub outer: u32,
    /// How many.
    pub count: u32,
}

impl UserNamespace {
    /// Writes the maps of `pid`, which waits for them, or has somebody write them who may.
    pub(super) fn map(&self, pid: Pid) -> Result<(), LaunchError> {
        let (uids, gids) = match self {
            Self::Identity => (identity("uid_map")?, identity("gid_map")?),
            Self::Maps(uids, gids) => (lines(uids), lines(gids)),
        };
        let of = |name: &str| format!("/proc/{}/{name}", pid.as_raw_nonzero());
        let failed = |name: &str, error: io::Error| LaunchError::new(format_args!("write {}", of(name)), error);
        // As runsc; and a caller without rights may map groups in no other way (user_namespaces(7)).
        fs::write(of("setgroups"), "deny").map_err(|error| failed("setgroups", error))?;
        for (name, map, helper) in [("uid_map", &uids, "newuidmap"), ("gid_map", &gids, "newgidmap")] {
            match fs::write(of(name), map) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ask(helper, pid, map)?,
                written => written.map_err(|error| failed(name, error))?,
            }
        }
        Ok(())
    }
}

/// Has a map written by the program that knows what the administrator lets each user map (subuid(5)).
fn ask(helper: &str, pid: Pid, map: &str) -> Result<(), LaunchError> {
    let mut command = Command::new(helper);
    command.arg(pid.as_raw_nonzero().to_string()).args(map.split_whitespace());
    let step = format!("have {helper} map ids");
    let output = command.output().map_err(|error| LaunchError::new(&step, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LaunchError::new(step, String::from_utf8_lossy(&output.stderr).trim()))
}

/// Our own map with the inner ids also as outer ones.
fn identity(name: &str) -> Result<String, LaunchError> {
    let path = format!("/proc/self/{name}");
    let own = fs::read_to_string(&path).map_err(|error| LaunchError::new(format_args!("read {path}"), error))?;
    let mut text = String::new();
    for line in own.lines() {
        let mut words = line.split_whitespace();
        if let (Some(inner), Some(_), Some(count)) = (words.next(), words.next(), words.next()) {
            text += &format!("{inner} {inner} {count}\n");
        }
    }
    Ok(text)
}

fn lines(maps: &[IdMap]) -> String {
    maps.iter().map(|IdMap { inner, outer, count }| format!("{inner} {outer} {count}\n")).collect()
}
