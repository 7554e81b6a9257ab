//! A gofer that was started: its hand-shakes, its clients' sockets, its end.

use std::ffi::{CString, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_send_signal, waitid};
use serde_json::Value;

use super::argv::Argv;
use super::child::{self, Plan};
use super::rpc::{self, OpenMount, Sources};
use super::{LaunchError, Launcher, bundle};
use crate::contract::Generation;

/// A gofer, and the other ends of its descriptors. Killed on drop.
#[derive(Debug)]
pub struct Launched {
    pid: Pid,
    pidfd: OwnedFd,
    ended: Option<Ended>,
    mounts_pipe: Option<File>,
    mounts: Vec<Value>,
    clients: Vec<UnixStream>,
    dev: Option<UnixStream>,
    rpc: Option<UnixStream>,
    sync: Vec<UnixStream>,
    sentry_exit: Option<OwnedFd>,
}

impl Launched {
    /// Its number as we see it; it may see itself as 1.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The process, to poll for its end or to signal it.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Lets it go on, where it waits before its first change of a mount: E26 always, E24 with
    /// [`Launcher::sync_nvproxy`], all with [`Launcher::rootless`]. Mount sources that an E26 gofer may not read by itself
    /// are opened for it by [`Sources::open`], unless somebody else answers.
    pub fn release(&mut self) {
        if self.rpc.is_some() {
            // Most gofers ask for nothing. One that does where this fails is told so, or gets the end of the file.
            let sources = self.sources();
            let _ = self.answer_rpc(move |request| sources.as_ref().map_err(LaunchError::to_string)?.open(request));
        }
        self.sync.clear();
    }

    /// Answers what an E26 gofer asks for by `open` instead, on a thread of its own that ends when the gofer starts to
    /// serve. To be called before [`Launched::release`]; what `open` returns as an error is the gofer's end.
    ///
    /// # Errors
    /// A sentence, if there is no thread for it, or the RPC is somebody else's.
    pub fn answer_rpc(
        &mut self,
        open: impl FnMut(&OpenMount) -> Result<OwnedFd, String> + Send + 'static,
    ) -> Result<(), LaunchError> {
        let step = "answer the gofer's requests";
        let socket = self.rpc.take().ok_or_else(|| LaunchError::new(step, "there is no socket for them"))?;
        rpc::answer(socket, open).map_err(|error| LaunchError::new(step, error))
    }

    /// The ends that [`Launched::release`] would close, to do something else with them.
    #[must_use]
    pub fn take_sync(&mut self) -> Vec<UnixStream> {
        std::mem::take(&mut self.sync)
    }

    /// What the gofer's mount name space holds, before [`Launched::release`]: where mount sources are opened.
    ///
    /// # Errors
    /// A sentence, if the caller may not look there.
    pub fn sources(&self) -> Result<Sources, LaunchError> {
        Sources::of(self.pid()).map_err(|errno| LaunchError::new("look into the gofer's name space", errno))
    }

    /// Our end of the RPC, E26's, to be answered in another way than by [`Launched::answer_rpc`]: to be taken before
    /// [`Launched::release`]. The gofer waits for its answers for as long as this end is open.
    #[must_use]
    pub fn take_rpc(&mut self) -> Option<UnixStream> {
        self.rpc.take()
    }

    /// Waits for the list of mounts; the gofer serves from then on.
    ///
    /// # Errors
    /// A sentence, if the gofer ends instead or sends something else.
    pub fn read_mounts(&mut self) -> Result<&[Value], LaunchError> {
        if let Some(mut pipe) = self.mounts_pipe.take() {
            let step = "read the gofer's list of mounts";
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).map_err(|error| LaunchError::new(step, error))?;
            if text.is_empty() {
                let ended = self.wait()?;
                return Err(LaunchError::new(step, format_args!("the gofer sent nothing and {ended}")));
            }
            self.mounts = serde_json::from_slice(&text).map_err(|error| LaunchError::new(step, error))?;
        }
        Ok(&self.mounts)
    }

    /// The read end of that list instead, to read it oneself.
    #[must_use]
    pub fn take_mounts_pipe(&mut self) -> Option<File> {
        self.mounts_pipe.take()
    }

    /// What [`Launched::read_mounts`] has read: all mounts of the specification, with resolved destinations.
    #[must_use]
    pub fn mounts(&self) -> &[Value] {
        &self.mounts
    }

    /// One connected socket for each mount that is served, root first. They speak LISAFS; when all are closed, the
    /// gofer ends.
    #[must_use]
    pub fn take_clients(&mut self) -> Vec<UnixStream> {
        std::mem::take(&mut self.clients)
    }

    /// The connection for `/dev`, with [`Launcher::dev`].
    #[must_use]
    pub fn take_dev(&mut self) -> Option<UnixStream> {
        self.dev.take()
    }

    /// Our end of the socket on which an E26 gofer expects the sandbox's pidfd. While it is open and silent, the gofer
    /// delays its end by half a second.
    #[must_use]
    pub fn take_sentry_exit(&mut self) -> Option<OwnedFd> {
        self.sentry_exit.take()
    }

    /// Closes what is left of our ends and waits for the gofer's own end.
    ///
    /// # Errors
    /// A sentence, if the process cannot be waited for.
    pub fn wait(&mut self) -> Result<Ended, LaunchError> {
        self.release();
        self.clients.clear();
        self.dev = None;
        self.sentry_exit = None;
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let status = retry_on_intr(|| waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED));
        self.note(status.map_err(|errno| LaunchError::new("wait for the gofer", errno))?.as_ref())
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// A sentence, if that cannot be told.
    pub fn ended(&mut self) -> Result<Option<Ended>, LaunchError> {
        if self.ended.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            let status = retry_on_intr(|| waitid(WaitId::PidFd(self.pidfd.as_fd()), options));
            if let Some(status) = status.map_err(|errno| LaunchError::new("ask how the gofer ended", errno))? {
                self.note(Some(&status))?;
            }
        }
        Ok(self.ended)
    }

    /// Kills it and waits.
    ///
    /// # Errors
    /// A sentence, if that cannot be done.
    pub fn kill(&mut self) -> Result<Ended, LaunchError> {
        if self.ended.is_none() {
            pidfd_send_signal(&self.pidfd, Signal::KILL).map_err(|errno| LaunchError::new("kill the gofer", errno))?;
        }
        self.wait()
    }

    fn note(&mut self, status: Option<&WaitIdStatus>) -> Result<Ended, LaunchError> {
        let ended = status.and_then(|status| {
            status.exit_status().map(Ended::Exited).or_else(|| status.terminating_signal().map(Ended::Killed))
        });
        let ended = ended.ok_or_else(|| LaunchError::new("wait for the gofer", "it neither exited nor was killed"))?;
        self.ended = Some(ended);
        Ok(ended)
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if self.ended.is_none() {
            end(&self.pidfd);
        }
    }
}

/// How a gofer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with {code}"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// Kills a process of ours and waits.
fn end(pidfd: &OwnedFd) {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
    reap(pidfd);
}

/// Waits for a process of ours that is about to end.
pub(super) fn reap(pidfd: &OwnedFd) {
    let _ = retry_on_intr(|| waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED));
}

/// Starts a gofer: [`Launcher::spawn`].
pub(super) fn spawn(mut launcher: Launcher) -> Result<Launched, LaunchError> {
    let (generation, is_e26) = (launcher.generation, launcher.generation == Generation::E26);
    let config = launcher.bundle.join("config.json");
    let unreadable = |error| LaunchError::new(format_args!("read {}", config.display()), error);
    let spec = std::fs::read_to_string(&config).map_err(unreadable)?;
    let confs = match launcher.confs.take() {
        Some(confs) => confs,
        None => bundle::default_confs(&spec, generation)?,
    };

    let mut argv = Argv::new(&mut launcher, &confs)?;
    argv.donate("spec-fd", File::open(&config).map_err(unreadable)?);
    let (mounts, mounts_end) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| LaunchError::new("make a pipe", errno))?;
    argv.donate("mounts-fd", mounts_end);
    let rpc = is_e26.then(|| pair(&mut argv, "rpc-fd")).transpose()?;
    argv.donate_some("pin-ring-fd", launcher.pin_ring.take());
    let sentry_exit = is_e26.then(|| seqpacket_pair(&mut argv, "sync-sentry-exit-fd")).transpose()?;
    let mut clients = Vec::new();
    for _ in confs.iter().filter(|conf| conf.is_served()) {
        clients.push(pair(&mut argv, "io-fds")?);
    }
    let dev = launcher.dev.then(|| pair(&mut argv, "dev-io-fd")).transpose()?;
    let mut sync = Vec::new();
    if launcher.rootless {
        sync.push(pair(&mut argv, "sync-userns-fd")?);
    }
    if launcher.sync_nvproxy {
        sync.push(pair(&mut argv, "sync-nvproxy-fd")?);
    }
    if is_e26 {
        sync.push(pair(&mut argv, "sync-chroot-fd")?);
    }
    argv.words.append(&mut launcher.flags);
    if is_e26 {
        argv.words.push(std::mem::take(&mut launcher.id));
    }
    if let Some(change) = launcher.arguments {
        change(&mut argv.words);
    }

    let (pid, pidfd) = started(launcher, argv)?;
    let mounts_pipe = Some(File::from(mounts));
    Ok(Launched { pid, pidfd, ended: None, mounts_pipe, mounts: Vec::new(), clients, dev, rpc, sync, sentry_exit })
}

/// Runs the program with these arguments in its name spaces and its cgroup.
fn started(launcher: Launcher, argv: Argv) -> Result<(Pid, OwnedFd), LaunchError> {
    let environment = launcher.environment.unwrap_or_else(own_environment);
    for stray in &launcher.strays {
        child::inheritable(stray)?;
    }
    let strings = |strings: Vec<Vec<u8>>| -> Result<Vec<CString>, LaunchError> {
        let strings = strings.into_iter().map(CString::new).collect::<Result<_, _>>();
        strings.map_err(|error| LaunchError::new("pass an argument or a variable", error))
    };
    let held = child::spawn(&Plan {
        path: path(&launcher.executable)?,
        argv: strings(argv.words.into_iter().map(String::into_bytes).collect())?,
        environment: strings(environment.into_iter().map(OsString::into_vec).collect())?,
        descriptors: argv.donated,
        namespaces: launcher.namespaces.clone_flags(),
        session: launcher.generation != Generation::E22,
        become_root: launcher.namespaces.user.is_some() && !launcher.rootless,
        ambient: if launcher.rootless { ROOTLESS } else { 0 },
        error: launcher.error.map(OwnedFd::from),
    })?;
    let map = |pid| launcher.namespaces.user.as_ref().map_or(Ok(()), |user| user.map(pid));
    let set_up = || {
        if let Some(cgroup) = &launcher.cgroup {
            let procs = cgroup.join("cgroup.procs");
            let entered = std::fs::write(&procs, held.pid.as_raw_nonzero().to_string());
            entered.map_err(|error| LaunchError::new(format_args!("write {}", procs.display()), error))?;
        }
        if launcher.rootless { Ok(()) } else { map(held.pid) }
    };
    if let Err(error) = set_up() {
        held.give_up();
        return Err(error);
    }
    let (pid, pidfd) = held.go()?;
    if launcher.rootless
        && let Err(error) = map(pid)
    {
        end(&pidfd);
        return Err(error);
    }
    Ok((pid, pidfd))
}

/// What `runsc` lets a gofer keep whose ids are yet to come: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID,
/// SETGID, SETUID, SETPCAP, SYS_CHROOT, SYS_ADMIN.
const ROOTLESS: u32 = 0x24_01df;

fn path(path: &Path) -> Result<CString, LaunchError> {
    let bytes = path.as_os_str().as_bytes();
    CString::new(bytes).map_err(|error| LaunchError::new(format_args!("execute {}", path.display()), error))
}

/// What E26's `runsc` hands on; the others differ in one variable that a gofer ignores.
fn own_environment() -> Vec<OsString> {
    let ours = std::env::vars_os().filter(|(name, _)| name != "GOMAXPROCS");
    ours.map(|(mut text, value)| {
        text.push("=");
        text.push(value);
        text
    })
    .collect()
}

fn pair(argv: &mut Argv, flag: &str) -> Result<UnixStream, LaunchError> {
    let pair = UnixStream::pair();
    let (ours, theirs) = pair.map_err(|error| LaunchError::new(format_args!("make a socket for {flag}"), error))?;
    argv.donate(flag, theirs);
    Ok(ours)
}

fn seqpacket_pair(argv: &mut Argv, flag: &str) -> Result<OwnedFd, LaunchError> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.map_err(|error| LaunchError::new(format_args!("make a socket for {flag}"), error))?;
    argv.donate(flag, theirs);
    Ok(ours)
}
