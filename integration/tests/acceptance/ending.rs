//! End of life.

use std::time::Instant;

use gofer::contract::Generation;
use gofer::launch::Ended;
use gofer_integration::Ask;
use gofer_integration::wait::PATIENCE;

use crate::subject::{clients, each, one};

/// 49's half of the gofer.
#[test]
fn it_exits_with_0_when_all_connections_are_closed() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        clients(&mut gofer)[0].mount();
        let start = Instant::now();
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
        assert!(start.elapsed() < PATIENCE);
    });
}

/// 55: the silent half, in which nobody sends a pidfd.
#[test]
fn it_waits_for_a_silent_sentry_and_holds_the_ring_until_it_ends() {
    one(Generation::E26, |subject| {
        let (ours, ring) = rustix::pipe::pipe().expect("a pipe");
        let mut gofer = subject.started(subject.launcher(&subject.bundle()).pin_ring(ring));
        let silent = gofer.take_sentry_exit();
        let start = Instant::now();
        drop(clients(&mut gofer));
        assert_eq!(rustix::io::read(&ours, &mut [0]), Ok(0), "the end of the pipe, when the gofer is gone");
        assert!(start.elapsed().as_millis() >= 400, "{:?}", start.elapsed());
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
        drop(silent);
    });
}
