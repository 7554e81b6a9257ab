//! The socket that clients connect to: private from the first moment, never stolen from a living server, and gone
//! when the server is.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::Failure;

/// How long another server may take to make its socket in the same directory.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket; its file is removed on drop, if it is still this one.
#[derive(Debug)]
pub(super) struct Listener {
    path: PathBuf,
    /// The socket's file. Held, so that no other file can have its identity once a further server has replaced it.
    file: OwnedFd,
}

impl Listener {
    /// Listens at `path`. A socket file that no server listens on is replaced.
    pub(super) fn bind(path: &Path) -> Result<(Self, UnixListener), Failure> {
        let refuse = |cause: &dyn std::fmt::Display| Failure::new(format_args!("listen on {}", path.display()), cause);
        let address = SocketAddrUnix::new(path)
            .map_err(|_| refuse(&"the path is too long for a Unix socket (107 bytes at most)"))?;
        // Two servers that find the same stale socket must not both replace it: whoever holds the directory's lock
        // decides alone. The lock goes when the descriptor does.
        let _lock = lock_directory(path).map_err(|errno| match errno {
            Errno::WOULDBLOCK => refuse(&"another process keeps its directory locked (flock)"),
            errno => refuse(&errno),
        })?;
        remove_stale(path, &address)?;
        let socket = private_socket(&address).map_err(|errno| refuse(&errno))?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| refuse(&errno))?;
        Ok((Self { path: path.into(), file }, socket.into()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let held = rustix::fs::fstat(&self.file).map(identity);
        if rustix::fs::lstat(&self.path).map(identity) == held
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

fn lock_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = rustix::fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // Any user may lock a directory such as /tmp, for as long as he likes: a server holds it for a moment only.
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(directory.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            locked => return locked.map(|()| directory),
        }
    }
}

/// Removes a socket that no one listens on; refuses everything else that has the name.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), Failure> {
    let refuse = |cause: &str| Failure::new(format_args!("listen on {}", path.display()), cause);
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(refuse("something that is not a socket has this name"));
    }
    match knock(address) {
        Ok(()) => Err(refuse("another server listens there")),
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(|error| refuse(&error.to_string())),
        // A backlog that is full, for one, says that someone is there.
        Err(errno) => Err(refuse(&format!("a socket is there that does not answer ({errno})"))),
    }
}

/// Connects, without waiting for a server whose backlog is full: it may be stopped.
fn knock(address: &SocketAddrUnix) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, address)
}

fn private_socket(address: &SocketAddrUnix) -> rustix::io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file inherits the socket's own mode when it is made, so that it never is more open than this.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
