//! A client that has the kernel move the server's sleeping threads to where no wake-up of the server finds them.

use std::sync::atomic::AtomicU32;

use gofer_integration::{Ask, Served, eventually};
use rustix::thread::futex;

/// Threat: garbage in a channel's state; here in the futex that belongs to it.
#[test]
fn threads_that_a_client_moved_to_another_futex_end_with_its_connection() {
    let Served { client, mut gofer, .. } = Served::new();
    let elsewhere = AtomicU32::new(0);
    let none = futex::Flags::empty();
    let mut windows = Vec::new();
    for _ in 0..4 {
        let offer = client.channel().expect("a channel");
        let window = offer.window();
        // Once the thread sleeps: 1 is moved, and none is woken.
        assert!(eventually(|| futex::requeue(window.state(), none, 0, 1, &elsewhere) == Ok(1)));
        windows.push((offer, window));
    }
    drop(client);
    assert!(eventually(|| !gofer.is_alive()), "the server waits for threads that sleep for ever");
    assert_eq!(gofer.child().wait().expect("it ended").code(), Some(0));
    assert_eq!(futex::wake(&elsewhere, none, 1), Ok(0), "no one is left there");
}
