//! Serving: a server for each tree, a connection for each client, a worker for each way that a client has to ask.

mod connection;
mod dispatch;
mod interrupt;
mod oversize;
mod worker;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

pub use connection::Connection;
pub(crate) use dispatch::SUPPORTED;

use crate::host::ProcFd;
use crate::host::mounts::MountTable;
use crate::tree::{Node, Tree};
use crate::{Limits, Policy};

/// One served tree, shared by all its connections.
#[derive(Debug)]
pub struct Server {
    pub(crate) tree: Tree,
    pub(crate) proc_fd: ProcFd,
    pub(crate) mounts: MountTable,
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
        Ok(Arc::new(Self { tree: Tree::new(), proc_fd, mounts: MountTable::open() }))
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
}
