//! The server dies, or one of its channels does.

use std::error::Error as _;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use gofer_protocol::client::{Client, Error, ErrorKind, Options};
use gofer_protocol::record::Statx;
use gofer_protocol::transport::Ended;
use gofer_protocol::{Errno, FdId, Mid};

use crate::peer::{OVER_CHANNEL, OVER_SOCKET, Peer, with_script};

/// Far longer than it takes to notice, and shorter than a nap of a channel.
const PROMPTLY: Duration = Duration::from_secs(5);

fn lost(error: &Error) {
    assert_eq!(error.errno(), Errno::EIO, "{error}");
    assert_eq!(error.kind(), &ErrorKind::Connection(Ended::Closed), "{error}");
    let cause = error.source().unwrap();
    assert_eq!(cause.downcast_ref::<Ended>(), Some(&Ended::Closed));
}

/// The server is another process, so that its death cleans nothing up but what the kernel does.
fn a_call_fails_promptly_when_the_server_is_killed(options: &Options) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut ready, tell_ready) = UnixStream::pair().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client::death::is_the_server_that_is_killed"])
        .env(CHANNELS, options.channels.to_string())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::from(std::os::fd::OwnedFd::from(tell_ready)))
        .spawn()
        .unwrap();
    let client = Client::over(ours, options).unwrap();
    assert_eq!(client.channels(), options.channels);

    let callers: Vec<_> = (0..4)
        .map(|number| {
            let client = client.clone();
            thread::spawn(move || client.fstat(FdId(number)).unwrap_err())
        })
        .collect();
    // The server has a request, stops, and is killed: it has no chance to do anything about it.
    ready.read_exact(&mut [0]).unwrap();
    let killed = Instant::now();
    server.kill().unwrap();
    server.wait().unwrap();
    for caller in callers {
        lost(&caller.join().unwrap());
    }
    lost(&client.fstat(FdId(1)).unwrap_err());
    lost(&client.pread(FdId(1), 0, &mut [0; 10]).unwrap_err());
    assert!(killed.elapsed() < PROMPTLY);
    assert!(!client.is_alive());
}

const CHANNELS: &str = "SCRIPTED_SERVER_CHANNELS";

#[test]
fn a_call_over_the_socket_fails_promptly_when_the_server_is_killed() {
    a_call_fails_promptly_when_the_server_is_killed(&OVER_SOCKET);
}

#[test]
fn a_call_over_a_channel_fails_promptly_when_the_server_is_killed() {
    a_call_fails_promptly_when_the_server_is_killed(&OVER_CHANNEL);
}

/// Not a test of its own: the process that the two above start.
#[test]
fn is_the_server_that_is_killed() {
    let Ok(channels) = std::env::var(CHANNELS) else { return };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let mut peer = Peer::new(socket.into());
    peer.mount();
    let channels: Vec<_> = (0..channels.parse().unwrap()).map(|_| peer.channel()).collect();
    match channels.first() {
        Some(channel) => assert_eq!(Mid(channel.receive().unwrap().mid), Mid::FSTAT),
        None => assert_eq!(crate::peer::receive(&mut peer.socket).unwrap().0, Mid::FSTAT),
    }
    rustix::io::write(std::io::stderr(), b".").unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP).unwrap();
    unreachable!("nobody wakes this process up but to kill it");
}

#[test]
fn a_server_that_closes_the_connection_in_the_middle_of_a_reply_is_gone() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        use std::io::Write;
        peer.mount();
        crate::peer::receive(&mut peer.socket).unwrap();
        peer.socket.write_all(&[144, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]).unwrap();
    });
    let client = client.unwrap();
    lost(&client.fstat(FdId(1)).unwrap_err());
    lost(&client.fstat(FdId(1)).unwrap_err());
    server.join().unwrap();
}

#[test]
fn bytes_that_are_no_reply_end_the_connection_and_are_the_cause() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        use std::io::Write;
        peer.mount();
        crate::peer::receive(&mut peer.socket).unwrap();
        peer.socket.write_all(&[0, 0, 0, 0, 9, 0, 0, 0, 1]).unwrap();
        assert_eq!(crate::peer::receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    for _ in 0..2 {
        let error = client.close(&[FdId(1)]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Connection(Ended::Broken(_))), "{error}");
        assert!(error.source().unwrap().to_string().contains("bytes behind a reply"));
    }
    server.join().unwrap();
}

#[test]
fn a_channel_that_breaks_is_not_used_again_and_the_socket_is() {
    type Break = fn(&gofer_protocol::transport::channel::ServerChannel);
    let breaks: [(Break, Ended); 4] = [
        (|channel| channel.shut_down(), Ended::Closed),
        // A length beyond the window, a length below the header, a state that there is not.
        (|channel| announce(channel, u32::MAX), BROKEN),
        (|channel| announce(channel, 3), BROKEN),
        (
            |channel| {
                channel.window().state().store(0x5a5a, Ordering::SeqCst);
                wake(channel);
            },
            BROKEN,
        ),
    ];
    for (breaking, cause) in breaks {
        let (client, server) = with_script(&OVER_CHANNEL, move |mut peer| {
            peer.mount();
            let channel = peer.channel();
            channel.receive().unwrap();
            breaking(&channel);
            for _ in 0..2 {
                peer.answer(Mid::FSTAT, &Statx::default());
            }
        });
        let client = client.unwrap();
        let error = client.fstat(FdId(1)).unwrap_err();
        assert_eq!((error.errno(), error.kind()), (Errno::EIO, &ErrorKind::Connection(cause)));
        assert_eq!(client.channels(), 0);
        assert!(client.is_alive());
        for _ in 0..2 {
            client.fstat(FdId(1)).unwrap();
        }
        server.join().unwrap();
    }
}

const BROKEN: Ended = Ended::Broken("channel state or datagram");

fn announce(channel: &gofer_protocol::transport::channel::ServerChannel, data_len: u32) {
    channel.window().set_data_len(data_len);
    channel.window().state().store(0, Ordering::SeqCst);
    wake(channel);
}

fn wake(channel: &gofer_protocol::transport::channel::ServerChannel) {
    let state = channel.window().state();
    rustix::thread::futex::wake(state, rustix::thread::futex::Flags::empty(), 1).unwrap();
}
