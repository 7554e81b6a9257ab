//! A temporary directory with a gofer on it, and a client: what most tests start from.

use std::path::{Path, PathBuf};
use std::process::Command;

use gofer_protocol::FdId;
use tempfile::TempDir;

use crate::child::{as_nobody, give_to_nobody};
use crate::{Ask, Gofer, Raw};

/// A served temporary directory. Field order is drop order: the server goes before what it serves.
#[derive(Debug)]
pub struct Served {
    /// A client that has mounted.
    pub client: Raw,
    /// Its root.
    pub root: FdId,
    /// The server.
    pub gofer: Gofer,
    path: PathBuf,
    _dir: Option<TempDir>,
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
        let path = dir.path().to_owned();
        Self { _dir: Some(dir), ..Self::at(&path, flags) }
    }

    /// Serves a directory that is there, and that the caller keeps.
    #[must_use]
    pub fn at(path: &Path, flags: &[&str]) -> Self {
        Self::started(path, flags, |command| command)
    }

    /// As [`Served::at`], with the command changed before it starts.
    #[must_use]
    pub fn started(path: &Path, flags: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let (gofer, stream) = Gofer::serve_with(path, flags, change);
        let client = Raw::new(stream);
        let root = client.mount();
        Self { client, root, gofer, path: path.to_owned(), _dir: None }
    }

    /// As [`Served::with`], by a gofer that runs as [`crate::child::NOBODY`]: the directory is its own, and of what is in it what
    /// `prepare` gives it.
    ///
    /// # Panics
    /// If this process may not give files away; ask [`crate::child::can_be_nobody`].
    #[must_use]
    pub fn by_nobody(flags: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        give_to_nobody(dir.path());
        prepare(dir.path());
        let path = dir.path().to_owned();
        Self { _dir: Some(dir), ..Self::started(&path, flags, as_nobody) }
    }

    /// How many descriptors the server holds between two requests of [`Served::client`].
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.gofer.descriptors_behind(&self.client)
    }

    /// The served directory, as the host sees it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Default for Served {
    fn default() -> Self {
        Self::new()
    }
}
