//! The built `gofer` as a process: started on an inherited socket or otherwise, ended on drop.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running gofer. Killed on drop.
#[derive(Debug)]
pub struct Gofer {
    child: Child,
}

/// Number under which a child gets its socket.
const INHERITED: i32 = 3;

impl Gofer {
    /// The binary under test: `GOFER_BINARY`, or what `cargo build` made beside this test.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn binary() -> PathBuf {
        if let Some(binary) = std::env::var_os("GOFER_BINARY") {
            return binary.into();
        }
        // This test is target/<triple>/<profile>/deps/name-hash.
        let exe = std::env::current_exe().expect("the test's own path");
        let profile = exe.ancestors().nth(2).expect("a target directory");
        let binary = profile.join("gofer");
        assert!(binary.exists(), "{} is missing: run `cargo build -p gofer` first", binary.display());
        binary
    }

    /// Starts `gofer serve --root ROOT --fd 3 FLAGS...` and returns the client's end of its socket.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn serve(root: &Path, flags: &[&str]) -> (Self, UnixStream) {
        Self::serve_with(root, flags, |command| command)
    }

    /// As [`Gofer::serve`], with the command changed before it starts.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn serve_with(
        root: &Path,
        flags: &[&str],
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let mut command = Command::new(Self::binary());
        command.arg("serve").arg("--root").arg(root).args(["--fd", &INHERITED.to_string()]).args(flags);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        change(&mut command);
        inherit(&mut command, theirs.into());
        let child = command.spawn().expect("gofer starts");
        (Self { child }, ours)
    }

    /// A gofer that was started otherwise.
    #[must_use]
    pub fn of(child: Child) -> Self {
        Self { child }
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child, to wait for it.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether the process still runs.
    ///
    /// # Panics
    /// If it cannot be told.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("status of the child").is_none()
    }
}

impl Drop for Gofer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Leaves `fd` to the child as number 3.
#[allow(unsafe_code, reason = "a child's descriptors are set up between fork and exec")]
fn inherit(command: &mut Command, fd: OwnedFd) {
    let set_up = move || {
        // SAFETY: dup2(2) is async-signal-safe and takes two integers; `fd` is open, because the closure owns it.
        match unsafe { libc::dup2(fd.as_raw_fd(), INHERITED) } {
            -1 => Err(std::io::Error::last_os_error()),
            // dup2 to itself leaves CLOEXEC on; then clear it.
            same if same == fd.as_raw_fd() => {
                // SAFETY: fcntl(2) with F_SETFD takes integers and is async-signal-safe.
                unsafe { libc::fcntl(same, libc::F_SETFD, 0) };
                Ok(())
            }
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes async-signal-safe system calls only, and neither allocates nor locks.
    unsafe { command.pre_exec(set_up) };
}
