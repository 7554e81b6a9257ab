//! A client that sends what it is told, honest or not, over the socket, and sees every byte and descriptor of an answer.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gofer_protocol::codec::{SizedString, StringArrayBuf, decode};
use gofer_protocol::message::{
    ChannelReply, ChannelRequest, CloseRequest, ErrorReply, FStatRequest, MountRequest, OpenAtReply, OpenAtRequest,
    OpenCreateAtReply, OpenCreateAtRequest, WalkReply, WalkRequest, WalkStatus,
};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Inode, Statx};
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::transport::window::Window;
use gofer_protocol::{Errno, FdId, Gid, Mid, Request, Uid, Wire};
use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// A client on a socket, without channels.
#[derive(Debug)]
pub struct Raw {
    /// For what the methods do not do.
    pub stream: UnixStream,
}

/// A reply as it came.
#[derive(Debug)]
pub struct Answer {
    /// The request's number, or 0 for an error.
    pub mid: Mid,
    /// All bytes behind the header.
    pub payload: Vec<u8>,
    /// All descriptors that came along.
    pub fds: Vec<OwnedFd>,
}

impl Answer {
    /// The payload as a message.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn decode<'a, T: Wire<'a>>(&'a self) -> T {
        decode(&self.payload).expect("a reply that is long enough")
    }
}

impl Raw {
    /// Talks on `stream`. An answer that does not come within 20 seconds is a failure.
    ///
    /// # Panics
    /// If the socket takes no time-out.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        Self { stream }
    }

    /// Sends a frame as it is.
    ///
    /// # Panics
    /// If the server is gone.
    pub fn send(&self, mid: u16, payload: &[u8]) {
        let mut frame = Vec::with_capacity(8 + payload.len());
        frame.extend_from_slice(&u32::try_from(payload.len()).expect("a frame below 4 GiB").to_le_bytes());
        frame.extend_from_slice(&mid.to_le_bytes());
        frame.extend_from_slice(&[0; 2]);
        frame.extend_from_slice(payload);
        (&self.stream).write_all(&frame).expect("the server takes a request");
    }

    /// Receives a frame; none if the server closed the connection.
    ///
    /// # Panics
    /// If it takes too long or is cut off.
    #[must_use]
    pub fn receive(&self) -> Option<Answer> {
        let mut header = [0; 8];
        let mut fds = Vec::new();
        let mut filled = 0;
        while filled < header.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut header[filled..])];
            // A socket with a time-out is not resumed after a signal, nor after a tracer's attach (signal(7)).
            let got = retry_on_intr(|| recvmsg(&self.stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC));
            let got = got.expect("an answer in time");
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    fds.extend(received);
                }
            }
            if got.bytes == 0 {
                return None;
            }
            filled += got.bytes;
        }
        let [l0, l1, l2, l3, m0, m1, ..] = header;
        let mut payload = vec![0; usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).expect("a length")];
        (&self.stream).read_exact(&mut payload).expect("a whole answer");
        Some(Answer { mid: Mid(u16::from_le_bytes([m0, m1])), payload, fds })
    }

    /// Sends a frame and receives its answer; an error if that is one.
    ///
    /// # Errors
    /// The errno that the server sent.
    ///
    /// # Panics
    /// If there is no answer, or one to something else.
    pub fn exchange(&self, mid: u16, payload: &[u8]) -> Result<Answer, Errno> {
        self.send(mid, payload);
        let answer = self.receive().expect("an answer, not the end of the connection");
        if answer.mid == Mid::ERROR {
            assert!(answer.fds.is_empty(), "an error donates nothing");
            let ErrorReply { errno } = answer.decode();
            return Err(Errno::from_wire(errno));
        }
        assert_eq!(answer.mid, Mid(mid), "the answer to another request");
        Ok(answer)
    }

    /// Asks, typed.
    ///
    /// # Errors
    /// The errno that the server sent.
    pub fn ask<'q, Q: Request + Wire<'q>>(&self, request: &Q) -> Result<Answer, Errno> {
        let mut payload = Vec::new();
        request.put(&mut payload);
        self.exchange(Q::MID.0, &payload)
    }

    /// Mount; the root's control descriptor.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn mount(&self) -> FdId {
        let answer = self.ask(&MountRequest).expect("mount");
        answer.decode::<gofer_protocol::message::MountReply<'_>>().root.control_fd
    }

    /// Walk, by components.
    ///
    /// # Errors
    /// The errno that the server sent.
    pub fn walk(&self, dir_fd: FdId, path: &[&[u8]]) -> Result<(WalkStatus, Vec<Inode>), Errno> {
        let path = StringArrayBuf::new(path.iter().copied()).expect("a path that the wire takes");
        let answer = self.ask(&WalkRequest { dir_fd, path: path.as_array() })?;
        let WalkReply { status, inodes } = answer.decode();
        Ok((status, inodes.iter().collect()))
    }

    /// Walks one or more components that exist; the last one's control descriptor.
    ///
    /// # Panics
    /// If one does not.
    #[must_use]
    pub fn walk_to(&self, dir_fd: FdId, path: &str) -> FdId {
        let components: Vec<_> = path.split('/').map(str::as_bytes).collect();
        let (_, inodes) = self.walk(dir_fd, &components).unwrap_or_else(|errno| panic!("walk to {path}: {errno:?}"));
        assert_eq!(inodes.len(), components.len(), "walk to {path} ended early");
        inodes.last().expect("a component").control_fd
    }

    /// `FStat`.
    ///
    /// # Errors
    /// The errno that the server sent.
    pub fn fstat(&self, fd: FdId) -> Result<Statx, Errno> {
        self.ask(&FStatRequest { fd }).map(|answer| answer.decode())
    }

    /// `OpenAt`: the open descriptor and what was donated.
    ///
    /// # Errors
    /// The errno that the server sent.
    pub fn open(&self, fd: FdId, flags: u32) -> Result<(FdId, Vec<OwnedFd>), Errno> {
        let answer = self.ask(&OpenAtRequest { fd, flags })?;
        let OpenAtReply { open_fd } = answer.decode();
        Ok((open_fd, answer.fds))
    }

    /// `OpenCreateAt` with mode 0644, read and write: control and open descriptor, and what was donated.
    ///
    /// # Errors
    /// The errno that the server sent.
    pub fn create(&self, dir_fd: FdId, name: &str) -> Result<(Inode, FdId, Vec<OwnedFd>), Errno> {
        let create = CreateCommon::new(dir_fd, Uid::NONE, Gid::NONE, FileMode::new(FileType::Regular, 0o644));
        let answer = self.ask(&OpenCreateAtRequest { create, flags: 2, name: string(name) })?;
        let OpenCreateAtReply { child, open_fd } = answer.decode();
        Ok((child, open_fd, answer.fds))
    }

    /// Channel.
    ///
    /// # Errors
    /// The errno that the server sent.
    ///
    /// # Panics
    /// If the two descriptors do not come along.
    pub fn channel(&self) -> Result<ChannelOffer, Errno> {
        let answer = self.ask(&ChannelRequest)?;
        let place = answer.decode();
        let [memory, fd_socket] = answer.fds.try_into().expect("two descriptors");
        Ok(ChannelOffer { place, memory, fd_socket })
    }

    /// Close.
    ///
    /// # Panics
    /// If it fails.
    pub fn close(&self, fds: &[FdId]) {
        let fds = gofer_protocol::codec::Array::new(fds).expect("not too many");
        self.ask(&CloseRequest { fds }).expect("close never fails");
    }
}

/// What a Channel request yields: where the window lies, its memory, and the client's end of the descriptor socket.
#[derive(Debug)]
pub struct ChannelOffer {
    /// Offset and length of the window.
    pub place: ChannelReply,
    /// The memory that holds it.
    pub memory: OwnedFd,
    /// Where donated descriptors arrive.
    pub fd_socket: OwnedFd,
}

impl ChannelOffer {
    /// An honest channel on it.
    ///
    /// # Panics
    /// If the server does not shake hands.
    #[must_use]
    pub fn connect(self) -> ClientChannel {
        let Self { place, memory, fd_socket } = self;
        ClientChannel::connect(memory, place.data_offset, place.data_length, fd_socket).expect("a handshake")
    }

    /// The bare window, to do with as one likes.
    ///
    /// # Panics
    /// If it cannot be mapped.
    #[must_use]
    pub fn window(&self) -> Window {
        Window::map(&self.memory, self.place.data_offset, self.place.data_length).expect("a mapping")
    }
}

/// A string of the wire.
///
/// # Panics
/// If it is too long for one.
#[must_use]
pub fn string(text: &str) -> SizedString<'_> {
    SizedString::new(text.as_bytes()).expect("at most 65,535 bytes")
}
