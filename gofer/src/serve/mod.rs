//! Serving: a server for each tree, a connection for each client, a worker for each way that a client has to ask.

mod connection;
mod dispatch;
mod interrupt;
mod oversize;
mod tally;
mod worker;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::Arc;

pub use connection::Connection;
pub(crate) use dispatch::SUPPORTED;
pub use tally::Totals;

use gofer_protocol::Errno;

use self::tally::Tally;
use crate::host::mounts::MountTable;
use crate::host::{FileName, ProcFd};
use crate::tree::{Node, Tree};
use crate::{Limits, Policy};

/// One served tree, shared by all its connections.
#[derive(Debug)]
pub struct Server {
    pub(crate) tree: Tree,
    pub(crate) proc_fd: ProcFd,
    pub(crate) mounts: MountTable,
    tally: Tally,
}

/// Where in the tree a connection is rooted: a held file of the host, usually a directory.
#[derive(Clone, Debug)]
pub struct MountPoint {
    pub(crate) host: Arc<OwnedFd>,
    pub(crate) node: Arc<Node>,
}

impl Server {
    /// A server of which no connection knows anything yet.
    ///
    /// # Errors
    /// Where `/proc` is not mounted.
    pub fn new() -> std::io::Result<Arc<Self>> {
        let proc_fd = ProcFd::open()?;
        Ok(Self::made(proc_fd, MountTable::open()))
    }

    /// As [`Server::new`], for a process that no longer sees `/proc`, and that a system call filter may end: serving then
    /// takes neither `unshare(2)`, `chdir(2)` nor `capset(2)`.
    ///
    /// `descriptors` is `/proc/self/fd`, `mountinfo` `/proc/self/mountinfo`. [`Server::connect`] is called by a thread
    /// that called [`Server::stand`] before, or by one that such a thread started.
    #[must_use]
    pub fn confined(descriptors: OwnedFd, mountinfo: File) -> Arc<Self> {
        let proc_fd = ProcFd::inherited(descriptors);
        Self::made(proc_fd, MountTable::over(Some(mountinfo)))
    }

    fn made(proc_fd: ProcFd, mounts: MountTable) -> Arc<Self> {
        Arc::new(Self { tree: Tree::new(), proc_fd, mounts, tally: Tally::default() })
    }

    /// Makes the calling thread one whose threads can serve a confined server's connections: its working directory
    /// becomes `/proc/self/fd`, its umask 0. Other threads that are there already keep theirs.
    ///
    /// # Errors
    /// Those of `unshare(2)` and `fchdir(2)`.
    pub fn stand(&self) -> std::io::Result<()> {
        Ok(self.proc_fd.stand()?)
    }

    /// The root of the tree: what is at `path` now. It stays that file, whatever happens to the path later.
    ///
    /// `path` is trusted; this is the only place that resolves one, symbolic links included.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn root(&self, path: &Path) -> std::io::Result<MountPoint> {
        use rustix::fs::{Mode, OFlags};
        let host = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(MountPoint { host: Arc::new(host), node: Arc::clone(self.tree.root()) })
    }

    /// A position of the tree: what is at `path` now, seen from the root of the process, which is the root of the tree.
    /// Connections that are rooted at different positions exclude each other's renames and removals as one would.
    ///
    /// `path` is absolute and has neither `..` nor symbolic links in it.
    ///
    /// # Errors
    /// `EINVAL` for another path, `ELOOP` for a symbolic link, and those of `openat2(2)` (Linux 5.6).
    pub fn mount_at(&self, path: &Path) -> std::io::Result<MountPoint> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let host = rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
        self.mount_of(path, host)
    }

    /// As [`Server::mount_at`], with what was at `path` when somebody opened it, by `O_PATH`.
    ///
    /// # Errors
    /// `EINVAL` as there.
    pub fn mount_of(&self, path: &Path, held: OwnedFd) -> std::io::Result<MountPoint> {
        Ok(MountPoint { host: Arc::new(held), node: self.position(path)? })
    }

    fn position(&self, path: &Path) -> Result<Arc<Node>, Errno> {
        if !path.is_absolute() {
            return Err(Errno::EINVAL);
        }
        let positions = self.tree.shared();
        let names = path.components().filter(|component| *component != Component::RootDir);
        names
            .map(|component| FileName::new(component.as_os_str().as_bytes()))
            .try_fold(Arc::clone(self.tree.root()), |parent, name| Ok(self.tree.child((&parent, name?), &positions)))
    }

    /// Serves one client on the connected stream socket `socket`, from its own thread, until it leaves.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn connect(
        self: &Arc<Self>,
        socket: OwnedFd,
        mount: MountPoint,
        policy: Policy,
        limits: Limits,
    ) -> std::io::Result<Arc<Connection>> {
        Connection::start(Arc::clone(self), socket, mount, policy, limits)
    }

    /// What connections that are over have asked for.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.tally.totals()
    }
}
