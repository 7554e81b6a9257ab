//! Channels over real memory: two sides, one of which may lie.
#![cfg(not(loom))]

use std::{
    fs::File,
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, MetadataExt},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use gofer_protocol::transport::{
    channel::{ClientChannel, ConnectError, Offer, ReplyError, Request, RequestError, ServerChannel},
    fd_socket::{self, FdReceiver},
    flipcall::{Ended, Endpoint, Role},
    memory::WindowAllocator,
    window::Window,
};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags},
    thread::futex,
};

#[test]
fn requests_are_answered_and_carry_descriptors() {
    let (server, client) = connected(|server| {
        let mut payload = Vec::new();
        loop {
            let request = match server.receive() {
                Ok(request) => request,
                Err(ended) => return assert_eq!(ended, Ended::ShutDown),
            };
            payload.clear();
            server.append_payload_to(0, request.payload_len, &mut payload).unwrap();
            payload.reverse();
            let donated: Vec<_> = (0..request.mid % 3).map(|_| some_fd()).collect();
            server.reply(request.mid, &payload, donated).unwrap();
        }
    });
    for round in 0..5000_u16 {
        let [low, high] = round.to_le_bytes();
        let reply = client.request(round, &[&[low, high], b"abc"]).unwrap();
        assert_eq!((reply.mid, u16::from(reply.num_fds), reply.payload_len), (round, round % 3, 5));
        let mut fds = [None, None];
        client.receive_fds(&reply, &mut fds);
        assert_eq!(fds.iter().flatten().count(), usize::from(round % 3));
        let mut payload = Vec::new();
        client.append_payload_to(0, reply.payload_len, &mut payload).unwrap();
        assert_eq!(payload, [b'c', b'b', b'a', high, low]);
    }
    client.shut_down();
    server.join();
    assert_eq!(client.request(1, &[]), Err(RequestError::Ended(Ended::ShutDown)));
}

#[test]
fn file_data_goes_straight_from_and_to_the_window() {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(b"old data", 0).unwrap();
    let theirs = file.try_clone().unwrap();
    let (server, client) = connected(move |server| {
        let write = server.receive().unwrap();
        assert_eq!(write, Request { mid: 11, payload_len: 24 });
        assert_eq!(server.payload_to_file(&theirs, 20, 4, 4), Ok(4));
        server.reply(11, &4_u64.to_le_bytes(), []).unwrap();

        server.receive().unwrap();
        let count = server.payload_from_file(&theirs, 8, 100, 0).unwrap();
        server.write_payload(0, &(count as u64).to_le_bytes()).unwrap();
        server.reply_in_place(12, 8 + count, []).unwrap();
    });
    client.request(11, &[&[0; 20], b"dent"]).unwrap();
    let reply = client.request(12, &[]).unwrap();
    let mut payload = Vec::new();
    client.append_payload_to(8, reply.payload_len - 8, &mut payload).unwrap();
    assert_eq!(payload, b"old dent");
    server.join();
}

#[test]
fn a_reply_that_does_not_fit_can_be_replaced() {
    let (server, client) = connected(|server| {
        server.receive().unwrap();
        let max = server.max_payload();
        assert_eq!(server.reply(1, &vec![0; max + 1], [some_fd()]), Err(ReplyError::TooLong));
        assert_eq!(server.reply_in_place(1, usize::MAX, [some_fd()]), Err(ReplyError::TooLong));
        server.reply(0, &5_u32.to_le_bytes(), []).unwrap();
        server.receive().unwrap();
        server.reply(2, &vec![7; max], []).unwrap();
    });
    let reply = client.request(1, &[]).unwrap();
    assert_eq!((reply.mid, reply.num_fds, reply.payload_len), (0, 0, 4));
    let too_long = vec![0; client.max_payload() + 1];
    assert_eq!(client.request(1, &[&too_long]), Err(RequestError::TooLong));
    assert_eq!(client.request(2, &[]).unwrap().payload_len, client.max_payload());
    server.join();
}

#[test]
fn a_message_beyond_the_limit_but_inside_the_window_is_delivered() {
    let (server, raw) = served(ServerChannel::receive);
    raw.shake_hands();
    raw.send(&vec![0; raw.window().capacity()]);
    let request = server.join().unwrap();
    assert_eq!(request.payload_len, usize::try_from(MAX).unwrap() + 4076);
}

#[test]
fn an_object_or_null_is_a_good_handshake_whatever_follows() {
    for greeting in ["{}\n", "{}", "null", "  {\"version\":[1,2]} ", "{}garbage", "{}{", "null and void"] {
        let (server, raw) = served(ServerChannel::receive);
        raw.send(greeting.as_bytes());
        raw.wait().unwrap();
        assert_eq!(raw.datagram(), b"{}\n", "after {greeting:?}");
        raw.send(&[3, 0, 0, 0]);
        assert_eq!(server.join(), Ok(Request { mid: 3, payload_len: 0 }));
    }
}

#[test]
fn a_bad_handshake_shuts_the_channel_down_and_wakes_the_client() {
    let endless = format!("{{\"a\":\"{}", "a".repeat(6000));
    for greeting in ["", "[]", "[{}]", "7", "\"{}\"", "true", "{", "{\"a\":", "nul", "\n", "\0", "}{", &endless] {
        let (server, raw) = served(ServerChannel::receive);
        raw.send(greeting.as_bytes());
        assert_eq!(raw.wait(), Err(Ended::ShutDown), "after {greeting:?}");
        assert_eq!(server.join(), Err(Ended::Protocol));
    }
}

#[test]
fn an_oversized_handshake_shuts_the_channel_down() {
    let (server, raw) = served(ServerChannel::receive);
    raw.send_with_len(b"{}\n", u32::MAX);
    assert_eq!(raw.wait(), Err(Ended::ShutDown));
    assert_eq!(server.join(), Err(Ended::Protocol));
}

#[test]
fn a_length_that_cannot_be_shuts_the_channel_down_and_wakes_the_client() {
    let capacity = u32::try_from(raw_channel().1.window().capacity()).unwrap();
    for length in [0, 1, 2, 3, capacity + 1, u32::MAX - 3, u32::MAX] {
        let (server, raw) = served(ServerChannel::receive);
        raw.shake_hands();
        raw.send_with_len(&[3, 0, 0, 0], length);
        assert_eq!(raw.wait(), Err(Ended::ShutDown), "for length {length}");
        assert_eq!(server.join(), Err(Ended::Protocol));
        assert_eq!(raw.window().state().load(Ordering::Relaxed), 2);
    }
}

#[test]
fn garbage_in_the_state_shuts_the_channel_down_and_wakes_the_client() {
    for garbage in [3, 7, u32::MAX] {
        let (server, raw) = served(ServerChannel::receive);
        raw.shake_hands();
        let raw = Arc::new(raw);
        let waiting = thread::spawn({
            let raw = Arc::clone(&raw);
            // An honest thread of the client, which shares the word with one that went wrong.
            move || while futex::wait(raw.window().state(), futex::Flags::empty(), garbage, None).is_ok() {}
        });
        raw.window().state().store(garbage, Ordering::SeqCst);
        futex::wake(raw.window().state(), futex::Flags::empty(), 1).unwrap();
        // The wake-up may have gone to the other sleeper. The server looks again when it is woken itself.
        while raw.window().state().load(Ordering::SeqCst) != 2 {
            futex::wake(raw.window().state(), futex::Flags::empty(), u32::MAX >> 1).unwrap();
            thread::yield_now();
        }
        assert_eq!(server.join(), Err(Ended::Protocol));
        waiting.join().unwrap();
        assert_eq!(raw.wait(), Err(Ended::ShutDown));
    }
}

#[test]
fn garbage_in_the_state_while_the_server_is_active_ends_it() {
    let (server, raw) = served(|server| {
        let request = server.receive().unwrap();
        server.window().state().store(9, Ordering::SeqCst);
        server.reply(request.mid, &[], [])
    });
    raw.shake_hands();
    raw.send(&[3, 0, 0, 0]);
    assert!(raw.wait().is_err());
    assert_eq!(server.join(), Err(ReplyError::Ended(Ended::Protocol)));
    assert_eq!(raw.window().state().load(Ordering::Relaxed), 2);
}

#[test]
fn descriptors_announced_in_a_request_are_never_received() {
    let (server, raw) = served(|server| {
        server.receive().unwrap();
        server.reply(3, &[], [some_fd()]).unwrap();
        server.receive()
    });
    raw.shake_hands();
    for _ in 0..3 {
        rustix::net::send(&raw.fd_socket, b"smuggled", SendFlags::NOSIGNAL).unwrap();
    }
    raw.send(&[3, 0, 3, 0]);
    raw.wait().unwrap();
    assert_eq!(raw.datagram(), [3, 0, 1, 0]);
    let receiver = FdReceiver::new(raw.fd_socket.try_clone().unwrap());
    let mut fds = [None, None, None];
    receiver.receive(1, &mut fds);
    assert_eq!(fds.iter().flatten().count(), 1);
    raw.endpoint.shut_down();
    assert_eq!(server.join(), Err(Ended::ShutDown));
}

#[test]
fn a_client_that_never_reads_its_descriptors_does_not_block_the_server() {
    let (server, raw) = served(|server| {
        while let Ok(request) = server.receive() {
            server.reply(request.mid, &[], [some_fd(), some_fd()]).unwrap();
        }
    });
    raw.shake_hands();
    let mut announced = Vec::new();
    while announced.last() != Some(&0) {
        raw.send(&[3, 0, 0, 0]);
        raw.wait().unwrap();
        announced.push(raw.datagram()[2]);
        assert!(announced.len() < 100_000, "the socket never fills");
    }
    assert_eq!(announced.first(), Some(&2));
    let queued: u32 = announced.iter().map(|&count| u32::from(count)).sum();
    let received = (0..).map_while(|_| raw.receive_packet()).count();
    assert_eq!(received, usize::try_from(queued).unwrap(), "every descriptor that was announced is there");
    raw.endpoint.shut_down();
    server.join();
}

#[test]
fn missing_descriptors_are_none_and_surplus_ones_are_closed() {
    let (sender, socket) = fd_socket::pair().unwrap();
    let receiver = FdReceiver::new(socket);
    let mut fds = [None, None];
    let (pipe, kept) = rustix::pipe::pipe().unwrap();
    assert_eq!(sender.send([kept]), 1);
    receiver.receive(2, &mut fds);
    assert!(matches!(fds, [Some(_), None]));

    // Six for two places: the other four are closed, so that the pipe ends when these are.
    let writer = fds[0].take().unwrap();
    assert_eq!(sender.send((0..6).map(|_| writer.try_clone().unwrap()).collect::<Vec<_>>()), 6);
    receiver.receive(6, &mut fds);
    assert!(matches!(fds, [Some(_), Some(_)]));
    drop((writer, fds));
    assert_eq!(rustix::io::read(&pipe, &mut [0; 1]), Ok(0));

    drop(receiver);
    assert_eq!(sender.send([some_fd()]), 0, "without a signal");
    let too_many: Vec<_> = (0..256).map(|_| some_fd()).collect();
    assert_eq!(fd_socket::pair().unwrap().0.send(too_many), 0);
}

#[test]
fn received_descriptors_are_closed_on_exec() {
    let (sender, socket) = fd_socket::pair().unwrap();
    sender.send([some_fd()]);
    let mut fds = [None];
    FdReceiver::new(socket).receive(1, &mut fds);
    let flags = rustix::io::fcntl_getfd(fds[0].as_ref().unwrap()).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn the_server_shuts_down_from_another_thread() {
    let (channel, raw) = raw_channel();
    let server = Arc::new(channel);
    let serving = thread::spawn({
        let server = Arc::clone(&server);
        move || server.receive()
    });
    let waiting = thread::spawn(move || {
        raw.shake_hands();
        raw.send(&[3, 0, 0, 0]);
        raw.wait()
    });
    assert!(serving.join().unwrap().is_ok());
    server.shut_down();
    assert_eq!(waiting.join().unwrap(), Err(Ended::ShutDown));
    assert_eq!(server.receive(), Err(Ended::ShutDown));
}

#[test]
fn a_dropped_side_wakes_the_other() {
    let (channel, raw) = raw_channel();
    raw.send(b"{}");
    let waiting = thread::spawn(move || raw.wait());
    drop(channel);
    assert_eq!(waiting.join().unwrap(), Err(Ended::ShutDown));

    let (server, client) = connected(|server| assert_eq!(server.receive(), Err(Ended::ShutDown)));
    drop(client);
    server.join();
}

#[test]
fn a_client_that_hammers_the_state_cannot_keep_the_server_from_ending() {
    let (channel, raw) = raw_channel();
    let server = Arc::new(channel);
    let stop = Arc::new(AtomicBool::new(false));
    let hammer = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            // Always back to asleep, or always the server's turn again.
            for value in [0, 1].into_iter().cycle() {
                raw.window().set_data_len(4);
                raw.window().state().store(value, Ordering::SeqCst);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    });
    let serving = thread::spawn({
        let server = Arc::clone(&server);
        move || while server.receive().and_then(|_| server.reply(3, &[], []).map_err(|_| Ended::ShutDown)).is_ok() {}
    });
    thread::sleep(Duration::from_millis(20));
    server.shut_down();
    serving.join().unwrap();
    stop.store(true, Ordering::Relaxed);
    hammer.join().unwrap();
}

#[test]
fn a_sleeper_that_the_client_moves_to_another_word_is_not_forgotten() {
    let (channel, raw) = raw_channel();
    let server = Arc::new(channel);
    let serving = thread::spawn({
        let server = Arc::clone(&server);
        move || server.receive()
    });
    let elsewhere = AtomicU32::new(0);
    let none = futex::Flags::empty();
    while futex::requeue(raw.window().state(), none, 0, 1, &elsewhere) == Ok(0) {
        thread::yield_now();
    }
    // No wake-up reaches it, and that is said; who serves the client interrupts the thread then.
    for _ in 0..10 {
        assert!(!server.try_shut_down());
    }
    assert_eq!(futex::wake(&elsewhere, none, 1), Ok(1));
    server.shut_down();
    assert_eq!(serving.join().unwrap(), Err(Ended::ShutDown));
}

#[test]
fn a_client_that_lies_about_itself_is_not_believed_and_neither_is_a_server() {
    for reply in ["", "[]", "null", "{", "5"] {
        let (server, offer) = raw_server();
        let client = connect_in_thread(offer);
        server.wait().unwrap();
        assert_eq!(server.datagram(), b"{}\n");
        server.send(reply.as_bytes());
        assert_eq!(client.join().unwrap().unwrap_err(), ConnectError::Ended(Ended::Protocol), "after {reply:?}");
        assert_eq!(server.wait(), Err(Ended::ShutDown));
    }
    let capacity = 8192 - 16;
    for length in [0, 3, capacity + 1, u32::MAX] {
        let (server, offer) = raw_server();
        let client = connect_in_thread(offer);
        server.wait().unwrap();
        server.send(b"{}");
        let client = client.join().unwrap().unwrap();
        let asking = thread::spawn(move || client.request(3, &[]));
        server.wait().unwrap();
        server.send_with_len(&[3, 0, 0, 0], length);
        assert_eq!(asking.join().unwrap(), Err(RequestError::Ended(Ended::Protocol)), "for length {length}");
    }
}

#[test]
fn idle_memory_is_released_only_after_long_messages() {
    let (channel, raw) = raw_channel();
    let memory = raw.memory.try_clone().unwrap();
    let server = Serving::start(channel, move |channel| {
        channel.receive().unwrap();
        channel.reply(3, &vec![1; channel.max_payload()], []).unwrap();
        channel.receive().unwrap();
        assert_eq!(channel.touched(), channel.max_payload() + 4);
        channel.release_idle(100).unwrap();
        channel.release_idle(100).unwrap();
        let charged = memory.metadata().unwrap().blocks() * 512;
        channel.reply(3, &[], []).unwrap();
        charged
    });
    raw.shake_hands();
    raw.send(&[3, 0, 0, 0]);
    raw.wait().unwrap();
    raw.send(&[3, 0, 0, 0]);
    raw.wait().unwrap();
    assert_eq!(server.join(), 4096);
}

#[test]
fn both_ends_of_the_offer_are_non_blocking_and_the_server_takes_no_data() {
    let (_channel, raw) = raw_channel();
    let flags = rustix::fs::fcntl_getfl(&raw.fd_socket).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    assert_eq!(rustix::net::recv(&raw.fd_socket, &mut [0; 1], RecvFlags::empty()), Err(Errno::AGAIN));
}

#[test]
fn windows_match_the_recorded_bytes() {
    let (channel, raw) = raw_channel();
    raw.prepare(b"{}\n", 3);
    assert_eq!(raw.image(19), vector("window_handshake_request_before_flip"));
    raw.endpoint.pass().unwrap();
    assert_eq!(raw.image(19), vector("window_handshake_request_after_flip"));
    drop((channel, raw));

    let (channel, raw) = raw_channel();
    let memory = raw.memory.try_clone().unwrap();
    let client = thread::spawn(move || {
        let client = ClientChannel::connect(&raw.memory, 0, raw.length, raw.fd_socket).unwrap();
        client.request(3, &[&7_u64.to_le_bytes()]).unwrap();
        let reply = client.request(7, &[]).unwrap();
        assert_eq!(image(&raw.memory, 28), vector("window_openat_response_one_fd_after_flip"));
        let mut fds = [None];
        client.receive_fds(&reply, &mut fds);
        assert!(fds[0].is_some());
        client.request(7, &[]).unwrap();
        assert_eq!(image(&raw.memory, 24), vector("window_error_enoent_after_flip"));
    });
    assert_eq!(channel.receive(), Ok(Request { mid: 3, payload_len: 8 }));
    assert_eq!(image(&memory, 28), vector("window_fstat_request_after_flip"));
    channel.reply(3, &[], []).unwrap();
    channel.receive().unwrap();
    channel.reply(7, &9_u64.to_le_bytes(), [some_fd()]).unwrap();
    channel.receive().unwrap();
    channel.reply(0, &2_u32.to_le_bytes(), []).unwrap();
    client.join().unwrap();
}

/// One side without a conscience: the bare window and word.
struct Raw {
    endpoint: Endpoint<Window>,
    memory: File,
    length: u64,
    fd_socket: OwnedFd,
}

impl Raw {
    fn window(&self) -> &Window {
        self.endpoint.word()
    }

    fn prepare(&self, datagram: &[u8], length: u32) {
        self.window().copy_in(0, datagram).unwrap();
        self.window().set_data_len(length);
    }

    fn send_with_len(&self, datagram: &[u8], length: u32) {
        self.prepare(datagram, length);
        self.endpoint.hand_over().unwrap();
    }

    fn send(&self, datagram: &[u8]) {
        self.send_with_len(datagram, u32::try_from(datagram.len()).unwrap());
    }

    fn wait(&self) -> Result<(), Ended> {
        self.endpoint.wait()
    }

    fn shake_hands(&self) {
        self.send(b"{}\n");
        self.wait().unwrap();
        assert_eq!(self.datagram(), b"{}\n");
    }

    fn datagram(&self) -> Vec<u8> {
        let mut datagram = Vec::new();
        let length = usize::try_from(self.window().data_len()).unwrap();
        self.window().append_to(0, length, &mut datagram).unwrap();
        datagram
    }

    fn image(&self, length: usize) -> Vec<u8> {
        image(&self.memory, length)
    }

    /// Takes one packet off the descriptor socket, with or without its descriptor.
    fn receive_packet(&self) -> Option<()> {
        rustix::net::recv(&self.fd_socket, &mut [0; 1], RecvFlags::empty()).ok().map(|_| ())
    }
}

fn image(memory: &File, length: usize) -> Vec<u8> {
    let mut image = vec![0; length];
    memory.read_exact_at(&mut image, 0).unwrap();
    image
}

/// A server, and the bare client's side of its channel.
fn raw_channel() -> (ServerChannel, Raw) {
    let (channel, offer) = ServerChannel::open(&mut WindowAllocator::new(MAX)).unwrap();
    let Offer { data_offset, data_length: length, donated: [memory, fd_socket] } = offer;
    let window = Window::map(&memory, data_offset, length).unwrap();
    (channel, Raw { endpoint: Endpoint::new(window, Role::Client), memory: File::from(memory), length, fd_socket })
}

/// A thread that serves a channel, and the bare client's side of it.
fn served<T: Send + 'static>(serve: impl FnOnce(&ServerChannel) -> T + Send + 'static) -> (Serving<T>, Raw) {
    let (channel, raw) = raw_channel();
    (Serving::start(channel, serve), raw)
}

/// A thread that serves a channel, and a client after the handshake.
fn connected<T: Send + 'static>(
    serve: impl FnOnce(&ServerChannel) -> T + Send + 'static,
) -> (Serving<T>, ClientChannel) {
    let (channel, offer) = ServerChannel::open(&mut WindowAllocator::new(MAX)).unwrap();
    let server = Serving::start(channel, serve);
    let [memory, fd_socket] = offer.donated;
    (server, ClientChannel::connect(memory, offer.data_offset, offer.data_length, fd_socket).unwrap())
}

/// A serving thread. The channel stays open after it until it is joined: a last reply is still to be read.
struct Serving<T>(thread::JoinHandle<(ServerChannel, T)>);

impl<T: Send + 'static> Serving<T> {
    fn start(channel: ServerChannel, serve: impl FnOnce(&ServerChannel) -> T + Send + 'static) -> Self {
        Self(thread::spawn(move || {
            let outcome = serve(&channel);
            (channel, outcome)
        }))
    }

    fn join(self) -> T {
        self.0.join().unwrap().1
    }
}

/// The bare server's side of a channel, and what its client needs.
fn raw_server() -> (Raw, Offer) {
    let allocation = WindowAllocator::new(MAX).allocate().unwrap();
    let (_sender, theirs) = fd_socket::pair().unwrap();
    let fd_socket = theirs.try_clone().unwrap();
    let memory = File::from(allocation.memory.try_clone().unwrap());
    let (data_offset, data_length) = (allocation.data_offset, allocation.data_length);
    let endpoint = Endpoint::new(allocation.window, Role::Server);
    let raw = Raw { endpoint, memory, length: data_length, fd_socket };
    (raw, Offer { data_offset, data_length, donated: [allocation.memory, theirs] })
}

fn connect_in_thread(offer: Offer) -> thread::JoinHandle<Result<ClientChannel, ConnectError>> {
    let [memory, fd_socket] = offer.donated;
    thread::spawn(move || ClientChannel::connect(memory, offer.data_offset, offer.data_length, fd_socket))
}

fn some_fd() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn vector(name: &str) -> Vec<u8> {
    let vectors: serde_json::Value = serde_json::from_str(include_str!("vectors/lisafs.json")).unwrap();
    let vector = vectors.as_array().unwrap().iter().find(|vector| vector["name"] == name);
    let hex = vector.unwrap_or_else(|| panic!("no vector {name}"))["hex"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A window of two pages: the limit is far enough from its end to tell the two apart.
const MAX: u32 = 4096;
