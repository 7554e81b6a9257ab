//! Descriptors that came with a reply.

use std::os::fd::OwnedFd;

use crate::{Errno, Mid};

use super::Error;

/// Descriptors that the server donated, each in its place. One that did not arrive leaves its place empty. What is not
/// taken is closed.
#[derive(Debug, Default)]
pub struct Donated {
    places: [Option<OwnedFd>; MAX_DONATIONS],
}

/// Descriptors that a message donates at most: those of a channel.
const MAX_DONATIONS: usize = 2;

impl Donated {
    /// Takes the first descriptor, if it arrived and was not taken yet.
    pub fn first(&mut self) -> Option<OwnedFd> {
        self.take(0)
    }

    /// Takes the second descriptor, if it arrived and was not taken yet.
    pub fn second(&mut self) -> Option<OwnedFd> {
        self.take(1)
    }

    /// The first descriptor of a message that is worth nothing without.
    pub(super) fn required(&mut self, mid: Mid) -> Result<OwnedFd, Error> {
        // EBADF is what the kernel of a sandbox makes of it.
        self.first().ok_or_else(|| Error::reply_with(mid, Errno::EBADF, "its descriptor did not arrive"))
    }

    /// The places of the first `count` descriptors.
    pub(super) fn places(&mut self, count: usize) -> &mut [Option<OwnedFd>] {
        self.places.get_mut(..count).unwrap_or_default()
    }

    fn take(&mut self, place: usize) -> Option<OwnedFd> {
        self.places.get_mut(place)?.take()
    }
}
