//! A gofer on a listening socket, for tests with several clients of one server.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gofer_protocol::FdId;
use tempfile::TempDir;

use crate::{Ask, Gofer, Raw, eventually};

/// A served temporary directory that any number of clients may connect to. Field order is drop order: the server goes
/// before what it serves.
#[derive(Debug)]
pub struct Listening {
    /// The server.
    pub gofer: Gofer,
    socket: PathBuf,
    path: PathBuf,
    _dir: Option<TempDir>,
    _home: TempDir,
}

impl Listening {
    /// Serves a directory that `prepare` filled, under `flags` of `gofer serve`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn with(flags: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        prepare(dir.path());
        let path = dir.path().to_owned();
        Self { _dir: Some(dir), ..Self::at(&path, flags) }
    }

    /// Serves a directory that is there, and that the caller keeps.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn at(path: &Path, flags: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let socket = home.path().join("socket");
        let mut command = Command::new(Gofer::binary());
        command.arg("serve").arg("--root").arg(path).arg("--socket").arg(&socket).args(flags);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("gofer starts");
        let listening = Self { gofer: Gofer::of(child), socket, path: path.to_owned(), _dir: None, _home: home };
        assert!(eventually(|| UnixStream::connect(&listening.socket).is_ok()), "the server listens");
        // Whatever was needed to find that out is gone, so that descriptors can be counted from here on.
        drop(listening.client());
        assert!(eventually(|| listening.gofer.threads() == 1), "the server is idle");
        listening
    }

    /// A client that has mounted, and its root.
    ///
    /// # Panics
    /// If the server takes no more.
    #[must_use]
    pub fn client(&self) -> (Raw, FdId) {
        let client = Raw::new(UnixStream::connect(&self.socket).expect("the server listens"));
        let root = client.mount();
        (client, root)
    }

    /// Where the server listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The served directory, as the host sees it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
