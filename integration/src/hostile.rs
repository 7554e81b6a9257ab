//! The client's side of a channel in hostile hands: every byte of the window can be written at any time.

use std::sync::atomic::Ordering;
use std::time::Instant;

use gofer_protocol::transport::flipcall::Word;
use gofer_protocol::transport::window::Window;

use crate::offer::ChannelOffer;
use crate::wait::PATIENCE;

/// Value of the state while the client may touch the window.
pub const CLIENT_ACTIVE: u32 = 0;
/// Value of the state while the server may.
pub const SERVER_ACTIVE: u32 = 1;
/// Value of the state once the channel is no more.
pub const SHUT_DOWN: u32 = 2;

/// A window without manners, and what came along with it.
#[derive(Debug)]
pub struct HostileChannel {
    /// The window.
    pub window: Window,
    /// For further mappings, and the descriptor socket.
    pub offer: ChannelOffer,
}

impl HostileChannel {
    /// Before the handshake.
    #[must_use]
    pub fn new(offer: ChannelOffer) -> Self {
        Self { window: offer.window(), offer }
    }

    /// After an honest handshake.
    ///
    /// # Panics
    /// If the server does not shake hands.
    #[must_use]
    pub fn greeted(offer: ChannelOffer) -> Self {
        let channel = Self::new(offer);
        channel.write(0, b"{}\n");
        channel.pass(3);
        assert_eq!(channel.wait(), CLIENT_ACTIVE, "the server shakes hands");
        channel
    }

    /// Writes bytes of the datagram.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.window.copy_in(at, bytes).expect("within the window");
    }

    /// Announces a length and gives the turn to the server.
    pub fn pass(&self, data_len: u32) {
        self.window.set_data_len(data_len);
        self.set_state(SERVER_ACTIVE);
    }

    /// Sets the state, whatever it was, and wakes whoever sleeps on it.
    pub fn set_state(&self, state: u32) {
        self.window.state().store(state, Ordering::SeqCst);
        self.window.wake_all();
    }

    /// Sleeps as an honest client does, until it is no longer the server's turn, and returns the state. Is not
    /// woken by mere chance, so that a server that forgets to wake shows.
    #[must_use]
    pub fn wait(&self) -> u32 {
        self.wait_while(SERVER_ACTIVE)
    }

    /// As [`HostileChannel::wait`], for another state than the server's turn.
    ///
    /// # Panics
    /// Where futexes do not work.
    #[must_use]
    pub fn wait_while(&self, state: u32) -> u32 {
        let start = Instant::now();
        while self.window.state().load(Ordering::SeqCst) == state && start.elapsed() < PATIENCE {
            self.window.sleep(state, Some(PATIENCE)).expect("a futex");
        }
        assert!(start.elapsed() < PATIENCE, "nobody woke the client");
        self.window.state().load(Ordering::SeqCst)
    }

    /// The four bytes before a payload: message, number of descriptors, nothing.
    ///
    /// # Panics
    /// If the window is no window.
    #[must_use]
    pub fn header(&self) -> [u8; 4] {
        let mut header = [0; 4];
        self.window.copy_out(0, &mut header).expect("within the window");
        header
    }

    /// Sends a request and goes on.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn send(&self, mid: u16, payload: &[u8]) {
        self.write(4, payload);
        self.write(0, &[mid.to_le_bytes(), [0, 0]].concat());
        self.pass(u32::try_from(payload.len() + 4).expect("a datagram"));
    }

    /// Sends a request and waits for its end: the reply's number and payload, or none if the channel is shut down.
    ///
    /// # Panics
    /// If neither comes.
    #[must_use]
    pub fn exchange(&self, mid: u16, payload: &[u8]) -> Option<(u16, Vec<u8>)> {
        self.send(mid, payload);
        if self.wait() != CLIENT_ACTIVE {
            return None;
        }
        let [low, high, ..] = self.header();
        // In hostile hands the length may be anything.
        let len = usize::try_from(self.window.data_len()).expect("a length").min(self.window.capacity());
        let mut reply = vec![0; len.saturating_sub(4)];
        self.window.copy_out(4, &mut reply).expect("within the window");
        Some((u16::from_le_bytes([low, high]), reply))
    }
}
