//! Single host calls on a stream socket, blocking or not, and what their failures mean.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, sendmsg,
};

use super::MAX_DONATIONS;
use crate::transport::Ended;

/// Receives what is there, at least one byte, without room for descriptors: the kernel drops those that come along.
pub(super) fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Ended> {
    let len = wait_and_retry(socket, PollFlags::IN, || recv(socket, &mut *into, RecvFlags::empty()))?.0;
    not_the_end(len)
}

/// Receives what is there, at least one byte, and adds the descriptors that came along to `fds`.
pub(super) fn receive_with_fds(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> Result<usize, Ended> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DONATIONS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = wait_and_retry(socket, PollFlags::IN, || {
        recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    not_the_end(received.bytes)
}

/// Sends all of `parts`, with `fds` attached to the first byte.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    mut parts: &mut [IoSlice<'_>],
    mut fds: &[BorrowedFd<'_>],
) -> Result<(), Ended> {
    // Skips what is empty: a call with nothing to send would look like progress.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match send_some(socket, parts, fds) {
            Ok(sent) => IoSlice::advance_slices(&mut parts, sent),
            // A peer that leaves too many descriptors unread gets the message without, which it has to bear.
            Err(Ended::Host(crate::Errno::ETOOMANYREFS)) if !fds.is_empty() => {}
            Err(ended) => return Err(ended),
        }
        fds = &[];
    }
    Ok(())
}

fn send_some(socket: BorrowedFd<'_>, parts: &[IoSlice<'_>], fds: &[BorrowedFd<'_>]) -> Result<usize, Ended> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DONATIONS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    wait_and_retry(socket, PollFlags::OUT, || sendmsg(socket, parts, &mut control, SendFlags::NOSIGNAL))
}

/// Whether something can be received, or the peer is gone, before `timeout` has passed.
pub(super) fn readable_within(socket: BorrowedFd<'_>, timeout: &Timespec) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    // A failure to wait is not worth a report: the call that follows will meet its cause.
    !matches!(poll(&mut fds, Some(timeout)), Ok(0))
}

/// Makes `call` until it neither was interrupted nor would have had to wait, which only non-blocking sockets report.
fn wait_and_retry<T>(
    socket: BorrowedFd<'_>,
    ready: PollFlags,
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, Ended> {
    loop {
        match call() {
            Ok(done) => return Ok(done),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::from_borrowed_fd(socket, ready)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Ended::Host(errno.into())),
            },
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(Ended::Closed),
            Err(errno) => return Err(Ended::Host(errno.into())),
        }
    }
}

fn not_the_end(len: usize) -> Result<usize, Ended> {
    if len == 0 { Err(Ended::Closed) } else { Ok(len) }
}
