//! A client that asks, over the socket or over a channel, and keeps what it is given.

use std::fmt;
use std::os::unix::net::UnixStream;

use gofer_protocol::codec::decode;
use gofer_protocol::message::{
    ChannelReply, ChannelRequest, ErrorReply, FListXattrReply, FListXattrRequest, Getdents64Reply, MountReply,
    MountRequest, Request,
};
use gofer_protocol::transport::ClientSocket;
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::{Errno, FdId, Mid, Wire};

use crate::tree::{Control, Open, Place};

/// A client and the descriptors it holds, oldest first.
pub(crate) struct Client {
    socket: ClientSocket<UnixStream>,
    channel: Option<ClientChannel>,
    pub(crate) controls: Vec<Control>,
    pub(crate) opens: Vec<Open>,
}

impl Client {
    /// Mounts over `socket`.
    pub(crate) fn new(socket: UnixStream) -> Self {
        let socket = ClientSocket::new(socket);
        let mut client = Self { socket, channel: None, controls: Vec::new(), opens: Vec::new() };
        let payload = client.ask(&MountRequest).expect("mount");
        let root = decode::<MountReply<'_>>(&payload).expect("a whole reply").root;
        client.controls.push(Control::root(root.control_fd));
        client
    }

    /// From now on over a channel.
    pub(crate) fn over_a_channel(mut self) -> Self {
        let mut fds = Vec::new();
        let header =
            self.socket.exchange(Mid::CHANNEL, &[], &[], ChannelRequest::DONATIONS, &mut fds).expect("a reply");
        let mut payload = vec![0; header.payload_len];
        self.socket.take_payload(&mut payload).expect("a payload");
        let ChannelReply { data_offset, data_length } = decode(&payload).expect("a channel");
        let [memory, fd_socket] = fds.try_into().expect("two descriptors");
        self.channel = Some(ClientChannel::connect(memory, data_offset, data_length, fd_socket).expect("a handshake"));
        self
    }

    /// The payload of the answer, or the errno.
    pub(crate) fn ask<'q, Q: Request + Wire<'q>>(&mut self, request: &Q) -> Result<Vec<u8>, Errno> {
        let mut payload = Vec::new();
        request.put(&mut payload);
        let (mid, payload) = match &self.channel {
            Some(channel) => over_channel(channel, Q::MID, &payload),
            None => self.over_socket(Q::MID, &payload),
        };
        if mid == Mid::ERROR {
            let ErrorReply { errno } = decode(&payload).expect("an errno");
            return Err(Errno::from_wire(errno));
        }
        assert_eq!(mid, Q::MID);
        Ok(payload)
    }

    /// As [`Client::ask`], for replies of fixed layout.
    pub(crate) fn get<'q, Q: Request + Wire<'q>, T: for<'a> Wire<'a>>(&mut self, request: &Q) -> Result<T, Errno> {
        self.ask(request).map(|payload| decode(&payload).expect("a whole reply"))
    }

    /// As [`Client::ask`], for replies without content.
    pub(crate) fn tell<'q, Q: Request + Wire<'q>>(&mut self, request: &Q) -> Result<(), Errno> {
        self.ask(request).map(|payload| assert!(payload.is_empty()))
    }

    /// Asks, of every control descriptor, whether the server takes it for removed.
    pub(crate) fn compare_places(&mut self) {
        for Control { fd, place, .. } in self.controls.clone() {
            let answer = self.ask(&FListXattrRequest { fd, size: 0 });
            assert_eq!(answer.err(), (place == Place::Deleted).then_some(Errno::EINVAL), "{fd:?} at {place:?}");
        }
    }

    fn over_socket(&mut self, mid: Mid, payload: &[u8]) -> (Mid, Vec<u8>) {
        let header = self.socket.exchange(mid, payload, &[], 0, &mut Vec::new()).expect("a reply");
        let mut payload = vec![0; header.payload_len];
        self.socket.take_payload(&mut payload).expect("a payload");
        (header.mid, payload)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("controls", &self.controls).field("opens", &self.opens).finish_non_exhaustive()
    }
}

fn over_channel(channel: &ClientChannel, mid: Mid, payload: &[u8]) -> (Mid, Vec<u8>) {
    let reply = channel.request(mid.0, &[payload]).expect("a reply");
    channel.receive_fds(&reply, &mut [None, None]);
    let mut payload = Vec::new();
    channel.append_payload_to(0, reply.payload_len, &mut payload).expect("a payload");
    (Mid(reply.mid), payload)
}

/// One entry of a listing: name, type, inode.
pub(crate) type Entry = (String, u8, u64);

/// Entries of one Getdents64 reply.
pub(crate) fn entries(payload: &[u8]) -> Vec<Entry> {
    let Getdents64Reply { dirents } = decode(payload).expect("entries");
    dirents.iter().map(|entry| (text(entry.name.as_bytes()), entry.entry_type, entry.ino)).collect()
}

/// Names of one FListXattr reply.
pub(crate) fn names(payload: &[u8]) -> Vec<String> {
    let FListXattrReply { names } = decode(payload).expect("names");
    names.iter().map(text).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Numbers are never 0.
pub(crate) fn checked(fd: FdId) -> FdId {
    assert_ne!(fd, FdId::NONE);
    fd
}
