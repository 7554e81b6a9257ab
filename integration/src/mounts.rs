//! File systems for tests, in a mount namespace that goes away with the test.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::thread::UnshareFlags;
use tempfile::TempDir;

use crate::say;

/// Runs `test` on a thread with a mount namespace of its own, which gofers that it starts share: what is mounted there
/// is gone when both are, whatever the test's outcome. Skips it where mounting is not allowed.
///
/// # Panics
/// If `test` does.
pub fn in_private_namespace(test: impl FnOnce() + Send) {
    let name = std::thread::current().name().unwrap_or("mounts").to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name).spawn_scoped(scope, || {
            if let Err(errno) = unshare_mounts() {
                return say::skipped(format_args!("needs the right to mount: {errno}"));
            }
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).expect("a namespace that others do not see");
            test();
        });
        if let Err(panic) = thread.expect("a thread").join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[allow(unsafe_code, reason = "rustix marks all of unshare(2) unsafe for the sake of CLONE_FILES")]
fn unshare_mounts() -> rustix::io::Result<()> {
    // SAFETY: the call is unsafe because unsharing the descriptor table would let two threads mean different files by
    // one number. `NEWNS` unshares the mounts, and with them the working directory, which no descriptor depends on.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
}

/// Something that is mounted; taken away on drop.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    /// Removed after it is no longer mounted upon.
    _room: Option<TempDir>,
}

impl Mounted {
    /// A tmpfs with `options`, such as `size=64k`, on a directory of its own.
    #[must_use]
    pub fn tmpfs(options: &str) -> Self {
        Self::of_kind("tmpfs", options)
    }

    /// A file system of `kind`, made by `mkfs.KIND` in a file of `mib` MiB; none, said aloud, where there is no such
    /// program or the kernel does not know the kind.
    #[must_use]
    pub fn image(kind: &str, mib: u64) -> Option<Self> {
        let images = tempfile::tempdir().expect("a temporary directory");
        let image = images.path().join("image");
        File::create(&image).and_then(|file| file.set_len(mib << 20)).expect("room for an image");
        let mkfs = format!("mkfs.{kind}");
        let quiet = Command::new(&mkfs).arg("-q").arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match quiet {
            Ok(status) if status.success() => {}
            Ok(status) => {
                say::skipped(format_args!("{mkfs} fails: {status}"));
                return None;
            }
            Err(error) => {
                say::skipped(format_args!("no {mkfs} (integration/setup.sh installs it): {error}"));
                return None;
            }
        }
        let room = tempfile::tempdir().expect("a temporary directory");
        let at = room.path().to_owned();
        let mounting = Command::new("mount").args(["-t", kind, "-o", "loop"]).arg(&image).arg(&at).output();
        let mounting = mounting.expect("mount(8)");
        if !mounting.status.success() {
            let why = String::from_utf8_lossy(&mounting.stderr).into_owned();
            say::skipped(format_args!("cannot mount a {kind} image: {why}"));
            return None;
        }
        // The image lives on without a name.
        Some(Self { at, _room: Some(room) })
    }

    /// An overlay over two lower directories, each on a file system of its own, and an upper one that can be written;
    /// `fill` gets the two lower ones before.
    #[must_use]
    pub fn overlay(lower: &[&Path], upper: &Path, work: &Path) -> Self {
        let lower: Vec<_> = lower.iter().map(|path| path.display().to_string()).collect();
        let options = format!("lowerdir={},upperdir={},workdir={}", lower.join(":"), upper.display(), work.display());
        Self::of_kind("overlay", &options)
    }

    /// `what`, file or directory, also at `at`, which must exist.
    #[must_use]
    pub fn bind(what: &Path, at: &Path) -> Self {
        mount_bind(what, at).unwrap_or_else(|errno| panic!("bind {} to {}: {errno}", what.display(), at.display()));
        Self { at: at.to_owned(), _room: None }
    }

    fn of_kind(kind: &str, options: &str) -> Self {
        let room = tempfile::tempdir().expect("a temporary directory");
        let data = CString::new(options).expect("no NUL");
        let mounted = mount(kind, room.path(), kind, MountFlags::empty(), Some(data.as_c_str()));
        mounted.unwrap_or_else(|errno| panic!("mount {kind} with {options}: {errno}"));
        Self { at: room.path().to_owned(), _room: Some(room) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a gofer may still hold it.
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// Runs a program of the host to its end.
///
/// # Panics
/// If it cannot be run or fails.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
