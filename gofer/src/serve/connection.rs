//! A connection: one client, its descriptors, its policy, and the threads that serve its transports.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{self, JoinHandle};

use gofer_protocol::Errno;
use gofer_protocol::message::ChannelReply;
use gofer_protocol::sync::back_off;
use gofer_protocol::transport::ServerSocket;
use gofer_protocol::transport::channel::{ChannelTransport, ServerChannel};
use gofer_protocol::transport::memory::WindowAllocator;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::interrupt::interrupt;
use super::{MountPoint, Server, worker};
use crate::fd::FdTable;
use crate::{Limits, Policy};

/// Stack of a thread that serves one transport. Handlers are shallow; their largest buffer is one of 8 KiB.
const THREAD_STACK: usize = 256 << 10;

/// One client of a server.
#[derive(Debug)]
pub struct Connection {
    server: Arc<Server>,
    mount: MountPoint,
    policy: Policy,
    limits: Limits,
    fds: FdTable,
    /// Kept for [`Connection::finish`]; the thread that serves it has a descriptor of its own.
    socket: OwnedFd,
    channels: Mutex<Channels>,
    /// Held shared by each request that runs; true once no more are taken.
    closing: RwLock<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    end: Mutex<End>,
}

/// Who is to be told of the end, which comes once.
enum End {
    Ahead(Option<Box<dyn FnOnce() + Send>>),
    Behind,
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Behind) { "Behind" } else { "Ahead" })
    }
}

#[derive(Debug)]
struct Channels {
    windows: WindowAllocator,
    serving: Vec<(Arc<ServerChannel>, JoinHandle<()>)>,
}

impl Connection {
    pub(super) fn start(
        server: Arc<Server>,
        socket: OwnedFd,
        mount: MountPoint,
        policy: Policy,
        limits: Limits,
    ) -> io::Result<Arc<Self>> {
        let served = ServerSocket::new(socket.try_clone()?, limits.message_size);
        let connection = Arc::new(Self {
            server,
            mount,
            policy,
            limits,
            fds: FdTable::new(limits.fds),
            socket,
            channels: Mutex::new(Channels { windows: WindowAllocator::new(limits.message_size), serving: Vec::new() }),
            closing: RwLock::new(false),
            thread: Mutex::new(None),
            end: Mutex::new(End::Ahead(None)),
        });
        let serving = Arc::clone(&connection);
        let thread = spawn("gofer socket", move || serving.serve_socket(served))?;
        *lock(&connection.thread) = Some(thread);
        Ok(connection)
    }

    /// Takes no more requests; those that run are answered. Returns at once: [`Connection::wait`] waits for the end.
    pub fn finish(&self) {
        // Only this direction: the client must not see the connection end while a reply is under way.
        if let Err(errno) = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Read) {
            tracing::debug!(%errno, "the client is gone already");
        }
    }

    /// Waits until the client left, or [`Connection::finish`] took effect, and everything of the connection is closed.
    pub fn wait(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }

    /// Has `tell` run when everything of the connection is closed, which may be now; a second call replaces the first.
    /// It runs on the connection's own thread, so that waiting takes none.
    pub fn when_finished(&self, tell: impl FnOnce() + Send + 'static) {
        let mut end = lock(&self.end);
        match &mut *end {
            End::Ahead(told) => *told = Some(Box::new(tell)),
            End::Behind => {
                drop(end);
                tell();
            }
        }
    }

    /// Whether everything of the connection is closed.
    pub fn is_finished(&self) -> bool {
        lock(&self.thread).as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether the client has left so much unread that a reply has to wait for it.
    pub fn is_unread(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::OUT)];
        matches!(poll(&mut socket, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }

    /// Ends the connection though a reply is under way, which the client does not get.
    pub fn cut(&self) {
        // It fails where the client is gone, which is as well.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    fn serve_socket(self: Arc<Self>, mut socket: ServerSocket) {
        let why = worker::serve(&self, &mut socket);
        tracing::debug!(%why, "connection ends");
        self.close();
        // Only now does the client see the end.
        drop(socket);
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let told = std::mem::replace(&mut *lock(&self.end), End::Behind);
        if let End::Ahead(Some(tell)) = told {
            tell();
        }
    }

    /// Refuses new requests, waits for those that run, ends the channels, and drops what the client held.
    fn close(&self) {
        *self.closing.write().unwrap_or_else(PoisonError::into_inner) = true;
        let serving = std::mem::take(&mut lock(&self.channels).serving);
        for (channel, thread) in &serving {
            end(channel, thread);
        }
        for (_, thread) in serving {
            let _ = thread.join();
        }
        self.fds.clear();
    }

    /// Makes a channel and a thread that serves it; returns what the client needs to use it.
    pub(crate) fn open_channel(self: &Arc<Self>) -> Result<(ChannelReply, [OwnedFd; 2]), Errno> {
        let mut channels = lock(&self.channels);
        let (channel, offer) = ServerChannel::open(&mut channels.windows).map_err(|error| error.errno())?;
        let channel = Arc::new(channel);
        let (connection, served) = (Arc::clone(self), Arc::clone(&channel));
        let thread = spawn("gofer channel", move || connection.serve_channel(&served))?;
        channels.serving.push((channel, thread));
        Ok((ChannelReply { data_offset: offer.data_offset, data_length: offer.data_length }, offer.donated))
    }

    fn serve_channel(self: Arc<Self>, channel: &Arc<ServerChannel>) {
        let why = worker::serve(&self, &mut ChannelTransport::new(Arc::clone(channel)));
        tracing::debug!(%why, "channel ends");
        // Whatever the reason: a client that waits for a reply must not wait for ever.
        channel.shut_down();
    }

    /// Keeps the connection from closing while a request runs; true if it is closing already. Not to be asked twice by
    /// one thread: a close that waits in between would wait for ever.
    pub(crate) fn running(&self) -> RwLockReadGuard<'_, bool> {
        self.closing.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn mount(&self) -> &MountPoint {
        &self.mount
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn fds(&self) -> &FdTable {
        &self.fds
    }

    /// Payload bytes of a message, as the wire has it.
    pub(crate) fn message_size(&self) -> u32 {
        self.limits.message_size
    }

    /// Payload bytes of a message.
    pub(crate) fn max_message_size(&self) -> usize {
        usize::try_from(self.limits.message_size).unwrap_or(usize::MAX)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Ends a channel, though its client may do its worst to keep the thread asleep.
fn end(channel: &ServerChannel, thread: &JoinHandle<()>) {
    /// An honest client's channel has ended long before.
    const PATIENCE: u32 = 100;
    for round in 0.. {
        if channel.try_shut_down() {
            return;
        }
        if round > PATIENCE {
            interrupt(thread);
        }
        back_off(round);
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).stack_size(THREAD_STACK).spawn(run)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
