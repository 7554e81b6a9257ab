//! Garbage where the two sides of a channel agree: the state, the length, the greeting.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use gofer_integration::hostile::SHUT_DOWN;
use gofer_integration::wait::PATIENCE;
use gofer_integration::{Ask, Exchange, HostileChannel, Served, eventually, nothing, over_both};
use gofer_protocol::Mid;
use gofer_protocol::transport::flipcall::Word;

/// Everything that a client can do wrong, by name, each to a channel that has shaken hands.
const WRONGS: [(&str, Wrong); 8] = [
    ("a length of 0", |channel| channel.pass(0)),
    ("a length of 1", |channel| channel.pass(1)),
    ("a length of 3", |channel| channel.pass(3)),
    ("a length just beyond the window", |channel| {
        channel.pass(u32::try_from(channel.window.capacity()).expect("a length") + 1);
    }),
    ("a length of 4 GiB less 1", |channel| channel.pass(u32::MAX)),
    ("state 3", |channel| channel.set_state(3)),
    ("state 0xffffffff", |channel| channel.set_state(u32::MAX)),
    ("the state of a channel that is shut down", |channel| channel.set_state(SHUT_DOWN)),
];

type Wrong = fn(&HostileChannel);

/// Threat: garbage connState, dataLen. Abnormal input: dataLen 0; dataLen 1-3; dataLen beyond dataCap; connState set to
/// garbage.
#[test]
fn garbage_ends_the_channel_wakes_its_client_and_leaves_the_others_alone() {
    for (wrong, do_it) in WRONGS {
        let served = Served::new();
        let other = served.client.on_channel();
        let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
        do_it(&channel);
        assert_eq!(wait_for_the_end(&channel), SHUT_DOWN, "{wrong}");
        assert!(eventually(|| served.gofer.channel_threads() == 1), "{wrong}: the channel is still served");
        // For good: nothing brings it back.
        channel.write(4, &served.root.0.to_le_bytes());
        channel.pass(12);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(channel.window.data_len(), 12, "{wrong}: the channel answers again");
        for client in [&served.client as &dyn Exchange, &other] {
            assert!(client.fstat(served.root).is_ok(), "{wrong}: the other ways to ask are gone too");
        }
        assert!(served.client.channel().is_ok(), "{wrong}: no new channel");
    }
}

fn wait_for_the_end(channel: &HostileChannel) -> u32 {
    let state = channel.window.state().load(SeqCst);
    if state == SHUT_DOWN { state } else { channel.wait_while(state) }
}

/// Threat: garbage handshake.
#[test]
fn a_bad_greeting_ends_the_channel_and_wakes_its_client() {
    let greetings: [(&[u8], u32); 8] = [
        (b"", 0),
        (b"[]\n", 3),
        (b"1", 1),
        (b"{", 1),
        (b"\"{}\"", 4),
        (b"\0\0\0\0", 4),
        (b"{}\n", u32::MAX),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", 8),
    ];
    for (greeting, length) in greetings {
        let served = Served::new();
        let other = served.client.on_channel();
        let channel = HostileChannel::new(served.client.channel().expect("a channel"));
        channel.write(0, greeting);
        channel.pass(length);
        assert_eq!(channel.wait(), SHUT_DOWN, "{:?}", greeting.escape_ascii());
        assert!(other.fstat(served.root).is_ok());
        assert!(served.client.fstat(served.root).is_ok());
    }
}

/// Threat: garbage handshake; objects nested deeper than a stack is.
#[test]
fn a_greeting_nested_without_end_is_refused_without_harm() {
    let served = Served::new();
    for bracket in [&b"{\"a\":"[..], b"["] {
        let channel = HostileChannel::new(served.client.channel().expect("a channel"));
        let greeting = bracket.repeat(channel.window.capacity() / bracket.len());
        channel.write(0, &greeting);
        channel.pass(u32::try_from(greeting.len()).expect("a length"));
        assert_eq!(channel.wait(), SHUT_DOWN);
    }
    assert!(served.client.fstat(served.root).is_ok());
}

/// Threat: garbage connState, while a request runs: the reply finds the state changed.
#[test]
fn a_state_that_changes_during_a_request_ends_the_channel() {
    for garbage in [0, 3, u32::MAX] {
        let served = Served::new();
        let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
        channel.send(Mid::FSTAT.0, &served.root.0.to_le_bytes());
        channel.set_state(garbage);
        // The server either had answered already, or met the garbage.
        let ended = eventually(|| {
            // Whoever takes the turn back all the time may find it given back to it. The end is left as it is: the
            // server says it once.
            let state = channel.window.state();
            let was = state.fetch_update(SeqCst, SeqCst, |state| (state != SHUT_DOWN).then_some(3));
            channel.window.wake_all();
            was == Err(SHUT_DOWN)
        });
        assert!(ended, "state {garbage}");
        assert!(served.client.fstat(served.root).is_ok());
    }
}

/// Threat: garbage connState; a thousand sleepers that take the wake-ups.
#[test]
fn parked_sleepers_do_not_keep_a_connection_from_closing() {
    let served = Served::new();
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    let windows: Vec<_> = (0..64).map(|_| channel.offer.window()).collect();
    let parked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for window in &windows {
            let parked = &parked;
            scope.spawn(move || {
                parked.fetch_add(1, SeqCst);
                while window.state().load(SeqCst) == 0 {
                    window.sleep(0, Some(PATIENCE)).expect("a futex");
                }
            });
        }
        assert!(eventually(|| parked.load(SeqCst) == windows.len()));
        let Served { client, mut gofer, .. } = served;
        drop(client);
        // It serves one client, so it ends with it.
        let gone = eventually(|| !gofer.is_alive());
        // Lets the sleepers go where the server did not.
        channel.set_state(SHUT_DOWN);
        assert!(gone, "the server waits for a thread that nobody woke");
    });
}

/// Abnormal input: dataLen from the largest message to dataCap.
#[test]
fn a_datagram_longer_than_any_message_is_eio_and_the_channel_lives() {
    let served = Served::new();
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    let capacity = channel.window.capacity();
    for len in [2_093_061, capacity - 1, capacity] {
        let (mid, errno) = channel.exchange(Mid::FSTAT.0, &vec![0; len - 4]).expect("an answer");
        assert_eq!((mid, errno), (0, 5_u32.to_le_bytes().to_vec()), "{len} bytes");
    }
    let (mid, _) = channel.exchange(Mid::FSTAT.0, &served.root.0.to_le_bytes()).expect("an answer");
    assert_eq!(mid, Mid::FSTAT.0);
}

/// Abnormal input: short payloads and unknown numbers, the same over both.
#[test]
fn short_payloads_and_unknown_numbers_get_an_error_and_nothing_else_happens() {
    over_both(&[], nothing, |t| {
        for mid in 3..=33 {
            // One byte of each layout is missing at least: none is empty.
            let expected = if mid == 20 { 95 } else { 5 };
            assert_eq!(t.client.exchange(mid, &[]).map_err(|errno| errno.raw()).err(), Some(expected), "MID {mid}");
        }
        for mid in [0, 20, 34, 255, 256, 4711, u16::MAX] {
            assert_eq!(t.client.exchange(mid, &[0; 64]).map_err(|errno| errno.raw()).err(), Some(95), "MID {mid}");
        }
        assert!(t.client.fstat(t.root).is_ok());
    });
}
