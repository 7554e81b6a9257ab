//! One test, two transports: what holds over the socket holds over a channel.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gofer_protocol::FdId;

use crate::child::can_be_nobody;
use crate::{Ask, Exchange, Gofer, Served};

/// A server on a fresh directory, and one way to ask it.
#[allow(missing_debug_implementations, reason = "a trait object has none")]
pub struct Trial<'t> {
    /// The client.
    pub client: &'t dyn Exchange,
    /// Its root.
    pub root: FdId,
    /// The server.
    pub served: &'t Served,
}

impl Trial<'_> {
    /// Where the host has `name`.
    #[must_use]
    pub fn host(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// What the host says of `name`, of a symbolic link itself.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn metadata(&self, name: &str) -> Metadata {
        self.host(name).symlink_metadata().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Permissions of `name` on the host, setuid, setgid and sticky included.
    #[must_use]
    pub fn permissions(&self, name: &str) -> u32 {
        self.metadata(name).permissions().mode() & 0o7777
    }

    /// Owner and group of `name` on the host.
    #[must_use]
    pub fn owner(&self, name: &str) -> (u32, u32) {
        let metadata = self.metadata(name);
        (metadata.uid(), metadata.gid())
    }

    /// How many descriptors the server holds between two requests of the client.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.served.gofer.descriptors_behind(self.client)
    }

    /// The server's process.
    #[must_use]
    pub fn gofer(&self) -> &Gofer {
        &self.served.gofer
    }

    /// The served directory, as the host sees it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.served.path()
    }

    /// Whether the host has `name`, if only as a dangling link.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        self.host(name).symlink_metadata().is_ok()
    }
}

/// Nothing to prepare.
pub fn nothing(_: &Path) {}

/// Runs `test` on a server over its socket, then on another one over a channel. `prepare` fills their directories.
pub fn over_both(flags: &[&str], prepare: impl Fn(&Path), test: impl Fn(&Trial<'_>)) {
    over_both_on(|| Served::with(flags, &prepare), test);
}

/// As [`over_both`], with servers that run as [`crate::child::NOBODY`], who owns the directory but not what `prepare`
/// puts there. Skipped where that cannot be.
pub fn over_both_unprivileged(flags: &[&str], prepare: impl Fn(&Path), test: impl Fn(&Trial<'_>)) {
    if can_be_nobody() {
        over_both_on(|| Served::by_nobody(flags, &prepare), test);
    }
}

/// As [`over_both`], on servers that `start` starts.
pub fn over_both_on(start: impl Fn() -> Served, test: impl Fn(&Trial<'_>)) {
    eprintln!("over the socket:");
    let served = start();
    test(&Trial { client: &served.client, root: served.root, served: &served });
    drop(served);

    eprintln!("over a channel:");
    let served = start();
    let channel = served.client.on_channel();
    // The server is done with making it once it answers again.
    let _ = served.client.fstat(served.root);
    test(&Trial { client: &channel, root: served.root, served: &served });
}
