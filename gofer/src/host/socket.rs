//! Sockets of the host: connect by held descriptor, bind by one name in a held directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gofer_protocol::record::FileMode;
use gofer_protocol::{Errno, Gid, Uid};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::place::on_own_thread;
use super::{FileName, Place, identity};

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
        let take = if proc_fd.is_confined() { identity::take_confined } else { identity::take };
        take(uid, gid).map_err(|_| rustix::io::Errno::PERM)?;
        Ok(connect(&place, file, kind))
    })?
}

/// Longest path of a socket. The kernel takes one byte more, without the NUL behind it, but then no C program can name
/// the socket in full.
const LONGEST_PATH: usize = 107;

/// The address of `name` in `dir`: by the directory's descriptor, so that its own path may be of any length.
///
/// # Errors
/// `EINVAL` if the descriptor's number, a slash and the name come to more than 107 bytes.
pub(crate) fn address(place: &Place<'_>, dir: impl AsFd, name: FileName<'_>) -> Result<SocketAddrUnix, Errno> {
    let number = place.name_of(dir);
    let path = [number.as_bytes(), b"/", name.as_bytes()].concat();
    if path.len() > LONGEST_PATH {
        return Err(Errno::EINVAL);
    }
    Ok(SocketAddrUnix::new(Path::new(OsStr::from_bytes(&path)))?)
}

/// Binds a new socket to an [`address`]; its file has `mode` from the start.
///
/// # Errors
/// `EADDRINUSE` if the name exists.
pub(crate) fn bind(
    _: &Place<'_>,
    address: &SocketAddrUnix,
    kind: SocketType,
    mode: FileMode,
) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, FLAGS, None)?;
    // The file's mode is the socket's own, less the umask, which is 0 where a thread has a place.
    rustix::fs::fchmod(&socket, super::open::permissions(mode))?;
    rustix::net::bind(&socket, address)?;
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
