//! End of life, as far as it takes no sandbox.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gofer::contract::Generation;
use gofer::launch::{Ended, Launched};
use gofer_integration::Ask;
use gofer_integration::wait::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::subject::{Subject, clients, each, is_stock, one};

/// 49's half of the gofer; that it takes less than a second to go is in `through_runsc`.
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

/// 55.
#[test]
fn it_waits_for_a_silent_sentry_and_holds_the_ring_until_it_ends() {
    one(Generation::E26, |subject| {
        let (mut gofer, ring) = with_ring(subject);
        let silent = gofer.take_sentry_exit();
        let start = Instant::now();
        drop(clients(&mut gofer));
        assert!(!is_held(&ring, PATIENCE), "not for ever");
        assert!(start.elapsed().as_millis() >= 400, "{:?}", start.elapsed());
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
        drop(silent);
    });
}

/// 55.
#[test]
fn it_outlives_the_sandbox_until_its_pidfd_fires_and_holds_the_ring_until_then() {
    one(Generation::E26, |subject| {
        let (mut gofer, ring) = with_ring(subject);
        let socket = gofer.take_sentry_exit().expect("a socket");
        let mut sandbox = sleeping();
        send(&socket, pidfd(&sandbox).as_fd());
        // Whoever sent it may be gone before it is read.
        drop(socket);
        let start = Instant::now();
        drop(clients(&mut gofer));
        // A busy machine may be too late to see it.
        let held = is_held(&ring, Duration::from_millis(200));
        assert!(held || start.elapsed().as_millis() >= 400, "the sandbox lives");
        sandbox.kill().expect("it is killed");
        sandbox.wait().expect("an end");
        assert!(!is_held(&ring, PATIENCE));
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
    });
}

/// 55.
#[test]
fn it_does_not_wait_for_ever_for_a_sandbox_that_lives_on() {
    one(Generation::E26, |subject| {
        let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create("debug"));
        let mut gofer = subject.started(launcher);
        let socket = gofer.take_sentry_exit().expect("a socket");
        let mut sandbox = sleeping();
        send(&socket, pidfd(&sandbox).as_fd());
        let start = Instant::now();
        drop(clients(&mut gofer));
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
        assert!((Duration::from_millis(400)..PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert!(sandbox.try_wait().expect("a status").is_none(), "it lives");
        let log = std::fs::read_to_string(subject.path("debug")).expect("a log");
        assert!(is_stock() || log.lines().any(|line| line.starts_with('W') && line.contains("sandbox")), "{log}");
        sandbox.kill().and_then(|()| sandbox.wait()).expect("an end");
    });
}

/// A gofer that holds one end of a pipe as its ring, and the other end.
fn with_ring(subject: &Subject) -> (Launched, OwnedFd) {
    let (ours, ring) = rustix::pipe::pipe().expect("a pipe");
    (subject.started(subject.launcher(&subject.bundle()).pin_ring(ring)), ours)
}

/// Whether the other end is still open after that time; returns early if not.
fn is_held(pipe: &OwnedFd, time: Duration) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
    let time = Timespec::try_from(time).expect("a short time");
    rustix::io::retry_on_intr(|| poll(&mut polled, Some(&time))).expect("a poll") == 0
}

fn sleeping() -> Child {
    Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep(1)")
}

fn pidfd(process: &Child) -> OwnedFd {
    let pid = Pid::from_raw(process.id().cast_signed()).expect("a process");
    pidfd_open(pid, PidfdFlags::empty()).expect("a descriptor")
}

/// As `runsc` sends the sandbox's: one byte with it.
fn send(socket: &OwnedFd, fd: BorrowedFd<'_>) {
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(socket, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL).expect("it is sent");
}
