//! The socket beside a channel on which the server donates descriptors: one packet each, without any data.
//!
//! Only the server sends. It never waits for a client that does not read, and never receives, so no descriptor can be
//! smuggled into it.

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
};

/// Makes the socket of one channel. Both ends are non-blocking.
pub fn pair() -> rustix::io::Result<(FdSender, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((FdSender(ours), theirs))
}

/// The server's end.
#[derive(Debug)]
pub struct FdSender(OwnedFd);

impl FdSender {
    /// Sends descriptors and closes our copies. Returns how many were sent.
    ///
    /// Order carries meaning, so the first failure ends it. More than a message can announce are not sent at all.
    pub fn send<I>(&self, donated: I) -> u8
    where
        I: IntoIterator<Item = OwnedFd, IntoIter: ExactSizeIterator>,
    {
        let donated = donated.into_iter();
        if u8::try_from(donated.len()).is_err() {
            return 0;
        }
        let mut sent = 0_u8;
        for fd in donated {
            if self.send_one(&fd).is_err() {
                break;
            }
            sent = sent.saturating_add(1);
        }
        sent
    }

    fn send_one(&self, fd: &OwnedFd) -> rustix::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [fd.as_fd()];
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(Errno::NOBUFS);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        retry(|| sendmsg(&self.0, &[] as &[IoSlice<'_>], &mut control, flags)).map(|_| ())
    }
}

/// The client's end.
#[derive(Debug)]
pub struct FdReceiver(OwnedFd);

impl FdReceiver {
    /// Takes over the socket that came with the channel.
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Receives the `count` descriptors that a message announces. They are queued already, so this does not wait.
    ///
    /// Those that do not arrive, or that arrive where `wanted` has no place for them, do not matter to the request:
    /// the first are left `None`, the others are closed.
    pub fn receive(&self, count: u8, wanted: &mut [Option<OwnedFd>]) {
        wanted.fill_with(|| None);
        let mut places = wanted.iter_mut();
        for _ in 0..count {
            let Ok(fd) = self.receive_one() else { break };
            if let Some(place) = places.next() {
                *place = fd;
            }
        }
    }

    /// Receives one packet, and the first of its descriptors.
    fn receive_one(&self) -> rustix::io::Result<Option<OwnedFd>> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
        retry(|| recvmsg(&self.0, &mut [], &mut control, flags))?;
        let mut first = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                // Every descriptor is taken out: those not kept are closed.
                for fd in fds {
                    first.get_or_insert(fd);
                }
            }
        }
        Ok(first)
    }
}

/// Repeats `call` while it is interrupted.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
