//! Every lock, atomic and thread primitive of this crate comes through here, so that loom's can stand in for std's.

#[cfg(loom)]
pub use loom::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    thread::yield_now,
};

use std::sync::PoisonError;

/// Locks `mutex`, poisoned or not.
///
/// A panic while a lock was held is a bug, reported where it happened. Passing it on to every later holder would let
/// one bad request end the service of all others.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets another thread make progress, in round number `round` of a loop that waits for it: gives up the processor at
/// first, and sleeps once that has not helped.
pub fn back_off(round: u32) {
    #[cfg(not(loom))]
    if round >= YIELDS {
        return std::thread::sleep(std::time::Duration::from_millis(1));
    }
    #[cfg(loom)]
    let _ = round;
    yield_now();
}

#[cfg(not(loom))]
const YIELDS: u32 = 64;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_poisoned_lock_is_entered() {
        let mutex = Arc::new(Mutex::new(1));
        let theirs = Arc::clone(&mutex);
        let poisoner = std::thread::spawn(move || {
            let _held = lock(&theirs);
            panic!("poisons the lock on purpose");
        });
        assert!(poisoner.join().is_err());
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 1);
    }
}
