//! The hand-over under every interleaving: run with `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom
//! cargo test -p gofer-protocol --release --test loom`.
#![cfg(loom)]

use std::time::Duration;

use gofer_protocol::{
    sync::{Arc, AtomicBool, AtomicU32, Mutex, Ordering, lock},
    transport::flipcall::{Ended, Endpoint, Role, SleepFailed, Word},
};
use loom::{cell::UnsafeCell, model::Builder, sync::Condvar, thread};

const SHUT_DOWN: u32 = 2;

#[test]
fn the_sides_are_never_active_at_once_and_see_what_the_other_wrote() {
    check(None, || {
        let window = Shared::new();
        let server = thread::spawn({
            let window = window.clone();
            move || {
                let server = Endpoint::new(window.clone(), Role::Server);
                for round in 0..ROUNDS {
                    server.wait().unwrap();
                    window.check_and_write(2 * round + 1);
                    server.hand_over().unwrap();
                }
            }
        });
        let client = Endpoint::new(window.clone(), Role::Client);
        for round in 0..ROUNDS {
            window.check_and_write(2 * round);
            client.hand_over().unwrap();
            client.wait().unwrap();
        }
        server.join().unwrap();
        window.check_and_write(2 * ROUNDS);
    });
}

#[test]
fn both_sides_end_when_the_server_shuts_down() {
    check(Some(3), || end_by(Role::Server, Client::Waits));
}

#[test]
fn both_sides_end_when_the_client_shuts_down() {
    check(Some(3), || end_by(Role::Client, Client::Waits));
}

#[test]
fn both_sides_end_when_both_shut_down() {
    check(Some(3), || end_by(Role::Server, Client::ShutsDown));
    check(Some(3), || end_by(Role::Client, Client::ShutsDown));
}

#[test]
fn a_side_that_shuts_down_in_its_own_turn_wakes_the_other() {
    for role in [Role::Server, Role::Client] {
        check(None, move || {
            let window = Shared::new();
            let server = thread::spawn({
                let window = window.clone();
                move || {
                    let server = Endpoint::new(window, Role::Server);
                    let turn = server.wait();
                    if role == Role::Server {
                        assert_eq!(turn, Ok(()));
                        server.shut_down();
                    } else {
                        assert_eq!(turn, Err(Ended::ShutDown));
                    }
                }
            });
            let client = Endpoint::new(window.clone(), Role::Client);
            if role == Role::Server {
                assert_eq!(client.hand_over().and_then(|()| client.wait()), Err(Ended::ShutDown));
            } else {
                client.shut_down();
            }
            server.join().unwrap();
            assert_eq!(window.0.value.load(Ordering::Acquire), SHUT_DOWN);
        });
    }
}

#[test]
fn a_protocol_error_wakes_an_honest_peer() {
    check(None, || {
        let window = Shared::new();
        let server = thread::spawn({
            let window = window.clone();
            move || {
                let server = Endpoint::new(window, Role::Server);
                server.wait().unwrap();
                assert_eq!(server.fail(), Ended::Protocol);
                assert_eq!(server.hand_over(), Err(Ended::ShutDown));
            }
        });
        let client = Endpoint::new(window, Role::Client);
        client.hand_over().unwrap();
        assert_eq!(client.wait(), Err(Ended::ShutDown));
        server.join().unwrap();
    });
}

#[test]
fn a_hostile_peer_cannot_keep_a_side_from_ending() {
    for role in [Role::Server, Role::Client] {
        for first in HOSTILE_VALUES {
            for second in HOSTILE_VALUES {
                for third in HOSTILE_VALUES {
                    check(Some(2), move || end_despite(role, &[first, second, third], Wakes::Never));
                }
            }
        }
    }
}

#[test]
fn a_hostile_peer_that_wakes_cannot_keep_a_side_from_ending() {
    for role in [Role::Server, Role::Client] {
        for first in HOSTILE_VALUES {
            for second in HOSTILE_VALUES {
                check(Some(2), move || end_despite(role, &[first, second], Wakes::EachTime));
            }
        }
    }
}

/// The one move that a single wake-up cannot answer: the word is put back just before our thread falls asleep.
#[test]
fn a_peer_that_takes_back_the_shut_down_cannot_keep_a_side_asleep() {
    for role in [Role::Server, Role::Client] {
        let again = role.peer_active();
        check(Some(4), move || end_despite(role, &[again], Wakes::Never));
        check(Some(3), move || end_despite(role, &[again, again], Wakes::Never));
    }
}

#[test]
fn foreign_sleepers_cannot_swallow_the_wake_up() {
    check(Some(3), || {
        let window = Shared::new();
        let server = Arc::new(Endpoint::new(window.clone(), Role::Server));
        let ours = thread::spawn({
            let server = Arc::clone(&server);
            move || assert_eq!(server.wait(), Err(Ended::ShutDown))
        });
        let foreign = thread::spawn(move || window.sleep(Role::Server.peer_active(), Duration::MAX).unwrap());
        server.shut_down();
        ours.join().unwrap();
        foreign.join().unwrap();
    });
}

/// Takes turns while another thread of `closing` shuts the channel down.
fn end_by(closing: Role, then: Client) {
    let window = Shared::new();
    let server = Arc::new(Endpoint::new(window.clone(), Role::Server));
    let client = Arc::new(Endpoint::new(window.clone(), Role::Client));
    let closer = thread::spawn({
        let endpoint = Arc::clone(if closing == Role::Server { &server } else { &client });
        move || endpoint.shut_down()
    });
    let serving = thread::spawn({
        let window = window.clone();
        move || {
            loop {
                let turn = server.wait();
                if turn.is_ok() {
                    window.touch();
                }
                if let Err(ended) = turn.and_then(|()| server.hand_over()) {
                    return assert_eq!(ended, Ended::ShutDown);
                }
            }
        }
    });
    window.touch();
    let passed = client.hand_over();
    let turn = match then {
        Client::Waits => passed.and_then(|()| client.wait()),
        Client::ShutsDown => {
            client.shut_down();
            client.wait()
        }
    };
    match turn {
        Ok(()) => window.touch(),
        Err(ended) => assert_eq!(ended, Ended::ShutDown),
    }
    closer.join().unwrap();
    assert_eq!(window.0.value.load(Ordering::Acquire), SHUT_DOWN);
    assert_eq!(client.wait(), Err(Ended::ShutDown));
    serving.join().unwrap();
}

/// What the client does after its request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Waits,
    ShutsDown,
}

/// One side takes turns and is shut down by another of its threads, while its peer writes `values` to the word.
fn end_despite(role: Role, values: &[u32], wakes: Wakes) {
    let window = Shared::new();
    let endpoint = Arc::new(Endpoint::new(window.clone(), role));
    let closed = Arc::new(AtomicBool::new(false));
    let ours = thread::spawn({
        let (endpoint, closed) = (Arc::clone(&endpoint), Arc::clone(&closed));
        move || {
            loop {
                let too_late = closed.load(Ordering::Acquire);
                let turn = endpoint.wait();
                assert!(!too_late || turn.is_err(), "a turn was accepted after the shut-down");
                let too_late = closed.load(Ordering::Acquire);
                let passed = turn.and_then(|()| endpoint.hand_over());
                assert!(!too_late || passed.is_err(), "a turn was given after the shut-down");
                if passed.is_err() {
                    return;
                }
            }
        }
    });
    let closer = thread::spawn({
        let (endpoint, closed) = (Arc::clone(&endpoint), Arc::clone(&closed));
        move || {
            endpoint.shut_down();
            closed.store(true, Ordering::Release);
        }
    });
    for &value in values {
        window.swap(value);
        if wakes == Wakes::EachTime {
            window.wake_one();
        }
    }
    ours.join().unwrap();
    closer.join().unwrap();
    assert!(endpoint.ready().is_err());
}

fn check(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Whether the hostile peer wakes after each value that it writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    Never,
    EachTime,
}

/// Active sides, and garbage. Shut-down is what the closing thread writes.
const HOSTILE_VALUES: [u32; 3] = [0, 1, 7];

const ROUNDS: u32 = 2;

/// A window: the word, the kernel's futex for it, and bytes that only the active side may touch.
#[derive(Clone)]
struct Shared(Arc<Model>);

struct Model {
    value: AtomicU32,
    /// The kernel compares and goes to sleep, or wakes, under one lock.
    bucket: Mutex<()>,
    sleepers: Condvar,
    /// Loom fails the test when two threads access this without an order between them.
    bytes: UnsafeCell<u32>,
}

impl Shared {
    fn new() -> Self {
        Self(Arc::new(Model {
            value: AtomicU32::new(0),
            bucket: Mutex::new(()),
            sleepers: Condvar::new(),
            bytes: UnsafeCell::new(0),
        }))
    }

    /// Expects to be number `turn` of all accesses.
    fn check_and_write(&self, turn: u32) {
        // SAFETY: loom verifies that nothing else accesses the cell meanwhile, and panics before the access if not.
        let before = self.0.bytes.with_mut(|bytes| unsafe { bytes.replace(turn + 1) });
        assert_eq!(before, turn);
    }

    fn touch(&self) {
        // SAFETY: as above.
        self.0.bytes.with_mut(|bytes| unsafe { bytes.write(0) });
    }
}

impl Word for Shared {
    fn load(&self) -> u32 {
        self.0.value.load(Ordering::Acquire)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<(), u32> {
        self.0.value.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    fn swap(&self, new: u32) {
        self.0.value.swap(new, Ordering::AcqRel);
    }

    /// Never gives up: in the model, nothing may depend on the limit.
    fn sleep(&self, expected: u32, _limit: Duration) -> Result<(), SleepFailed> {
        let bucket = lock(&self.0.bucket);
        if self.0.value.load(Ordering::Relaxed) == expected {
            drop(self.0.sleepers.wait(bucket));
        }
        Ok(())
    }

    fn wake_one(&self) {
        let _bucket = lock(&self.0.bucket);
        self.0.sleepers.notify_one();
    }

    fn wake_all(&self) {
        let _bucket = lock(&self.0.bucket);
        self.0.sleepers.notify_all();
    }
}
