//! A temporary directory with a gofer on it, and a client: what most tests start from.

use std::path::Path;

use gofer_protocol::FdId;
use tempfile::TempDir;

use crate::{Gofer, Raw};

/// A served temporary directory. Field order is drop order: the server goes before what it serves.
#[derive(Debug)]
pub struct Served {
    /// A client that has mounted.
    pub client: Raw,
    /// Its root.
    pub root: FdId,
    /// The server.
    pub gofer: Gofer,
    dir: TempDir,
}

impl Served {
    /// Serves an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&[], |_| ())
    }

    /// Serves a directory that `prepare` filled, under `flags` of `gofer serve`.
    ///
    /// # Panics
    /// If there is no room for it.
    #[must_use]
    pub fn with(flags: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        prepare(dir.path());
        let (gofer, stream) = Gofer::serve(dir.path(), flags);
        Self::of(gofer, Raw::new(stream), dir)
    }

    /// Mounts over `client` what `gofer`, started by other means, serves of `dir`.
    #[must_use]
    pub fn of(gofer: Gofer, client: Raw, dir: TempDir) -> Self {
        let root = client.mount();
        Self { client, root, gofer, dir }
    }

    /// The served directory, as the host sees it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Default for Served {
    fn default() -> Self {
        Self::new()
    }
}
