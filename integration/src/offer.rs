//! What a Channel request yields.

use std::os::fd::OwnedFd;

use gofer_protocol::message::ChannelReply;
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::transport::window::Window;

/// A channel that nobody has shaken hands on yet.
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
