//! BindAt, Listen, Accept, Connect, ConnectWithCreds.

use std::os::fd::OwnedFd;

use super::name;
use crate::client::{Client, Error};
use crate::codec::Padding;
use crate::message::{AcceptRequest, BindAtRequest, ConnectRequest, ConnectWithCredsRequest, ListenRequest};
use crate::record::{CreateCommon, Inode};
use crate::{FdId, Gid, Mid, Uid};

/// A new socket of the host.
#[derive(Debug)]
pub struct Bound {
    /// The socket's file: its control descriptor, which the caller closes, and its attributes.
    pub child: Inode,
    /// The socket, which the caller closes.
    pub bound_fd: FdId,
    /// The socket on the host, to be polled for connections.
    pub donated: OwnedFd,
}

/// A connection of a bound socket.
#[derive(Debug)]
pub struct Accepted {
    /// The peer's address; servers do not tell, and it is empty.
    pub peer_addr: Vec<u8>,
    /// The connected socket.
    pub donated: OwnedFd,
}

impl Client {
    /// Creates a socket of the host, bound to a new name. `sock_type` is `SOCK_STREAM`, `SOCK_DGRAM` or
    /// `SOCK_SEQPACKET`.
    ///
    /// # Errors
    /// `EPERM` by policy; `ENXIO` for another type; `EADDRINUSE` if there is something of that name; `EBADF` if the
    /// socket's descriptor did not arrive; `EROFS`.
    pub fn bind_at(&self, create: CreateCommon, sock_type: u32, name: &[u8]) -> Result<Bound, Error> {
        let name = self::name(Mid::BIND_AT, name)?;
        let mut reply = self.call(&BindAtRequest { create, sock_type, name })?;
        let donated = reply.donated.required(Mid::BIND_AT);
        let bound = reply.decode()?;
        let (child, bound_fd) = (bound.child, bound.bound_fd);
        match donated {
            Ok(donated) => Ok(Bound { child, bound_fd, donated }),
            Err(error) => {
                self.close_later(child.control_fd);
                self.close_later(bound_fd);
                Err(error)
            }
        }
    }

    /// Makes a bound socket accept connections.
    ///
    /// # Errors
    /// `EINVAL` for anything but a bound socket.
    pub fn listen(&self, fd: FdId, backlog: i32) -> Result<(), Error> {
        self.call(&ListenRequest { fd, backlog })?.decode().map(drop)
    }

    /// Takes a waiting connection.
    ///
    /// # Errors
    /// `EAGAIN` if there is none; `EINVAL` if the socket does not listen; `EBADF` if the connection's descriptor did
    /// not arrive.
    pub fn accept(&self, fd: FdId) -> Result<Accepted, Error> {
        let mut reply = self.call(&AcceptRequest { fd })?;
        let donated = reply.donated.required(Mid::ACCEPT)?;
        Ok(Accepted { peer_addr: reply.decode()?.peer_addr.as_bytes().to_vec(), donated })
    }

    /// The Connect message: connects to a socket of the host. `sock_type` is `SOCK_STREAM`, `SOCK_DGRAM` or
    /// `SOCK_SEQPACKET`.
    ///
    /// # Errors
    /// `ENOTSOCK`; `EPERM` by policy; `ENXIO` for another type; `EBADF` if the connection's descriptor did not arrive;
    /// those of connect(2).
    pub fn connect_to(&self, fd: FdId, sock_type: u32) -> Result<OwnedFd, Error> {
        let mut reply = self.call(&ConnectRequest { fd, sock_type })?;
        reply.decode()?;
        reply.donated.required(Mid::CONNECT)
    }

    /// As [`Client::connect_to`], with the effective ids that the peer shall see.
    ///
    /// # Errors
    /// As [`Client::connect_to`]; `EPERM` if the server cannot take these ids.
    pub fn connect_with_creds(&self, fd: FdId, sock_type: u32, uid: Uid, gid: Gid) -> Result<OwnedFd, Error> {
        let request = ConnectWithCredsRequest { fd, sock_type, padding: Padding, uid, gid };
        let mut reply = self.call(&request)?;
        reply.decode()?;
        reply.donated.required(Mid::CONNECT_WITH_CREDS)
    }
}
