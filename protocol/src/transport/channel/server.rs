//! The server's side of a channel.

use std::{
    fmt,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use super::{Datagrams, HEADER_SIZE, Header, handshake};
use crate::{
    sync::{AtomicBool, AtomicUsize, Ordering},
    transport::{
        fd_socket::{self, FdSender},
        flipcall::{Ended, Endpoint, Role},
        memory::{AllocateError, WindowAllocator},
        window::{OutOfBounds, Window},
    },
};

/// The server's side of a channel.
///
/// One thread at a time receives and replies: `receive` (or `wait_for` and `take`), then any use of the payload, then one
/// of the replies. Any thread may call [`Self::shut_down`]. The client's header may announce descriptors; they are never
/// received.
#[derive(Debug)]
pub struct ServerChannel {
    datagrams: Datagrams,
    fd_socket: FdSender,
    /// Whether the handshake is over. Written by the serving thread only.
    greeted: AtomicBool,
    /// The longest datagram since [`Self::release_idle`]. Written by the serving thread only.
    touched: AtomicUsize,
}

/// What the client needs to use a new channel.
#[derive(Debug)]
pub struct Offer {
    /// Where in the memory the window starts.
    pub data_offset: i64,
    /// How long the window is.
    pub data_length: u64,
    /// To be donated, in this order: the memory, the client's end of the descriptor socket.
    pub donated: [OwnedFd; 2],
}

/// A request that has arrived. Its payload is in the window until the reply is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message's number, whether known or not.
    pub mid: u16,
    /// Length of the payload. It fits the window, which is a little larger than the largest message: a caller has to
    /// refuse what is too long.
    pub payload_len: usize,
}

/// Why a reply was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// It does not fit the window. Nothing has happened; another reply may be sent.
    TooLong,
    /// The channel serves no more.
    Ended(Ended),
}

impl ServerChannel {
    /// Makes a channel whose client is still to be told of it.
    pub fn open(windows: &mut WindowAllocator) -> Result<(Self, Offer), AllocateError> {
        let allocation = windows.allocate()?;
        let (fd_socket, theirs) = fd_socket::pair()?;
        let channel = Self {
            datagrams: Datagrams::new(allocation.window, Role::Server),
            fd_socket,
            greeted: AtomicBool::new(false),
            touched: AtomicUsize::new(0),
        };
        let donated = [allocation.memory, theirs];
        Ok((channel, Offer { data_offset: allocation.data_offset, data_length: allocation.data_length, donated }))
    }

    /// Waits for the next request. Answers the handshake on the way.
    pub fn receive(&self) -> Result<Request, Ended> {
        loop {
            self.endpoint().wait()?;
            if let Some(request) = self.take()? {
                return Ok(request);
            }
        }
    }

    /// Sleeps at most once, for at most `limit`, and says whether there is something to [`Self::take`].
    pub fn wait_for(&self, limit: Duration) -> Result<bool, Ended> {
        self.endpoint().wait_for(limit)
    }

    /// Whether there is something to [`Self::take`], without sleeping.
    #[inline]
    pub fn ready(&self) -> Result<bool, Ended> {
        self.endpoint().ready()
    }

    /// Takes what has arrived, when it is this side's turn: a request, or `None` if it was the handshake, which is
    /// answered.
    pub fn take(&self) -> Result<Option<Request>, Ended> {
        // Relaxed: threads that serve this channel in turn pass it to each other by stronger means.
        if !self.greeted.load(Ordering::Relaxed) {
            self.datagrams.check_greeting(handshake::is_object_or_null)?;
            self.greeted.store(true, Ordering::Relaxed);
            self.datagrams.greet()?;
            return Ok(None);
        }
        let Header { mid, payload_len, .. } = self.datagrams.arrived()?;
        self.touch(payload_len);
        Ok(Some(Request { mid, payload_len }))
    }

    /// Appends `length` bytes of the payload, from `offset` on, to `target`. Read each byte once, and judge the copy.
    pub fn append_payload_to(&self, offset: usize, length: usize, target: &mut Vec<u8>) -> Result<(), OutOfBounds> {
        self.datagrams.append_payload_to(offset, length, target)
    }

    /// Copies the payload from `offset` on to `target`. Read each byte once, and judge the copy.
    pub fn read_payload(&self, offset: usize, target: &mut [u8]) -> Result<(), OutOfBounds> {
        self.datagrams.read_payload(offset, target)
    }

    /// Writes a part of the reply's payload, ahead of [`Self::reply_in_place`].
    pub fn write_payload(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        self.datagrams.write_payload(offset, bytes)
    }

    /// Reads up to `length` bytes at `position` of `file` to `offset` of the payload, with one system call.
    pub fn payload_from_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        self.datagrams.payload_from_file(file, offset, length, position)
    }

    /// Writes up to `length` bytes from `offset` of the payload to `position` of `file`, with one system call.
    pub fn payload_to_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        self.datagrams.payload_to_file(file, offset, length, position)
    }

    /// Sends a reply: the descriptors, then the payload, then the turn.
    ///
    /// Donation is best effort, the reply says how many descriptors were sent. They are closed here whatever happens.
    pub fn reply<I>(&self, mid: u16, payload: &[u8], donated: I) -> Result<(), ReplyError>
    where
        I: IntoIterator<Item = OwnedFd, IntoIter: ExactSizeIterator>,
    {
        self.datagrams.write_payload(0, payload).map_err(|OutOfBounds| ReplyError::TooLong)?;
        self.reply_in_place(mid, payload.len(), donated)
    }

    /// As [`Self::reply`], with a payload that is in the window already.
    pub fn reply_in_place<I>(&self, mid: u16, payload_len: usize, donated: I) -> Result<(), ReplyError>
    where
        I: IntoIterator<Item = OwnedFd, IntoIter: ExactSizeIterator>,
    {
        self.write_reply(mid, payload_len, donated)?;
        self.endpoint().hand_over().map_err(ReplyError::Ended)
    }

    /// As [`Self::reply_in_place`], but leaves the client asleep: the caller wakes one sleeper on [`Self::window`]'s
    /// state, together with what else it has to ask of the kernel.
    pub fn reply_without_waking<I>(&self, mid: u16, payload_len: usize, donated: I) -> Result<(), ReplyError>
    where
        I: IntoIterator<Item = OwnedFd, IntoIter: ExactSizeIterator>,
    {
        self.write_reply(mid, payload_len, donated)?;
        self.endpoint().pass().map_err(ReplyError::Ended)
    }

    /// Ends the channel for both sides, and waits until the serving thread no longer sleeps in it.
    pub fn shut_down(&self) {
        self.endpoint().shut_down();
    }

    /// Ends the channel for both sides, and says whether the serving thread no longer sleeps in it. See
    /// [`Endpoint::try_shut_down`]: a client that is hostile enough can only be answered by a signal to that thread.
    #[must_use]
    pub fn try_shut_down(&self) -> bool {
        self.endpoint().try_shut_down()
    }

    /// Gives the memory behind the first `keep` bytes of payload back to the system, if longer datagrams have been here.
    ///
    /// To be called between a request and its reply, when the request is no longer needed: at any other time the client
    /// may be using the window.
    pub fn release_idle(&self, keep: usize) -> rustix::io::Result<()> {
        let kept = keep.saturating_add(HEADER_SIZE);
        if self.touched() <= kept {
            return Ok(());
        }
        self.touched.store(kept, Ordering::Relaxed);
        // All the rest: the client may have touched more than it has sent.
        self.window().release(kept..self.window().capacity())
    }

    /// The longest datagram since memory was last released.
    pub fn touched(&self) -> usize {
        self.touched.load(Ordering::Relaxed)
    }

    /// The longest payload that fits.
    pub fn max_payload(&self) -> usize {
        self.datagrams.max_payload()
    }

    /// The shared memory. A waiter of another kind than [`Self::wait_for`] sleeps while its state is
    /// [`Role::peer_active`] of [`Role::Server`], then asks [`Self::ready`]; and it has to be told of a
    /// [`Self::shut_down`], whose wake-up a hostile client can take back.
    pub fn window(&self) -> &Window {
        self.datagrams.window()
    }

    fn endpoint(&self) -> &Endpoint<Window> {
        &self.datagrams.endpoint
    }

    /// Sends the descriptors and writes everything but the turn. The descriptors go first, so that they are queued when
    /// the client wakes.
    fn write_reply<I>(&self, mid: u16, payload_len: usize, donated: I) -> Result<(), ReplyError>
    where
        I: IntoIterator<Item = OwnedFd, IntoIter: ExactSizeIterator>,
    {
        if payload_len > self.max_payload() {
            return Err(ReplyError::TooLong);
        }
        let num_fds = self.fd_socket.send(donated);
        self.touch(payload_len);
        self.datagrams.seal(Header { mid, num_fds, payload_len }).map_err(|OutOfBounds| ReplyError::TooLong)
    }

    fn touch(&self, payload_len: usize) {
        let length = payload_len + HEADER_SIZE;
        if length > self.touched.load(Ordering::Relaxed) {
            self.touched.store(length, Ordering::Relaxed);
        }
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the reply does not fit the packet window"),
            Self::Ended(ended) => ended.fmt(f),
        }
    }
}

impl std::error::Error for ReplyError {}
