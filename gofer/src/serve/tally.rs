//! What a server has done, for one line at its end: requests, threads, the slowest messages.
//!
//! Each worker counts for itself and adds that up when it ends, so that the path of a request has neither a lock nor a
//! shared cache line more. Clocks are read only where debug records are wanted, which show the result.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gofer_protocol::Mid;

/// How many of the slowest requests are remembered.
const REMEMBERED: usize = 3;

/// The sums of a server's workers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: AtomicU64,
    threads: AtomicUsize,
    peak: AtomicUsize,
    slowest: Mutex<Slowest>,
}

impl Tally {
    /// For the thread that serves one transport, from its first request to its last.
    pub(crate) fn worker(&self) -> Worker<'_> {
        let threads = self.threads.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(threads, Ordering::Relaxed);
        let timed = tracing::enabled!(tracing::Level::DEBUG);
        Worker { tally: self, timed, requests: 0, slowest: Slowest::default() }
    }

    /// What workers have added until now; those that still serve have not.
    pub(crate) fn totals(&self) -> Totals {
        let slowest = self.slowest.lock().unwrap_or_else(PoisonError::into_inner).0;
        Totals {
            requests: self.requests.load(Ordering::Relaxed),
            peak_threads: self.peak.load(Ordering::Relaxed),
            slowest: slowest.into_iter().filter(|(duration, _)| !duration.is_zero()).collect(),
        }
    }
}

/// One thread's count.
#[derive(Debug)]
pub(crate) struct Worker<'t> {
    tally: &'t Tally,
    timed: bool,
    requests: u64,
    slowest: Slowest,
}

impl Worker<'_> {
    /// Serves a request by `serve`, and counts it.
    pub(crate) fn count<T>(&mut self, mid: Mid, serve: impl FnOnce() -> T) -> T {
        self.requests += 1;
        if !self.timed {
            return serve();
        }
        let start = Instant::now();
        let result = serve();
        self.slowest.note(start.elapsed(), mid);
        result
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.tally.requests.fetch_add(self.requests, Ordering::Relaxed);
        self.tally.threads.fetch_sub(1, Ordering::Relaxed);
        if self.timed {
            let mut all = self.tally.slowest.lock().unwrap_or_else(PoisonError::into_inner);
            for (duration, mid) in self.slowest.0 {
                all.note(duration, mid);
            }
        }
    }
}

/// The slowest requests, longest first; those without a duration are none.
#[derive(Clone, Copy, Debug)]
struct Slowest([(Duration, Mid); REMEMBERED]);

impl Default for Slowest {
    fn default() -> Self {
        Self([(Duration::ZERO, Mid::ERROR); REMEMBERED])
    }
}

impl Slowest {
    fn note(&mut self, duration: Duration, mid: Mid) {
        // Most are not, and cost this one comparison.
        if let [.., shortest] = &mut self.0
            && duration > shortest.0
        {
            *shortest = (duration, mid);
            self.0.sort_by_key(|(duration, _)| std::cmp::Reverse(*duration));
        }
    }
}

/// What a server has done until now; connections that are not over yet do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were received, refused ones among them.
    pub requests: u64,
    /// The most transports that had a thread at one time.
    pub peak_threads: usize,
    /// The slowest messages, longest first, without the time that their answers took on the way; none unless debug
    /// records are wanted.
    pub slowest: Vec<(Duration, Mid)>,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests={} peak_threads={} slowest=", self.requests, self.peak_threads)?;
        for (at, (duration, mid)) in self.slowest.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator}{mid:?}:{}us", duration.as_micros())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_what_they_did_and_how_many_they_were() {
        let tally = Tally::default();
        let (mut first, mut second) = (tally.worker(), tally.worker());
        for _ in 0..3 {
            first.count(Mid::WALK, || ());
        }
        second.count(Mid::PREAD, || ());
        assert_eq!(tally.totals().requests, 0, "they still serve");
        drop((first, second));
        drop(tally.worker());
        assert_eq!(tally.totals(), Totals { requests: 4, peak_threads: 2, slowest: Vec::new() });
    }

    #[test]
    fn the_slowest_of_all_are_remembered_in_their_order() {
        let mut slowest = Slowest::default();
        for (millis, mid) in [(5, Mid::WALK), (1, Mid::MOUNT), (9, Mid::PREAD), (7, Mid::FSYNC), (2, Mid::OPEN_AT)] {
            slowest.note(Duration::from_millis(millis), mid);
        }
        let totals = Totals { requests: 5, peak_threads: 1, slowest: slowest.0.to_vec() };
        assert!(totals.to_string().starts_with("requests=5 peak_threads=1 slowest="), "{totals}");
        let order: Vec<_> = slowest.0.iter().map(|(_, mid)| *mid).collect();
        assert_eq!(order, [Mid::PREAD, Mid::FSYNC, Mid::WALK]);
    }
}
