//! Starts a gofer as `runsc` starts one: ours, or the one in a `runsc` of any generation.
//!
//! For sandboxes that are not gVisor's, and for whoever wants to compare two gofers: no sandbox is needed. The launcher
//! lays out descriptors and arguments as the [`Generation`] expects them, makes the name spaces, lets the gofer go
//! through its hand-shakes, and hands back what a sandbox would get: the list of mounts, and a connected socket for
//! each mount that the gofer serves, root first.
//!
//! ```no_run
//! use gofer::contract::Generation;
//! use gofer::launch::{Bundle, Launcher, Mount};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = Bundle::new("/srv/image").mount(Mount::bind("/data", "/srv/data").option("ro"));
//! bundle.write("/run/bundle")?;
//! let mut gofer = Launcher::new(Generation::E26, "/usr/local/bin/gofer", "/run/bundle").start()?;
//! // Speak LISAFS on these; the gofer ends when all are closed.
//! let [root, data] = gofer.take_clients().try_into().map_err(|_| "one socket for each served mount")?;
//! # drop((root, data));
//! println!("process {} serves {}", gofer.pid(), gofer.mounts().len());
//! println!("ended: {}", gofer.wait()?);
//! # Ok(())
//! # }
//! ```
//!
//! An E26 gofer has the launcher open sources of mounts that it may not read, or whose owners are mapped. By itself the
//! launcher does so with its own rights; [`Launched::answer_rpc`] gives another answer, and [`Launched::take_rpc`] hands
//! the socket back.
//!
//! What is different from `runsc`: no parent-death signal is set, since that is bound to the starting *thread*; and no
//! filestore is made for overlaid mounts, which is the sandbox's concern.

mod argv;
mod bundle;
mod child;
mod error;
mod idmap;
mod launched;
mod namespaces;
mod rpc;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::contract::{Generation, MountConf};

pub use bundle::{Bundle, Mount};
pub use error::LaunchError;
pub use launched::{Ended, Launched};
pub use namespaces::{IdMap, Namespaces, UserNamespace};
pub use rpc::{OpenMount, Sources};

/// How to start a gofer.
#[derive(Debug)]
pub struct Launcher {
    generation: Generation,
    executable: PathBuf,
    bundle: PathBuf,
    id: String,
    globals: Vec<String>,
    flags: Vec<String>,
    confs: Option<Vec<MountConf>>,
    namespaces: Namespaces,
    cgroup: Option<PathBuf>,
    environment: Option<Vec<OsString>>,
    log: Option<File>,
    debug_log: Option<File>,
    pin_ring: Option<OwnedFd>,
    strays: Vec<OwnedFd>,
    dev: bool,
    sync_nvproxy: bool,
    rootless: bool,
    error: Option<File>,
    arguments: Option<fn(&mut Vec<String>)>,
}

impl Launcher {
    /// Starts `executable`, a gofer or a `runsc`, under the name `runsc-gofer`, for the container whose specification
    /// is `BUNDLE/config.json`.
    #[must_use]
    pub fn new(generation: Generation, executable: impl AsRef<Path>, bundle: impl AsRef<Path>) -> Self {
        Self {
            generation,
            executable: executable.as_ref().to_owned(),
            bundle: bundle.as_ref().to_owned(),
            id: "launched".to_owned(),
            globals: Vec::new(),
            flags: Vec::new(),
            confs: None,
            namespaces: Namespaces::default(),
            cgroup: None,
            environment: None,
            log: None,
            debug_log: None,
            pin_ring: None,
            strays: Vec::new(),
            dev: false,
            sync_nvproxy: false,
            rootless: false,
            error: None,
            arguments: None,
        }
    }

    /// Another program than the one of [`Launcher::new`].
    #[must_use]
    pub fn executable(mut self, executable: impl Into<PathBuf>) -> Self {
        self.executable = executable.into();
        self
    }

    /// Adds a flag before the word `gofer`, such as `--directfs=false` or `--host-uds=all`.
    #[must_use]
    pub fn global(mut self, flag: impl Into<String>) -> Self {
        self.globals.push(flag.into());
        self
    }

    /// Adds a flag behind the word `gofer`.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// The container's id; E26 alone tells its gofer.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// What the root and each mount with a configuration are made of, where it is not `lisafs:none` for all of them.
    /// E22 has no such list.
    #[must_use]
    pub fn confs(mut self, confs: impl Into<Vec<MountConf>>) -> Self {
        self.confs = Some(confs.into());
        self
    }

    /// Other name spaces than new ones for mounts, processes, IPC, host name and network.
    #[must_use]
    pub fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// The directory of a cgroup, version 1 or 2, that the gofer is put into before it runs.
    #[must_use]
    pub fn cgroup(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cgroup = Some(directory.into());
        self
    }

    /// `NAME=VALUE` for all of the environment, instead of our own without `GOMAXPROCS`.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.environment = Some(variables.into_iter().map(Into::into).collect());
        self
    }

    /// Where fatal errors go, as JSON objects.
    #[must_use]
    pub fn log(mut self, file: File) -> Self {
        self.log = Some(file);
        self
    }

    /// Where the debug log goes.
    #[must_use]
    pub fn debug_log(mut self, file: File) -> Self {
        self.debug_log = Some(file);
        self
    }

    /// What an E26 gofer must hold until it ends: `runsc` gives it a ring of the sandbox's.
    #[must_use]
    pub fn pin_ring(mut self, ring: impl Into<OwnedFd>) -> Self {
        self.pin_ring = Some(ring.into());
        self
    }

    /// A descriptor that the gofer inherits though no flag names it.
    #[must_use]
    pub fn stray(mut self, descriptor: impl Into<OwnedFd>) -> Self {
        self.strays.push(descriptor.into());
        self
    }

    /// With a connection for `/dev`; see [`Launched::take_dev`]. From E24 on.
    #[must_use]
    pub fn dev(mut self) -> Self {
        self.dev = true;
        self
    }

    /// E24: with a wait for the configuration of GPUs. [`Launched::release`] ends it.
    #[must_use]
    pub fn sync_nvproxy(mut self) -> Self {
        self.sync_nvproxy = true;
        self
    }

    /// As a caller without privileges has it: the gofer is executed before anybody has mapped the ids of its user name
    /// space ([`Namespaces::user`], which must be a new one), keeps what its start-up needs as ambient capabilities, and
    /// waits for [`Launched::release`] before it takes on the ids that `--uid` and `--gid` say (E26; user and group 0
    /// without them).
    ///
    /// The maps are written as soon as it runs. What we may not write ourselves is left to `newuidmap` and
    /// `newgidmap`: all but a map of the caller's own id.
    #[must_use]
    pub fn rootless(mut self) -> Self {
        self.rootless = true;
        self
    }

    /// Where the gofer's standard error goes until it has a debug log; nowhere without this.
    #[must_use]
    pub fn standard_error(mut self, file: File) -> Self {
        self.error = Some(file);
        self
    }

    /// Changes the finished command line, of which the name is the first word: for what `runsc` does not send. The
    /// descriptors stay as they are.
    #[must_use]
    pub fn arguments(mut self, change: fn(&mut Vec<String>)) -> Self {
        self.arguments = Some(change);
        self
    }

    /// Starts the gofer, which then waits where its generation has it wait: see [`Launched::release`].
    ///
    /// # Errors
    /// A sentence, if the specification cannot be read or the process cannot be started.
    pub fn spawn(self) -> Result<Launched, LaunchError> {
        launched::spawn(self)
    }

    /// [`Launcher::spawn`], [`Launched::release`] and [`Launched::read_mounts`]: the gofer serves.
    ///
    /// # Errors
    /// As these.
    pub fn start(self) -> Result<Launched, LaunchError> {
        let mut launched = self.spawn()?;
        launched.release();
        launched.read_mounts()?;
        Ok(launched)
    }
}
