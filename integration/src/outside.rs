//! Files outside of the served directory, which no client may see, change or reach.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use gofer_protocol::record::Statx;
use rustix::fs::{FileType, Mode, makedev, mknodat};
use tempfile::TempDir;

/// A directory with something of each kind that is worth an attack.
#[derive(Debug)]
pub struct Outside {
    dir: TempDir,
    listener: UnixListener,
    before: Vec<String>,
    identities: HashSet<(u64, u64)>,
}

impl Outside {
    /// Plants `secret`, `socket`, `fifo`, and `dir` with a file `inner` in it.
    ///
    /// # Panics
    /// If the host does not let us.
    #[must_use]
    pub fn new() -> Self {
        Self::with(|_| ())
    }

    /// Plants what `prepare` makes as well.
    ///
    /// # Panics
    /// If the host does not let us.
    #[must_use]
    pub fn with(prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path();
        fs::write(path.join("secret"), "outside").expect("a file");
        fs::set_permissions(path.join("secret"), PermissionsExt::from_mode(0o600)).expect("a mode");
        fs::create_dir(path.join("dir")).expect("a directory");
        fs::write(path.join("dir/inner"), "outside").expect("a file");
        let listener = UnixListener::bind(path.join("socket")).expect("a socket");
        listener.set_nonblocking(true).expect("a non-blocking socket");
        let fifo = path.join("fifo");
        mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), makedev(0, 0)).expect("a FIFO");
        prepare(path);
        let (before, identities) = snapshot(path);
        Self { dir, listener, before, identities }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Whether attributes are those of one of the files.
    #[must_use]
    pub fn holds(&self, stat: &Statx) -> bool {
        self.holds_identity(makedev(stat.dev_major, stat.dev_minor), stat.ino)
    }

    /// Whether this is one of the files.
    #[must_use]
    pub fn holds_identity(&self, dev: u64, ino: u64) -> bool {
        self.identities.contains(&(dev, ino))
    }

    /// Fails if anything was changed, made, removed or connected to.
    ///
    /// # Panics
    /// Then.
    pub fn assert_untouched(&self) {
        assert_eq!(snapshot(self.path()).0, self.before, "files outside of the served directory were changed");
        let accepted = self.listener.accept().map_err(|error| error.kind());
        assert!(matches!(accepted, Err(std::io::ErrorKind::WouldBlock)), "a socket outside was connected to");
    }
}

impl Default for Outside {
    fn default() -> Self {
        Self::new()
    }
}

/// Every file with everything about it that a change would change; the time of the last change included.
fn snapshot(path: &Path) -> (Vec<String>, HashSet<(u64, u64)>) {
    let mut lines = Vec::new();
    let mut identities = HashSet::new();
    let mut pending = vec![path.to_path_buf()];
    while let Some(path) = pending.pop() {
        let is = fs::symlink_metadata(&path).expect("metadata");
        identities.insert((is.dev(), is.ino()));
        lines.push(format!(
            "{} ino {} mode {:o} owner {}:{} links {} size {} changed {}.{}",
            path.display(),
            is.ino(),
            is.mode(),
            is.uid(),
            is.gid(),
            is.nlink(),
            is.size(),
            is.ctime(),
            is.ctime_nsec()
        ));
        if is.is_dir() {
            pending.extend(fs::read_dir(&path).expect("a listing").flatten().map(|entry| entry.path()));
        }
    }
    lines.sort();
    (lines, identities)
}
