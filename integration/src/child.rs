//! Another user than root for a gofer, and other changes of its command before it starts: see
//! [`crate::Gofer::serve_with`].

use std::io;
use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit};

use crate::say;

/// A user that owns nothing: `nobody`.
pub const NOBODY: u32 = 65_534;

/// Whether a gofer can be run as [`NOBODY`]; says aloud if not.
#[must_use]
pub fn can_be_nobody() -> bool {
    let can = rustix::process::geteuid().is_root();
    if !can {
        say::skipped("needs root, to become another user");
    }
    can
}

/// Makes the gofer run as [`NOBODY`], without any capability.
pub fn as_nobody(command: &mut Command) -> &mut Command {
    command.uid(NOBODY).gid(NOBODY)
}

/// Gives a file, or a directory with all that is in it, to [`NOBODY`].
///
/// # Panics
/// If we may not.
pub fn give_to_nobody(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).expect("a new owner");
    if path.symlink_metadata().expect("metadata").is_dir() {
        let entries = path.read_dir().expect("a listing");
        entries.for_each(|entry| give_to_nobody(&entry.expect("an entry").path()));
    }
}

/// Limits the gofer's descriptors, soft and hard. Only for one without `CAP_SYS_RESOURCE`, which raises them.
pub fn limit_descriptors(command: &mut Command, to: u64) -> &mut Command {
    limit(command, Resource::Nofile, to)
}

/// Limits what the gofer may have of a resource, soft and hard.
#[allow(unsafe_code, reason = "a child's limits are set between fork and exec")]
pub fn limit(command: &mut Command, resource: Resource, to: u64) -> &mut Command {
    let set = move || {
        rustix::process::setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) }).map_err(io::Error::from)
    };
    // SAFETY: the closure makes one system call, and neither allocates nor locks.
    unsafe { command.pre_exec(set) }
}

/// Sets the umask that the gofer inherits.
#[allow(unsafe_code, reason = "a child's umask is set between fork and exec")]
pub fn umask(command: &mut Command, mask: u32) -> &mut Command {
    let set = move || {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
        Ok(())
    };
    // SAFETY: the closure makes one system call, and neither allocates nor locks.
    unsafe { command.pre_exec(set) }
}
