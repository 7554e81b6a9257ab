//! A descriptor that the parent process left for us, taken over by its number.
#![allow(unsafe_code, reason = "a number on the command line is all there is to own such a descriptor by")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::net::SocketType;

use super::Failure;

/// Takes over descriptor `number`, which must be a connected stream socket.
pub(super) fn connected_socket(number: RawFd) -> Result<OwnedFd, Failure> {
    let refuse = |cause: &dyn std::fmt::Display| Failure::new(format_args!("serve on --fd {number}"), cause);
    if number <= 2 {
        return Err(refuse(&"standard input, output and error are not for clients"));
    }
    // SAFETY: `borrow_raw` asks that the descriptor is open while it is borrowed. The borrow lasts for the next calls
    // only, and nothing of this process closes descriptors yet. If it is not open, the calls say so with EBADF: they
    // pass the number to the kernel and touch nothing else.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    match rustix::net::sockopt::socket_type(borrowed) {
        Ok(SocketType::STREAM) => {}
        Ok(_) => return Err(refuse(&"it is not a stream socket")),
        Err(rustix::io::Errno::BADF) => return Err(refuse(&"it is not open")),
        Err(_) => return Err(refuse(&"it is not a socket")),
    }
    if rustix::net::getpeername(borrowed).is_err() {
        return Err(refuse(&"the socket is not connected"));
    }
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC).map_err(|errno| refuse(&errno))?;
    // SAFETY: it is open, as the calls above have shown, and owned by no one: the parent left it, and this process has
    // opened only what it still holds, under other numbers than one that was taken.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
