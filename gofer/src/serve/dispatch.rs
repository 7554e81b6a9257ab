//! The one match from message number to handler, and the checks that precede every handler.

use gofer_protocol::transport::Header;
use gofer_protocol::{Ended, Errno, Mid, Transport};

use super::Connection;
use crate::handlers::{Context, Reply, attr, create, dir, io, open, remove, session, socket, walk, xattr};

/// Messages that Mount announces and that are served; all others are refused before their payload is looked at.
pub(crate) const SUPPORTED: [Mid; 32] = supported();

/// Serves one request up to its reply, which the caller sends.
///
/// # Errors
/// [`Ended`] if the peer went away in the middle of the request. A request that fails is no error here: `reply` says so.
pub(crate) fn dispatch(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    header: Header,
    closing: bool,
    reply: &mut Reply,
) -> Result<Mid, Ended> {
    let result = match admit(cx.connection, header, closing) {
        Ok(()) => handle(cx, transport, header, reply)?,
        Err(errno) => Err(errno),
    };
    Ok(match result {
        Ok(()) if reply.payload_len() <= cx.connection.max_message_size() => header.mid,
        Ok(()) => reply.fail(Errno::EIO),
        Err(errno) => {
            tracing::debug!(mid = ?header.mid, ?errno, "refused");
            reply.fail(errno)
        }
    })
}

fn admit(connection: &Connection, header: Header, closing: bool) -> Result<(), Errno> {
    if header.payload_len > connection.max_message_size() {
        return Err(Errno::EIO);
    }
    if closing {
        return Err(Errno::ECONNRESET);
    }
    if !is_served(header.mid) {
        return Err(Errno::EOPNOTSUPP);
    }
    if connection.policy().read_only && header.mid.changes_files() {
        return Err(Errno::EROFS);
    }
    Ok(())
}

fn handle(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    header: Header,
    reply: &mut Reply,
) -> Result<Result<(), Errno>, Ended> {
    // File data stays where it is: these two get the transport.
    match header.mid {
        Mid::PWRITE => return io::pwrite(cx, transport, header, reply),
        Mid::PREAD => return io::pread(cx, transport, header, reply),
        _ => {}
    }
    let payload = transport.payload(header.payload_len)?;
    let handler = match header.mid {
        Mid::MOUNT => session::mount,
        Mid::CHANNEL => session::channel,
        Mid::FSTAT => attr::fstat,
        Mid::SET_STAT => attr::set_stat,
        Mid::FSTAT_FS => attr::fstat_fs,
        Mid::WALK => walk::walk,
        Mid::WALK_STAT => walk::walk_stat,
        Mid::READ_LINK_AT => walk::read_link_at,
        Mid::OPEN_AT => open::open_at,
        Mid::OPEN_CREATE_AT => open::open_create_at,
        Mid::CLOSE => open::close,
        Mid::FSYNC => io::fsync,
        Mid::FALLOCATE => io::fallocate,
        Mid::MKDIR_AT => create::mkdir_at,
        Mid::MKNOD_AT => create::mknod_at,
        Mid::SYMLINK_AT => create::symlink_at,
        Mid::LINK_AT => create::link_at,
        Mid::UNLINK_AT => remove::unlink_at,
        Mid::RENAME_AT => remove::rename_at,
        Mid::RENAME_AT2 => remove::rename_at2,
        Mid::GETDENTS64 => dir::getdents64,
        Mid::FGET_XATTR => xattr::fget_xattr,
        Mid::FSET_XATTR => xattr::fset_xattr,
        Mid::FLIST_XATTR => xattr::flist_xattr,
        Mid::FREMOVE_XATTR => xattr::fremove_xattr,
        Mid::BIND_AT => socket::bind_at,
        Mid::LISTEN => socket::listen,
        Mid::ACCEPT => socket::accept,
        Mid::CONNECT => socket::connect,
        Mid::CONNECT_WITH_CREDS => socket::connect_with_creds,
        _ => return Ok(Err(Errno::EOPNOTSUPP)),
    };
    Ok(handler(cx, payload, reply))
}

/// All but Error, which is no request, and Flush, which no server needs. The numbers have no gaps.
const fn is_served(mid: Mid) -> bool {
    (mid.0 as usize) < Mid::ALL.len() && mid.0 != Mid::ERROR.0 && mid.0 != Mid::FLUSH.0
}

const fn supported() -> [Mid; 32] {
    let mut all = [Mid(0); 32];
    let (mut from, mut to) = (0, 0);
    while from < Mid::ALL.len() {
        let mid = Mid::ALL[from];
        from += 1;
        if is_served(mid) {
            all[to] = mid;
            to += 1;
        }
    }
    all
}
