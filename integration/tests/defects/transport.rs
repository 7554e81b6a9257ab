//! D12, D14, D16: sockets and channels in bad hands.

use std::io::Write;

use gofer_integration::hostile::SHUT_DOWN;
use gofer_integration::{Ask, HostileChannel, Listening, encoded, eventually, nothing};
use gofer_protocol::Mid;
use gofer_protocol::message::OpenAtRequest;

/// Defect D12: a client that never reads its descriptor sockets, and then closes the connection.
#[test]
fn a_connection_closes_though_its_descriptor_sockets_are_full() {
    let listening = Listening::with(&[], |dir| std::fs::write(dir.join("f"), "").expect("a file"));
    let baseline = listening.gofer.descriptors().len();
    let (client, root) = listening.client();
    let file = client.walk_to(root, "f");
    let channels: Vec<_> = (0..4).map(|_| HostileChannel::greeted(client.channel().expect("a channel"))).collect();
    for channel in &channels {
        let request = encoded(&OpenAtRequest { fd: file, flags: 0 });
        for _ in 0..500 {
            let (mid, _) = channel.exchange(Mid::OPEN_AT.0, &request).expect("an answer");
            assert_eq!(mid, Mid::OPEN_AT.0);
        }
        assert_eq!(channel.header()[2], 0, "the queue is full, and the reply says that nothing was sent");
    }
    drop(client);
    // The windows and the descriptor sockets are still in the client's hands.
    listening.gofer.assert_descriptors(baseline, "the connection does not close");
    assert!(eventually(|| listening.gofer.threads() == 1), "a thread is left behind");
    assert!(channels.iter().all(|channel| channel.wait() == 0 || channel.wait() == SHUT_DOWN));
}

/// Defect D14: a payload is read before its size is checked; with 32-bit arithmetic.
#[test]
fn a_length_that_overflows_with_its_header_is_not_the_end_of_the_process() {
    let listening = Listening::with(&[], nothing);
    let before = listening.gofer.anonymous_kib();
    for len in (0xffff_fff0..=u32::MAX).chain([2_093_057, 0x8000_0000]) {
        for mid in [Mid::FSTAT, Mid::PWRITE, Mid(4711), Mid(0)] {
            let (client, _) = listening.client();
            let frame = [&len.to_le_bytes()[..], &mid.0.to_le_bytes(), &[0; 2], &[0xaa; 64 << 10]].concat();
            (&client.stream).write_all(&frame).expect("the server takes what comes");
        }
    }
    let (client, root) = listening.client();
    assert!(client.fstat(root).is_ok(), "the server lives");
    assert!(listening.gofer.anonymous_kib() < before + 4096);
}

/// Defect D16: whatever goes wrong on a channel, its client is woken, and the connection lives.
#[test]
fn a_client_asleep_on_a_channel_that_ends_is_woken() {
    type Wrong = fn(&HostileChannel);
    let wrongs: [(&str, bool, Wrong); 7] = [
        ("an empty greeting", false, |channel| channel.pass(0)),
        ("a greeting that is an array", false, |channel| {
            channel.write(0, b"[]");
            channel.pass(2);
        }),
        ("a greeting that is cut off", false, |channel| {
            channel.write(0, b"{\"a\":");
            channel.pass(5);
        }),
        ("a greeting beyond the window", false, |channel| channel.pass(u32::MAX)),
        ("an empty datagram", true, |channel| channel.pass(0)),
        ("a datagram shorter than its header", true, |channel| channel.pass(3)),
        ("a datagram beyond the window", true, |channel| channel.pass(2_097_137)),
    ];
    let listening = Listening::with(&[], nothing);
    for (wrong, greeted, do_it) in wrongs {
        let (client, root) = listening.client();
        let offer = client.channel().expect("a channel");
        let channel = if greeted { HostileChannel::greeted(offer) } else { HostileChannel::new(offer) };
        do_it(&channel);
        assert_eq!(channel.wait(), SHUT_DOWN, "{wrong}");
        assert!(client.fstat(root).is_ok(), "{wrong}");
    }
    assert!(eventually(|| listening.gofer.threads() == 1), "threads of ended channels are left behind");
}

/// Defect D16: the end of the connection wakes a client that is asleep on a channel of it.
#[test]
fn every_window_says_so_when_its_connection_is_closed() {
    let listening = Listening::with(&[], nothing);
    let (client, _) = listening.client();
    let channels: Vec<_> = (0..4).map(|_| HostileChannel::greeted(client.channel().expect("a channel"))).collect();
    drop(client);
    for channel in channels {
        assert_eq!(channel.wait_while(0), SHUT_DOWN);
    }
}
