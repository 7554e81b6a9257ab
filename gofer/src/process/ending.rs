//! The end of the process under E26: it outlives its sandbox, so that it drops the last reference to the ring that
//! `--pin-ring-fd` names.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// How long the process waits for the sandbox's descriptor, and then for the sandbox's end: as long as the original.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Waits for the end of the sandbox whose pidfd arrives on `socket`, but not for ever.
pub(super) fn await_sandbox(socket: &OwnedFd) {
    if !readable(socket) {
        return;
    }
    let Some(sandbox) = receive(socket) else { return };
    if !readable(&sandbox) {
        tracing::warn!("the sandbox has not ended yet");
    }
}

fn readable(fd: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&fd, PollFlags::IN)];
    loop {
        match poll(&mut polled, Some(&PATIENCE)) {
            Err(Errno::INTR) => {}
            Ok(ready) => return ready > 0,
            Err(_) => return false,
        }
    }
}

/// The pidfd, read before a hang-up counts: whoever sent it may be gone.
fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC | RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags).ok()?;
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket pair")
    }

    #[test]
    fn a_peer_that_closes_without_a_word_ends_the_wait() {
        let (ours, theirs) = pair();
        drop(theirs);
        await_sandbox(&ours);
        assert!(receive(&ours).is_none());
    }

    #[test]
    fn a_descriptor_that_was_sent_before_the_peer_left_is_received() {
        let (ours, theirs) = pair();
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let sent = [read.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&sent)));
        let byte = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(&theirs, &byte, &mut ancillary, SendFlags::empty()).expect("sent");
        drop(theirs);
        let received = receive(&ours).expect("a descriptor");
        drop(write);
        assert!(readable(&received), "the pipe's writer is gone");
    }
}
