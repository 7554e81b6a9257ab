//! BindAt, Listen, Accept, Connect, ConnectWithCreds.

use std::sync::Arc;

use gofer_protocol::codec::{SizedString, decode};
use gofer_protocol::message::{
    AcceptReply, AcceptRequest, BindAtReply, BindAtRequest, ConnectRequest, ConnectWithCredsRequest, ListenRequest,
};
use gofer_protocol::record::{FileType, Inode};
use gofer_protocol::{Errno, FdId};

use super::{Context, Reply, or_undo, served_type};
use crate::fd::{BoundSocket, ControlFd, Fd};
use crate::host::remove::Removal;
use crate::host::{FileName, attr, open, socket};

/// Connects to a socket of the host and donates the connection.
///
/// `ENOTSOCK`, `EINVAL` for a deleted one, `EPERM` where policy forbids it, `ENXIO` for an unknown socket type.
pub(crate) fn connect(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: ConnectRequest = decode(payload)?;
    let file = connectable(cx, request.fd)?;
    let kind = socket::socket_type(request.sock_type)?;
    let _guarantee = file.node().read_alone();
    file.not_deleted()?;
    reply.fds.push(socket::connect(cx.place, &*file, kind)?);
    Ok(())
}

/// As Connect, under the ids that the client names.
pub(crate) fn connect_with_creds(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: ConnectWithCredsRequest = decode(payload)?;
    let file = connectable(cx, request.fd)?;
    let kind = socket::socket_type(request.sock_type)?;
    let _guarantee = file.node().read_alone();
    file.not_deleted()?;
    reply.fds.push(socket::connect_as(cx.place, &*file, kind, request.uid, request.gid)?);
    Ok(())
}

fn connectable(cx: &Context<'_>, fd: FdId) -> Result<Arc<ControlFd>, Errno> {
    let file = cx.connection.fds().control(fd)?;
    if file.file_type() != FileType::Socket {
        return Err(Errno::ENOTSOCK);
    }
    file.not_deleted()?;
    if cx.connection.policy().host_sockets.open() { Ok(file) } else { Err(Errno::EPERM) }
}

/// Binds a new socket and donates it, to be polled.
///
/// `EPERM` where policy forbids it, exactly: clients then make a socket of their own. `EINVAL` for a name beyond 105
/// bytes, or as many fewer as the directory's descriptor has digits beyond the first, `ENXIO` for an unknown socket type, `EADDRINUSE` if the name exists.
pub(crate) fn bind_at(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: BindAtRequest<'_> = decode(payload)?;
    let name = FileName::try_from(request.name)?;
    let fds = cx.connection.fds();
    let dir = fds.control(request.create.dir_fd)?;
    dir.directory()?;
    fds.room_for(2)?;

    let positions = cx.tree().shared();
    let _guarantee = dir.node().write(&positions);
    dir.not_deleted()?;
    if !cx.connection.policy().host_sockets.create() {
        return Err(Errno::EPERM);
    }
    let address = socket::address(cx.place, &*dir, name)?;
    let kind = socket::socket_type(request.sock_type)?;
    let bound = socket::bind(cx.place, &address, kind, request.create.mode)?;
    let made = || {
        let file = open::open_child(&*dir, name)?;
        attr::set_owner(&file, request.create.uid, request.create.gid)?;
        let stat = attr::stat(&file)?;
        let donated = open::duplicate(&bound)?;
        let node = cx.tree().child((dir.node(), name), &positions);
        // Not taken for granted: another process may have put something else there.
        let control = Arc::new(ControlFd::new(node, file, served_type(&stat)?));
        let socket = Arc::new(BoundSocket::new(Arc::clone(&control), bound));
        let (control_fd, bound_fd) = fds.insert_pair(Fd::Control(control), Fd::Bound(socket))?;
        Ok((BindAtReply { child: Inode { control_fd, stat }, bound_fd }, donated))
    };
    let (created, donated) = or_undo(made(), &dir, name, Removal::File)?;
    reply.fds.push(donated);
    reply.put(&created);
    Ok(())
}

/// Makes a bound socket accept connections; may be repeated with another backlog.
pub(crate) fn listen(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: ListenRequest = decode(payload)?;
    let bound = cx.connection.fds().bound(request.fd)?;
    let _guarantee = bound.control().node().read_alone();
    bound.control().not_deleted()?;
    socket::listen(&*bound, request.backlog)
}

/// Takes a waiting connection and donates it; `EAGAIN` if there is none. The peer's address stays here: it is a path of
/// the host.
pub(crate) fn accept(cx: &Context<'_>, payload: &[u8], reply: &mut Reply) -> Result<(), Errno> {
    let request: AcceptRequest = decode(payload)?;
    let bound = cx.connection.fds().bound(request.fd)?;
    let _guarantee = bound.control().node().read_alone();
    bound.control().not_deleted()?;
    reply.fds.push(socket::accept(&*bound)?);
    reply.put(&AcceptReply { peer_addr: SizedString::default() });
    Ok(())
}
