//! A server that follows a script: what the client library has to bear.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gofer_protocol::client::{Client, Options};
use gofer_protocol::codec::{Array, decode};
use gofer_protocol::message::{ChannelReply, CloseRequest, MountReply};
use gofer_protocol::record::{FileMode, FileType, Inode, Statx};
use gofer_protocol::transport::SocketHeader;
use gofer_protocol::transport::channel::{Offer, ServerChannel};
use gofer_protocol::transport::memory::WindowAllocator;
use gofer_protocol::{Errno, FdId, MAX_MESSAGE_SIZE, Mid, Wire};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// The server's end of a connection.
pub(crate) struct Peer {
    pub(crate) socket: UnixStream,
    windows: WindowAllocator,
}

/// One communicator of a connection, which a script serves. It answers Close by itself: when a client gets to closing
/// what was dropped is a matter of time.
pub(crate) struct Line {
    channel: Option<ServerChannel>,
    /// With a channel, it only has to stay open.
    socket: UnixStream,
    /// Descriptors that the client has closed.
    pub(crate) closed: Vec<FdId>,
}

pub(crate) const OVER_SOCKET: Options = Options { channels: 0 };
pub(crate) const OVER_CHANNEL: Options = Options { channels: 1 };

/// Runs a script as the server of a client. The script starts before Mount.
pub(crate) fn with_script(
    options: &Options,
    script: impl FnOnce(Peer) + Send + 'static,
) -> (Result<Client, gofer_protocol::client::Error>, JoinHandle<()>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || script(Peer::new(theirs)));
    (Client::over(ours, options), server)
}

/// Has `script` serve a client's calls, once over the socket and once over a channel, and `check` make them.
pub(crate) fn over_both(script: fn(&mut Line), check: fn(&Client)) {
    for options in [OVER_SOCKET, OVER_CHANNEL] {
        let over = options.clone();
        let (client, server) = with_script(&options, move |mut peer| {
            peer.mount();
            script(&mut peer.line(&over));
        });
        let client = client.unwrap();
        assert_eq!(client.channels(), options.channels);
        check(&client);
        drop(client);
        server.join().unwrap();
    }
}

impl Peer {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket, windows: WindowAllocator::new(MAX_MESSAGE_SIZE) }
    }

    /// Answers Mount as the reference does.
    pub(crate) fn mount(&mut self) {
        self.mount_with(MAX_MESSAGE_SIZE, Mid::ALL);
    }

    pub(crate) fn mount_with(&mut self, max_message_size: u32, supported: &[Mid]) {
        let supported = Array::new(supported).unwrap();
        let root = inode(1, FileType::Directory);
        self.answer(Mid::MOUNT, &MountReply { root, max_message_size, supported });
    }

    /// Receives one request over the socket, which has to be a `mid`, and replies to it.
    pub(crate) fn answer<'a>(&mut self, mid: Mid, reply: &impl Wire<'a>) {
        assert_eq!(receive(&mut self.socket).unwrap().0, mid);
        send(&self.socket, mid, &encode(reply), &[]);
    }

    /// Answers the request for the first channel, and shakes hands on it.
    pub(crate) fn channel(&mut self) -> ServerChannel {
        let (channel, offer) = ServerChannel::open(&mut self.windows).unwrap();
        assert_eq!(receive(&mut self.socket).unwrap().0, Mid::CHANNEL);
        let fds = offer.donated.each_ref().map(AsFd::as_fd);
        send(&self.socket, Mid::CHANNEL, &channel_reply(&offer), &fds);
        shake_hands(&channel);
        channel
    }

    /// Answers the request for one more channel, which comes over the latest.
    pub(crate) fn next_channel(&mut self, latest: &ServerChannel) -> ServerChannel {
        let (channel, offer) = ServerChannel::open(&mut self.windows).unwrap();
        assert_eq!(Mid(latest.receive().unwrap().mid), Mid::CHANNEL);
        latest.reply(Mid::CHANNEL.0, &channel_reply(&offer), offer.donated).unwrap();
        shake_hands(&channel);
        channel
    }

    /// The communicator that a script serves: the socket, or the first channel.
    pub(crate) fn line(mut self, over: &Options) -> Line {
        if *over == OVER_SOCKET {
            return Line::socket(self.socket);
        }
        let channel = self.channel();
        Line::channel(channel, self.socket)
    }
}

impl Line {
    pub(crate) fn socket(socket: UnixStream) -> Self {
        Self { channel: None, socket, closed: Vec::new() }
    }

    pub(crate) fn channel(channel: ServerChannel, socket: UnixStream) -> Self {
        Self { channel: Some(channel), socket, closed: Vec::new() }
    }

    /// The next request; none when the client is gone.
    pub(crate) fn receive(&mut self) -> Option<(Mid, Vec<u8>)> {
        loop {
            let (mid, payload) = self.receive_any()?;
            if mid != Mid::CLOSE {
                return Some((mid, payload));
            }
            self.closed.extend(decode::<CloseRequest<'_>>(&payload).unwrap().fds.iter());
            self.send(mid, &[], &[]);
        }
    }

    fn receive_any(&mut self) -> Option<(Mid, Vec<u8>)> {
        let Some(channel) = &self.channel else { return receive(&mut self.socket) };
        let request = channel.receive().ok()?;
        let mut payload = Vec::new();
        channel.append_payload_to(0, request.payload_len, &mut payload).unwrap();
        Some((Mid(request.mid), payload))
    }

    /// Sends a reply of any kind.
    pub(crate) fn send(&mut self, mid: Mid, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        let Some(channel) = &self.channel else { return send(&self.socket, mid, payload, fds) };
        let fds: Vec<OwnedFd> = fds.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
        channel.reply(mid.0, payload, fds).unwrap();
    }

    /// Receives one request, which has to be a `mid`, and replies to it.
    pub(crate) fn answer<'a>(&mut self, mid: Mid, reply: &impl Wire<'a>) -> Vec<u8> {
        let (asked, payload) = self.receive().unwrap();
        assert_eq!(asked, mid);
        self.send(mid, &encode(reply), &[]);
        payload
    }

    /// Receives one request, whatever it is, and replies with raw bytes.
    pub(crate) fn answer_raw(&mut self, mid: Mid, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        self.receive().unwrap();
        self.send(mid, payload, fds);
    }

    pub(crate) fn fail(&mut self, errno: Errno) {
        self.answer_raw(Mid::ERROR, &errno.raw().to_le_bytes(), &[]);
    }

    /// Waits until the client is gone, and asserts that it has nothing more to ask.
    pub(crate) fn end(&mut self) {
        assert_eq!(self.receive(), None);
    }
}

fn channel_reply(offer: &Offer) -> Vec<u8> {
    encode(&ChannelReply { data_offset: offer.data_offset, data_length: offer.data_length })
}

fn shake_hands(channel: &ServerChannel) {
    while !channel.wait_for(Duration::from_secs(1)).unwrap() {}
    assert_eq!(channel.take(), Ok(None));
}

pub(crate) fn encode<'a>(message: &impl Wire<'a>) -> Vec<u8> {
    let mut encoded = Vec::new();
    message.put(&mut encoded);
    encoded
}

pub(crate) fn inode(control_fd: u64, file_type: FileType) -> Inode {
    let mut stat = Statx::default();
    stat.mode = FileMode::new(file_type, 0o644);
    Inode { control_fd: FdId(control_fd), stat }
}

pub(crate) fn receive(socket: &mut UnixStream) -> Option<(Mid, Vec<u8>)> {
    let mut header = [0; SocketHeader::LEN];
    socket.read_exact(&mut header).ok()?;
    let header: SocketHeader = decode(&header).unwrap();
    let mut payload = vec![0; header.payload_len()];
    socket.read_exact(&mut payload).ok()?;
    Some((header.mid, payload))
}

pub(crate) fn send(mut socket: &UnixStream, mid: Mid, payload: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut frame = encode(&SocketHeader::new(u32::try_from(payload.len()).unwrap(), mid));
    frame.extend(payload);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&frame)], &mut control, SendFlags::NOSIGNAL).unwrap();
    socket.write_all(&frame[sent..]).unwrap();
}
