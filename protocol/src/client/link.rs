//! The communicators of a connection, who waits for one, and the connection's end.

use std::os::fd::OwnedFd;

use rustix::net::{Shutdown, shutdown};
use tracing::debug;

use super::communicator::Communicator;
use crate::sync::{Arc, Condvar, Mutex, lock};
use crate::transport::channel::ClientChannel;
use crate::transport::{ClientSocket, Ended};

/// What calls, the watcher and the connection's owner share.
#[derive(Debug)]
pub(super) struct Link {
    socket: Arc<OwnedFd>,
    state: Mutex<State>,
    /// Told when a communicator becomes idle, and when the connection ends.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// None while it is in use.
    idle_socket: Option<ClientSocket<Arc<OwnedFd>>>,
    /// The last one used is the first one used again: its pages are warm.
    idle_channels: Vec<Arc<ClientChannel>>,
    /// Those that work, in use or not.
    channels: Vec<Arc<ClientChannel>>,
    death: Option<Ended>,
    /// Threads that wait for a communicator. Telling no one would cost a system call, in every request.
    waiting: usize,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Self {
        let socket = Arc::new(socket);
        let state = State {
            idle_socket: Some(ClientSocket::new(Arc::clone(&socket))),
            idle_channels: Vec::new(),
            channels: Vec::new(),
            death: None,
            waiting: 0,
        };
        Self { socket, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Why the connection ended, if it did.
    pub(super) fn death(&self) -> Option<Ended> {
        lock(&self.state).death
    }

    /// Number of channels that work.
    pub(super) fn channels(&self) -> usize {
        lock(&self.state).channels.len()
    }

    /// Shakes hands on a new channel, for everybody to use. It ends with the connection from now on.
    pub(super) fn introduce(&self, channel: Arc<ClientChannel>) -> Result<(), Ended> {
        let mut state = lock(&self.state);
        if let Some(ended) = state.death {
            return Err(ended);
        }
        state.channels.push(Arc::clone(&channel));
        drop(state);
        let greeted = channel.shake_hands();
        let channel = Communicator::Channel(channel);
        match greeted {
            Ok(()) => {
                self.release(channel);
                Ok(())
            }
            Err(error) => Err(self.discard(channel, error.into())),
        }
    }

    /// Waits for a communicator that nobody uses: a channel if there is one.
    pub(super) fn acquire(&self) -> Result<Communicator, Ended> {
        let mut state = lock(&self.state);
        loop {
            if let Some(ended) = state.death {
                return Err(ended);
            }
            if let Some(channel) = state.idle_channels.pop() {
                return Ok(Communicator::Channel(channel));
            }
            if let Some(socket) = state.idle_socket.take() {
                return Ok(Communicator::Socket(socket));
            }
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Gives a communicator to whoever waits for one.
    pub(super) fn release(&self, communicator: Communicator) {
        let mut state = lock(&self.state);
        match communicator {
            Communicator::Channel(channel) => state.idle_channels.push(channel),
            Communicator::Socket(socket) => state.idle_socket = Some(socket),
        }
        let awaited = state.waiting > 0;
        drop(state);
        if awaited {
            self.changed.notify_one();
        }
    }

    /// Drops a communicator that failed; with the socket, the connection ends. Returns the true cause: where the
    /// connection has ended, that is why its channels fail.
    pub(super) fn discard(&self, communicator: Communicator, ended: Ended) -> Ended {
        match communicator {
            Communicator::Channel(channel) => {
                debug!(%ended, "a channel failed and is not used again");
                channel.shut_down();
                let mut state = lock(&self.state);
                state.channels.retain(|other| !Arc::ptr_eq(other, &channel));
                state.death.unwrap_or(ended)
            }
            Communicator::Socket(_) => self.end(ended),
        }
    }

    /// Ends the connection: everyone who waits for the server, or for a communicator, is told. Returns why it ended,
    /// which an earlier call may have decided.
    pub(super) fn end(&self, ended: Ended) -> Ended {
        let mut state = lock(&self.state);
        if let Some(earlier) = state.death {
            return earlier;
        }
        state.death = Some(ended);
        state.idle_channels.clear();
        let channels = std::mem::take(&mut state.channels);
        drop(state);
        self.changed.notify_all();
        // It fails where the peer has gone, and then there is nothing to shut down.
        let _ = shutdown(&*self.socket, Shutdown::Both);
        for channel in channels {
            channel.shut_down();
        }
        ended
    }
}
