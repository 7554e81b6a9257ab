//! Something that goes on beside a test: another process of the host, another thread of a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A thread that repeats a step until it is dropped.
#[derive(Debug)]
pub struct Actor {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    /// Repeats `step`.
    pub fn repeat(mut step: impl FnMut() + Send + 'static) -> Self {
        let (stop, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (seen, counted) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                step();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, rounds, thread: Some(thread) }
    }

    /// How often the step was made.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Whether the step failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().map(JoinHandle::join);
        // A failed step fails the test, unless that fails already.
        if !std::thread::panicking() {
            assert!(!matches!(outcome, Some(Err(_))), "what went on beside the test failed");
        }
    }
}
