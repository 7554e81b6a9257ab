//! One test, two transports: what holds over the socket holds over a channel.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use gofer_protocol::FdId;

use crate::ask::{Ask, Exchange};
use crate::{Gofer, Raw, Served};

/// A user without any right.
pub const NOBODY: u32 = 65_534;

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
        self.served.path().join(name)
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

    /// How many descriptors the server holds, between two requests: those that it donated are its no longer.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        // Whoever answers this is done with what was asked before.
        let _ = self.client.fstat(FdId::NONE);
        self.served.gofer.descriptors().len()
    }

    /// Whether the host has `name`, if only as a dangling link.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        self.host(name).symlink_metadata().is_ok()
    }
}

/// Runs `test` on a server over its socket, then on another one over a channel. `prepare` fills their directories.
pub fn over_both(flags: &[&str], prepare: impl Fn(&Path), test: impl Fn(&Trial<'_>)) {
    eprintln!("over the socket:");
    with_socket(&Served::with(flags, &prepare), &test);
    eprintln!("over a channel:");
    with_channel(&Served::with(flags, &prepare), &test);
}

/// As [`over_both`], with a server that runs as [`NOBODY`], who owns the directory but not what `prepare` puts there.
///
/// Says so and does nothing where the tests themselves do not run as root.
pub fn over_both_unprivileged(flags: &[&str], prepare: impl Fn(&Path), test: impl Fn(&Trial<'_>)) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can start a server as somebody else");
        return;
    }
    eprintln!("over the socket:");
    with_socket(&unprivileged(flags, &prepare), &test);
    eprintln!("over a channel:");
    with_channel(&unprivileged(flags, &prepare), &test);
}

fn with_socket(served: &Served, test: impl Fn(&Trial<'_>)) {
    test(&Trial { client: &served.client, root: served.root, served });
}

fn with_channel(served: &Served, test: impl Fn(&Trial<'_>)) {
    let channel = served.client.channel().expect("a channel").connect();
    // The server is done with making it once it answers again.
    let _ = served.client.fstat(FdId::NONE);
    test(&Trial { client: &channel, root: served.root, served });
}

fn unprivileged(flags: &[&str], prepare: impl FnOnce(&Path)) -> Served {
    let dir = tempfile::tempdir().expect("a temporary directory");
    chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("a new owner");
    prepare(dir.path());
    let (gofer, stream) = Gofer::serve_with(dir.path(), flags, |command| command.uid(NOBODY).gid(NOBODY));
    Served::of(gofer, Raw::new(stream), dir)
}
