//! Sockets of the host: connect by held descriptor, bind by one name in a held directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gofer_protocol::record::FileMode;
use gofer_protocol::{Errno, Gid, Uid};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::place::on_own_thread;
use super::{FileName, Place};

/// Non-blocking from the start: a full backlog must not hold the caller, nor an empty one.
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// `ENXIO` unless `raw` is `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`, without flags.
pub(crate) fn socket_type(raw: u32) -> Result<SocketType, Errno> {
    [SocketType::STREAM, SocketType::DGRAM, SocketType::SEQPACKET]
        .into_iter()
        .find(|known| known.as_raw() == raw)
        .ok_or(Errno::ENXIO)
}

/// Connects to the socket whose file is `file`.
pub(crate) fn connect(place: &Place<'_>, file: impl AsFd, kind: SocketType) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, FLAGS, None)?;
    let address = SocketAddrUnix::new(place.name_of(file).as_c_str())?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

/// As [`connect`], with the effective ids that the peer shall see and that the file's mode is checked against.
///
/// # Errors
/// `EPERM` where the ids cannot be taken on: connecting as the server instead would lend its identity to the client.
pub(crate) fn connect_as(
    place: &Place<'_>,
    file: impl AsFd,
    kind: SocketType,
    uid: Uid,
    gid: Gid,
) -> Result<OwnedFd, Errno> {
    let (proc_fd, file) = (place.proc_fd(), file.as_fd());
    on_own_thread(|| {
        let place = proc_fd.enter()?;
        take_identity(uid, gid).map_err(|_| rustix::io::Errno::PERM)?;
        Ok(connect(&place, file, kind))
    })?
}

/// Sets the calling thread's effective ids, and leaves the server's supplementary groups behind: they are no more the
/// client's than its ids. First the groups, then the group, because a user that is not root may set neither.
fn take_identity(uid: Uid, gid: Gid) -> rustix::io::Result<()> {
    let uid = Some(uid.0).filter(|&id| uid != Uid::NONE && id != rustix::process::geteuid().as_raw());
    let gid = Some(gid.0).filter(|&id| gid != Gid::NONE && id != rustix::process::getegid().as_raw());
    if (uid, gid) != (None, None) && !rustix::process::getgroups()?.is_empty() {
        rustix::thread::set_thread_groups(&[])?;
    }
    if let Some(gid) = gid {
        let (real, saved) = (rustix::process::getgid(), rustix::process::getegid());
        rustix::thread::set_thread_res_gid(real, rustix::thread::Gid::from_raw(gid), saved)?;
    }
    if let Some(uid) = uid {
        let (real, saved) = (rustix::process::getuid(), rustix::process::geteuid());
        rustix::thread::set_thread_res_uid(real, rustix::thread::Uid::from_raw(uid), saved)?;
        if uid != 0 {
            // The kernel takes capabilities away only from who was root. They would open sockets that the ids may not.
            let kept = rustix::thread::capabilities(None)?;
            let effective = rustix::thread::CapabilitySet::empty();
            rustix::thread::set_capabilities(None, rustix::thread::CapabilitySets { effective, ..kept })?;
        }
    }
    Ok(())
}

/// Longest name of a socket. The kernel takes one byte more, without the NUL behind it, but then no C program can name
/// the socket in full.
const LONGEST_NAME: usize = 107;

/// The address of `name`, relative to its directory, whose own path may be of any length.
///
/// # Errors
/// `EINVAL` beyond 107 bytes.
pub(crate) fn address(name: FileName<'_>) -> Result<SocketAddrUnix, Errno> {
    let name = name.as_bytes();
    if name.len() > LONGEST_NAME {
        return Err(Errno::EINVAL);
    }
    Ok(SocketAddrUnix::new(Path::new(OsStr::from_bytes(name)))?)
}

/// Binds a new socket to a name in `dir`; its file has `mode` from the start.
///
/// # Errors
/// `EADDRINUSE` if the name exists.
pub(crate) fn bind(
    dir: impl AsFd,
    address: &SocketAddrUnix,
    kind: SocketType,
    mode: FileMode,
) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, FLAGS, None)?;
    rustix::fs::fchmod(&socket, super::open::permissions(mode))?;
    let (dir, fd) = (dir.as_fd(), socket.as_fd());
    on_own_thread(|| {
        rustix::process::fchdir(dir)?;
        // The file's mode is the socket's own, less the umask.
        rustix::process::umask(rustix::fs::Mode::empty());
        rustix::net::bind(fd, address)
    })?;
    Ok(socket)
}

/// Makes a bound socket accept connections.
pub(crate) fn listen(socket: impl AsFd, backlog: i32) -> Result<(), Errno> {
    Ok(rustix::net::listen(socket, backlog)?)
}

/// Takes a waiting connection; `EAGAIN` if there is none.
pub(crate) fn accept(socket: impl AsFd) -> Result<OwnedFd, Errno> {
    Ok(rustix::net::accept_with(socket, FLAGS)?)
}
