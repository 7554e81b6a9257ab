//! Where a thread stands: in `/proc/self/fd`, so that a held descriptor has a name for calls that want one.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::thread::UnshareFlags;

/// Enough for one system call and the thread's own start.
const THREAD_STACK: usize = 64 << 10;

/// The directory `/proc/self/fd`, opened while `/proc` is in sight and kept when it no longer is.
#[derive(Debug)]
pub(crate) struct ProcFd {
    dir: OwnedFd,
    standing: Standing,
}

/// How threads come to stand in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Each goes there by itself, whatever process it is in.
    Alone,
    /// They are there from birth: the thread that started them is. Nothing is left to be done that a system call filter
    /// would have to allow.
    Inherited,
}

impl ProcFd {
    /// Fails where `/proc` is not mounted.
    pub(crate) fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open("/proc/self/fd", flags, Mode::empty())?;
        Ok(Self { dir, standing: Standing::Alone })
    }

    /// Takes over `dir`, which is `/proc/self/fd`. Threads that use it descend from one that called [`ProcFd::stand`].
    pub(crate) fn inherited(dir: OwnedFd) -> Self {
        Self { dir, standing: Standing::Inherited }
    }

    /// Whether the process gave up what a confined one must not do, `unshare(2)` and `capset(2)` among it.
    pub(crate) fn is_confined(&self) -> bool {
        self.standing == Standing::Inherited
    }

    /// Opens anew what `fd` holds, whatever its name is by now.
    ///
    /// `O_NONBLOCK` always: an open must wait neither for a FIFO's peer nor for the holder of a lease (fcntl(2)), which
    /// may be the client itself.
    pub(crate) fn reopen(&self, fd: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(&self.dir, DecInt::from_fd(fd), flags, Mode::empty())
    }

    /// The calling thread's place in this directory; takes it there first, unless it was born there.
    pub(crate) fn enter(&self) -> Result<Place<'_>, Errno> {
        match self.standing {
            Standing::Alone => self.stand()?,
            Standing::Inherited => {}
        }
        Ok(Place { proc_fd: self, this_thread_only: PhantomData })
    }

    /// Makes the calling thread stand in this directory, alone: its siblings keep theirs, and its umask becomes 0.
    /// Threads that it starts from then on share its place.
    pub(crate) fn stand(&self) -> Result<(), Errno> {
        // A thread's working directory, root and umask are one kernel object, shared until this call.
        unshare_fs()?;
        rustix::process::fchdir(&self.dir)?;
        rustix::process::umask(Mode::empty());
        Ok(())
    }
}

impl AsFd for ProcFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// Proof that the calling thread stands in `/proc/self/fd`, so that a relative path that is a number names a held
/// descriptor. It cannot leave its thread.
#[derive(Debug)]
pub(crate) struct Place<'p> {
    proc_fd: &'p ProcFd,
    this_thread_only: PhantomData<*const ()>,
}

impl Place<'_> {
    /// For calls that take a directory descriptor.
    pub(crate) fn proc_fd(&self) -> &ProcFd {
        self.proc_fd
    }

    /// The name of `fd` here: following it leads to what `fd` holds, even if that is a symbolic link itself.
    pub(crate) fn name_of(&self, fd: impl AsFd) -> DecInt {
        DecInt::new(fd.as_fd().as_raw_fd())
    }
}

/// Runs `call` on a thread of its own, which takes whatever `call` did to its identity to its grave: nothing has to be
/// restored, so no failure to restore can exist.
///
/// # Errors
/// Those of `call`; `ENOMEM` where no thread can be had.
pub(crate) fn on_own_thread<T: Send>(call: impl FnOnce() -> Result<T, Errno> + Send) -> Result<T, Errno> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(THREAD_STACK).spawn_scoped(scope, call);
        thread.map_err(|_| Errno::NOMEM)?.join().unwrap_or(Err(Errno::IO))
    })
}

#[allow(unsafe_code, reason = "rustix marks all of unshare(2) unsafe for the sake of CLONE_FILES")]
fn unshare_fs() -> Result<(), Errno> {
    // SAFETY: the call is unsafe because unsharing the descriptor table would let two threads mean different files by
    // one number. `FS` unshares only the working directory, root and umask, which no descriptor depends on.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }
}
