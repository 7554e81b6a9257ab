//! What the process may still do once it serves: capabilities, limits, root, system calls. `docs/confinement.md` has the
//! whole picture.
//!
//! Two steps, because one thread has to stand in `/proc/self/fd` in between, by `unshare(2)`, which the filter refuses:
//! [`apply`] while the process has one thread, [`Filter::seal`] before the first byte of a client is read.

mod capabilities;
mod filter;
mod limits;
mod rules;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use gofer::HostSockets;
use gofer::contract::Generation;
use rustix::thread::CapabilitySet;

pub(crate) use filter::Filter;

use crate::prepare::{Connection, Prepared};
use crate::process::StartError;
use crate::process::args::Args;

/// A process that has its final rights and root, but no filter yet.
#[derive(Debug)]
pub(crate) struct Confined {
    /// See [`Prepared::descriptors`].
    pub(crate) descriptors: OwnedFd,
    /// See [`Prepared::mountinfo`].
    pub(crate) mountinfo: File,
    /// Paths are relative to the root that the process has now.
    pub(crate) connections: Vec<Connection>,
    pub(crate) filter: Filter,
}

/// Drops capabilities, sets the limit of open descriptors, and makes the container's root that of the process. Must be
/// called while there is one thread: capabilities are a thread's own.
///
/// # Errors
/// A sentence that names what the kernel refused.
pub(crate) fn apply(args: &Args, prepared: Prepared) -> Result<Confined, StartError> {
    let Prepared { descriptors, mountinfo, root, connections } = prepared;
    let grant = Grant::of(args);
    grant.trim(args.apply_caps)?;
    limits::set_open_files(args.fd_limit)?;
    enter_root(&root)?;
    // Its last use is behind us.
    capabilities::give_up(CapabilitySet::SYS_CHROOT)?;
    Ok(Confined { descriptors, mountinfo, connections, filter: Filter::new(grant) })
}

/// What the command line lets this process do beyond serving files.
#[derive(Clone, Copy, Debug)]
struct Grant {
    host_sockets: HostSockets,
    /// Connects to sockets may be made under a client's ids.
    identities: bool,
}

impl Grant {
    fn of(args: &Args) -> Self {
        let opens = matches!(args.host_sockets, HostSockets::Open | HostSockets::All);
        Self { host_sockets: args.host_sockets, identities: opens && args.generation >= Generation::E26 }
    }

    /// The filter and the capabilities must agree: whoever holds `CAP_SETUID` uses it, and a refused call is the end.
    fn trim(self, all: bool) -> Result<(), StartError> {
        let identities = CapabilitySet::SETUID | CapabilitySet::SETGID;
        match (all, self.identities) {
            (true, true) => capabilities::keep(capabilities::SERVING | identities),
            (true, false) => capabilities::keep(capabilities::SERVING),
            (false, true) => Ok(()),
            (false, false) => capabilities::give_up(identities),
        }
    }
}

fn enter_root(root: &Path) -> Result<(), StartError> {
    let refused = |action, errno| StartError::new(format_args!("{action} {}", root.display()), errno);
    rustix::process::chroot(root).map_err(|errno| refused("make this the root:", errno))?;
    rustix::process::chdir("/").map_err(|errno| refused("go to the top of the root", errno))
}
