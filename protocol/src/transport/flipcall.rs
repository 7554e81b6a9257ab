//! Whose turn it is: the hand-over of a packet window between client and server.
//!
//! One 32-bit word at the start of the window says which side may touch the rest of it. A side that has finished
//! exchanges the word, wakes the other and sleeps on it until the turn comes back. The word is shared with a peer that
//! may write anything at any time; what this module promises nevertheless:
//!
//! * With an honest peer the sides are never active at once, and everything the peer wrote before it handed over is
//!   visible when [`Endpoint::wait`] returns.
//! * With any peer, every call ends once [`Endpoint::shut_down`] was called on this side, and a turn is never accepted
//!   afterwards, whatever the word says. (Against peers that may move our sleepers, see there.)
//! * A value that the protocol does not know shuts the channel down, which wakes an honest peer.
//!
//! Nothing here allocates, locks or reads the clock.

use std::time::Duration;

use tracing::debug;

use crate::sync::{AtomicU32, Ordering, back_off};

/// The shared word, with the futex that belongs to it.
///
/// A trait so that the model checker can supply its own; in production it is the packet window.
pub trait Word {
    /// Reads the word with Acquire ordering.
    fn load(&self) -> u32;

    /// Replaces `current` by `new` with Release ordering, or returns what the word holds instead.
    fn compare_exchange(&self, current: u32, new: u32) -> Result<(), u32>;

    /// Exchanges whatever the word holds for `new`, with Release ordering.
    ///
    /// No plain store: it has to take its place among the exchanges of the other threads.
    fn swap(&self, new: u32);

    /// Sleeps while the word is `expected`, until woken or for `limit`, if there is one. May return early for no reason.
    fn sleep(&self, expected: u32, limit: Option<Duration>) -> Result<(), SleepFailed>;

    /// Wakes one sleeper.
    fn wake_one(&self);

    /// Wakes all sleepers.
    fn wake_all(&self);
}

/// The system call behind [`Word::sleep`] does not work here (a filter, for instance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepFailed;

/// Which end of the channel this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Active first.
    Client,
    /// Waits first.
    Server,
}

impl Role {
    /// The word's value while this side may touch the window.
    pub const fn active(self) -> u32 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// The word's value while the other side may: what a waiter expects the word to be while it sleeps.
    pub const fn peer_active(self) -> u32 {
        1 - self.active()
    }
}

/// Why a channel serves no more. It never recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// One of the sides shut the channel down.
    ShutDown,
    /// The peer broke the protocol, so this side shut the channel down.
    Protocol,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ShutDown => "the channel was shut down",
            Self::Protocol => "the peer broke the channel protocol",
        })
    }
}

impl std::error::Error for Ended {}

/// One side of a channel.
///
/// One thread at a time takes turns; any thread may call [`Self::shut_down`]. Two threads that take turns at once would
/// not break memory safety, but each would see the other as a peer that breaks the protocol.
#[derive(Debug)]
pub struct Endpoint<W> {
    word: W,
    role: Role,
    /// [`SHUT`], and below it the number of this side's threads that are asleep or about to be. They share one atomic
    /// because their order matters: whoever comes second in its modification order sees the first.
    local: AtomicU32,
}

const SHUT_DOWN: u32 = 2;
const SHUT: u32 = 1 << 31;
const SLEEPERS: u32 = SHUT - 1;

impl<W: Word> Endpoint<W> {
    /// Takes part in the hand-over of `word` as `role`.
    pub fn new(word: W, role: Role) -> Self {
        Self { word, role, local: AtomicU32::new(0) }
    }

    /// The shared word. Whoever waits for it by other means sleeps while it is `role().peer_active()`, and asks
    /// [`Self::ready`] afterwards.
    pub const fn word(&self) -> &W {
        &self.word
    }

    /// Which side this is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Gives the turn to the peer and wakes it.
    pub fn hand_over(&self) -> Result<(), Ended> {
        self.pass()?;
        self.word.wake_one();
        Ok(())
    }

    /// Gives the turn to the peer, which may be asleep: the caller owes it a wake-up.
    pub fn pass(&self) -> Result<(), Ended> {
        if self.is_shut() {
            return Err(Ended::ShutDown);
        }
        // Release inside: pairs with the peer's Acquire in `ready`, and publishes what we wrote to the window.
        match self.word.compare_exchange(self.role.active(), self.role.peer_active()) {
            Ok(()) => Ok(()),
            Err(SHUT_DOWN) => Err(self.see_shut_down()),
            Err(value) => Err(self.see_garbage(value)),
        }
    }

    /// Sleeps until it is this side's turn.
    pub fn wait(&self) -> Result<(), Ended> {
        while !self.ready()? {
            // Without a limit: arming a timer for every request would cost more than all else that is done here.
            self.sleep(None)?;
        }
        Ok(())
    }

    /// Sleeps at most once, for at most `limit`, and says whether it is this side's turn. May return early.
    pub fn wait_for(&self, limit: Duration) -> Result<bool, Ended> {
        if self.ready()? {
            return Ok(true);
        }
        self.sleep(Some(limit))?;
        self.ready()
    }

    /// Whether it is this side's turn, without sleeping. Cheap enough to be asked in a spin loop.
    #[inline]
    pub fn ready(&self) -> Result<bool, Ended> {
        // Before the word: a hostile peer can hand over again and again, and must not keep a channel busy that we want
        // to end.
        if self.is_shut() {
            return Err(Ended::ShutDown);
        }
        // Acquire inside: pairs with the peer's Release in `pass`, so that we see what it wrote to the window.
        match self.word.load() {
            value if value == self.role.active() => Ok(true),
            value if value == self.role.peer_active() => Ok(false),
            SHUT_DOWN => Err(self.see_shut_down()),
            value => Err(self.see_garbage(value)),
        }
    }

    /// Ends the channel for both sides. Returns when no thread of this side is asleep in it any more.
    ///
    /// A hostile peer can have the kernel move our sleeper to another word (`FUTEX_CMP_REQUEUE`), where no wake-up of
    /// ours finds it, and this would not return. Who serves such peers calls [`Self::try_shut_down`] until it says true,
    /// and interrupts the sleeper by a signal if that takes long.
    pub fn shut_down(&self) {
        for round in 0.. {
            if self.try_shut_down() {
                break;
            }
            back_off(round);
        }
    }

    /// Ends the channel for both sides, and says whether no thread of this side is asleep in it any more.
    ///
    /// Our own thread may be just about to fall asleep, after the wake-up; it does not if it finds the word changed,
    /// but a hostile peer can change it back in time. Hence the repetition by the caller.
    #[must_use]
    pub fn try_shut_down(&self) -> bool {
        // AcqRel: its place in the modification order of `local` decides. A sleeper counted before it is waited for
        // by the caller; one that counts itself after it sees SHUT and does not sleep.
        self.local.fetch_or(SHUT, Ordering::AcqRel);
        self.word.swap(SHUT_DOWN);
        // All: a hostile peer may park many threads on the word, and one wake-up might be spent on those.
        self.word.wake_all();
        // Acquire: pairs with the Release in `sleep`.
        self.local.load(Ordering::Acquire) & SLEEPERS == 0
    }

    /// Ends the channel because the peer broke the protocol, here or in a layer above. The peer is woken: if it is
    /// honest after all, it is not to wait for ever.
    #[cold]
    pub fn fail(&self) -> Ended {
        self.shut_down();
        Ended::Protocol
    }

    fn is_shut(&self) -> bool {
        // Relaxed: nothing is published with the flag, it only has to be seen some time. The race with falling asleep
        // is decided in `sleep`.
        self.local.load(Ordering::Relaxed) & SHUT != 0
    }

    fn sleep(&self, limit: Option<Duration>) -> Result<(), Ended> {
        // AcqRel: pairs with the one in `shut_down`.
        let before = self.local.fetch_add(1, Ordering::AcqRel);
        let slept = if before & SHUT == 0 { self.word.sleep(self.role.peer_active(), limit) } else { Ok(()) };
        // Release: pairs with the Acquire in `shut_down`, which may free things once we have left.
        self.local.fetch_sub(1, Ordering::Release);
        slept.map_err(|SleepFailed| self.fail())
    }

    #[cold]
    fn see_shut_down(&self) -> Ended {
        // The peer's decision is final, even if the peer changes the word again.
        self.local.fetch_or(SHUT, Ordering::AcqRel);
        Ended::ShutDown
    }

    #[cold]
    fn see_garbage(&self, value: u32) -> Ended {
        debug!(role = ?self.role, value, "unknown channel state, shutting the channel down");
        self.fail()
    }
}
