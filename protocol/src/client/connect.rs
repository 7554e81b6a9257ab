//! From a socket to a working connection: Mount, then channels.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{self, JoinHandle};

use tracing::debug;

use super::call::{self, Reply};
use super::closing::Closing;
use super::link::Link;
use super::{Client, Error, ErrorKind, watcher};
use crate::message::{ChannelRequest, MountRequest};
use crate::record::Inode;
use crate::sync::{Arc, AtomicBool, Mutex, lock};
use crate::transport::Ended;
use crate::transport::channel::ClientChannel;
use crate::{Errno, INITIAL_MESSAGE_SIZE, MAX_CHANNELS, Mid};

/// How to use a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Channels to ask for, at most [`MAX_CHANNELS`]. 0: everything goes over the socket, and there is no watching
    /// thread. Servers give no more than they like; a client gets along with none.
    pub channels: usize,
}

impl Default for Options {
    /// As many channels as processors, but 2 at least.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self { channels: processors.clamp(2, MAX_CHANNELS) }
    }
}

impl Client {
    /// Connects to a server that listens on the Unix socket at `path`.
    ///
    /// # Errors
    /// Those of connect(2), and of [`Client::over`].
    pub fn connect(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        let socket = UnixStream::connect(path).map_err(|error| host(error.into()))?;
        Self::over(socket, options)
    }

    /// Uses a server over a stream socket that is connected to it already.
    ///
    /// # Errors
    /// Those of Mount; [`ErrorKind::Connection`] if the server is not there or does not speak LISAFS. It is no error if
    /// channels cannot be had.
    pub fn over(socket: impl Into<OwnedFd>, options: &Options) -> Result<Self, Error> {
        let link = Arc::new(Link::new(socket.into()));
        let connection = mount(Arc::clone(&link)).inspect_err(|_| {
            link.end(Ended::Closed);
        })?;
        let client = Self { connection: Arc::new(connection) };
        if options.channels > 0 {
            client.connection.watch()?;
            client.open_channels(options.channels.min(MAX_CHANNELS));
        }
        Ok(client)
    }

    /// Opens up to `wanted` channels. What stops it is no failure: the socket does all that channels do.
    fn open_channels(&self, wanted: usize) {
        for number in 0..wanted {
            match self.open_channel() {
                Ok(()) => {}
                Err(error) if error.errno() == Errno::ENOMEM && *error.kind() == ErrorKind::Server => break,
                Err(error) => {
                    debug!(number, %error, "no channel");
                    break;
                }
            }
        }
    }

    fn open_channel(&self) -> Result<(), Error> {
        let mut reply: Reply<ChannelRequest> = self.call(&ChannelRequest)?;
        let window = reply.decode()?;
        let (Some(memory), Some(fd_socket)) = (reply.donated.first(), reply.donated.second()) else {
            return Err(Error::reply(Mid::CHANNEL, "its descriptors did not arrive"));
        };
        let channel = ClientChannel::map(memory, window.data_offset, window.data_length, fd_socket)
            .map_err(|error| Error::connection(Mid::CHANNEL, error.into()))?;
        let introduced = self.connection.link.introduce(Arc::new(channel));
        introduced.map_err(|ended| Error::connection(Mid::CHANNEL, ended))
    }
}

/// What all clones of a client share.
pub(super) struct Connection {
    pub(super) link: Arc<Link>,
    pub(super) root: Inode,
    /// Payload bytes that a message may have.
    pub(super) limit: usize,
    /// What the server knows, in order.
    supported: Box<[Mid]>,
    pub(super) closing: Mutex<Closing>,
    /// Whether anything has ever been in `closing`.
    pub(super) has_closing: AtomicBool,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Whether the server has announced a message.
    pub(super) fn supports(&self, mid: Mid) -> bool {
        self.supported.binary_search(&mid).is_ok()
    }

    fn watch(&self) -> Result<(), Error> {
        let watcher = watcher::watch(&self.link).map_err(|error| host(error.into()))?;
        *lock(&self.watcher) = Some(watcher);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The server gives back all descriptors of a connection that ends.
        self.link.end(Ended::Closed);
        if let Some(watcher) = lock(&self.watcher).take() {
            // It is our own code, which does not panic; and if it did, dropping is no place to go on with it.
            let _ = watcher.join();
        }
    }
}

/// The first message of every connection.
fn mount(link: Arc<Link>) -> Result<Connection, Error> {
    let limit = usize::try_from(INITIAL_MESSAGE_SIZE).unwrap_or(usize::MAX);
    let reply: Reply<MountRequest> = call::perform(&link, limit, &MountRequest)?;
    let mount = reply.decode()?;
    let limit = usize::try_from(mount.max_message_size).unwrap_or(usize::MAX);
    if limit < SMALLEST_LIMIT {
        return Err(Error::reply(Mid::MOUNT, "its limit is too small for messages"));
    }
    let mut supported: Box<[Mid]> = mount.supported.iter().collect();
    supported.sort_unstable();
    let root = mount.root;
    let (closing, watcher) = (Mutex::new(Closing::default()), Mutex::new(None));
    Ok(Connection { link, root, limit, supported, closing, has_closing: AtomicBool::new(false), watcher })
}

/// Below this, messages of fixed length do not fit.
const SMALLEST_LIMIT: usize = 256;

/// A failure of this host before there was a server to fail.
fn host(errno: Errno) -> Error {
    Error::host(Mid::MOUNT, errno)
}
