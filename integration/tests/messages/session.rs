//! Mount, Channel.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gofer_integration::{Ask, Exchange, Gofer, Listening, Raw, Served, eventually, nothing};
use gofer_protocol::message::{ChannelReply, ChannelRequest, MountReply, MountRequest};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};
use rustix::fs::{OFlags, SealFlags};
use rustix::net::SocketType;

use super::{access, fifo, files, identity, never_waits, node, null_device, socket_file};

/// What donates the mount point.
const DIRECTFS: &[&str] = &["--donate-mount-point"];

const WINDOW: u64 = 2 << 20;

fn client_of(path: &Path, flags: &[&str]) -> (Gofer, Raw) {
    let (gofer, stream) = Gofer::serve(path, flags);
    (gofer, Raw::new(stream))
}

#[test]
fn mount_hands_out_the_root_the_limit_and_the_messages() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_gofer, client) = client_of(dir.path(), &[]);
    let answer = client.ask(&MountRequest).expect("mount");
    assert_eq!(answer.payload.len(), 222);
    assert!(answer.fds.is_empty(), "nothing is donated unless that was asked for");
    let MountReply { root, max_message_size, supported } = answer.decode();
    assert_eq!(root.control_fd, FdId(1), "numbers count from 1");
    assert_eq!(root.stat.mode.file_type(), Some(FileType::Directory));
    assert_eq!(root.stat.ino, dir.path().metadata().expect("metadata").ino());
    assert_eq!(max_message_size, 2_093_056);
    let supported: Vec<u16> = supported.iter().map(|mid| mid.0).collect();
    assert_eq!(supported, (1..=19).chain(21..=33).collect::<Vec<_>>());
}

#[test]
fn whatever_a_mount_request_carries_is_ignored() {
    let served = Served::new();
    let answer = served.client.exchange(1, b"anything").expect("mount");
    assert_eq!(answer.payload.len(), 222);
    let answer = served.client.exchange(2, b"anything").expect("channel");
    assert_eq!(answer.payload.len(), 16);
}

#[test]
fn every_mount_hands_out_another_control_descriptor_on_one_node() {
    let served = Served::with(&[], |dir| files(dir, &["f"]));
    let (second, _) = served.client.mounted().expect("mount");
    assert_ne!(second.control_fd, served.root);
    assert_eq!(second.stat.ino, served.client.fstat(served.root).expect("stat").ino);
    let (from_first, from_second) =
        (served.client.walk_to(served.root, "f"), served.client.walk_to(second.control_fd, "f"));
    // One node for both, so that a removal by way of the first shows through the second.
    served.client.unlink(served.root, "f").expect("unlink");
    let linked = |target| served.client.link(second.control_fd, target, "g").map(drop);
    assert_eq!((linked(from_first), linked(from_second)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    served.client.close(&[served.root]);
    assert_eq!(served.client.fstat(served.root), Err(Errno::EBADF));
    assert!(served.client.fstat(second.control_fd).is_ok());
}

#[test]
fn a_channel_may_come_before_mount_and_carry_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_gofer, client) = client_of(dir.path(), &[]);
    let channel = client.on_channel();
    let (root, donated) = channel.mounted().expect("mount");
    assert!(donated.is_empty());
    assert_eq!(client.fstat(root.control_fd), Ok(root.stat));
}

#[test]
fn mount_points_may_be_anything_but_a_block_device() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    files(dir.path(), &["file"]);
    fifo(&path("fifo"));
    socket_file(&path("socket"));
    null_device(&path("null"));
    node(&path("block"), rustix::fs::FileType::BlockDevice, (7, 0));
    std::os::unix::fs::symlink("file", path("link")).expect("a link");
    for (name, file_type) in [
        ("file", FileType::Regular),
        ("fifo", FileType::Fifo),
        ("socket", FileType::Socket),
        ("null", FileType::CharDevice),
        // The path is the administrator's, so its links are followed.
        ("link", FileType::Regular),
    ] {
        let (_gofer, client) = client_of(&path(name), &[]);
        let (root, _) = client.mounted().unwrap_or_else(|errno| panic!("{name}: {errno:?}"));
        assert_eq!(root.stat.mode.file_type(), Some(file_type), "{name}");
        assert_eq!(client.walk(root.control_fd, &["x"]).map(drop), Err(Errno::ENOTDIR), "{name}");
    }
    let (_gofer, client) = client_of(&path("block"), &[]);
    assert_eq!(client.mounted().map(drop), Err(Errno::EPERM));
    assert_eq!(client.mounted().map(drop), Err(Errno::EPERM), "and the connection lives on");
}

#[test]
fn a_file_as_mount_point_is_opened_like_any_other() {
    let dir = tempfile::tempdir().expect("a directory");
    files(dir.path(), &["file"]);
    let (_gofer, client) = client_of(&dir.path().join("file"), &[]);
    let root = client.mount();
    let (open, donated) = client.open(root, 2).expect("open");
    assert_eq!(donated.len(), 1);
    assert_eq!(client.pread(open, 0, 10), Ok(b"file".to_vec()));
}

#[test]
fn the_mount_point_is_donated_with_every_mount_where_that_is_configured() {
    let served = Served::with(DIRECTFS, |dir| files(dir, &["f"]));
    let channel = served.client.on_channel();
    for client in [&served.client as &dyn Exchange, &channel, &served.client] {
        let (root, donated) = client.mounted().expect("mount");
        let [fd] = <[OwnedFd; 1]>::try_from(donated).expect("one descriptor");
        assert_eq!(access(&fd), OFlags::RDONLY);
        assert!(never_waits(&fd));
        assert_eq!(identity(&fd).1, root.stat.ino);
        // A client works on it by itself.
        let file = rustix::fs::openat(&fd, "f", OFlags::RDONLY, rustix::fs::Mode::empty());
        assert!(file.is_ok());
    }
}

#[test]
fn a_donated_mount_point_that_cannot_be_opened_is_donated_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fifo(&path("fifo"));
    socket_file(&path("socket"));
    for (name, expected) in [("fifo", OFlags::RDONLY), ("socket", OFlags::PATH)] {
        let (_gofer, client) = client_of(&path(name), DIRECTFS);
        let (root, donated) = client.mounted().expect("mount");
        let [fd] = <[OwnedFd; 1]>::try_from(donated).expect("one descriptor");
        assert_eq!(access(&fd), expected, "{name}");
        assert_eq!(identity(&fd).1, root.stat.ino, "{name}");
        assert!(expected == OFlags::PATH || never_waits(&fd), "{name}");
    }
}

#[test]
fn opening_the_root_donates_it_where_that_is_configured_and_no_other_directory() {
    let served = Served::with(DIRECTFS, |dir| std::fs::create_dir(dir.join("d")).expect("a directory"));
    let (second, _) = served.client.mounted().expect("mount");
    for root in [served.root, second.control_fd] {
        let (_, donated) = served.client.open(root, 0).expect("open");
        assert_eq!(donated.iter().map(|fd| identity(fd).1).collect::<Vec<_>>(), [second.stat.ino]);
    }
    let below = served.client.walk_to(served.root, "d");
    let (_, donated) = served.client.open(below, 0).expect("open");
    assert!(donated.is_empty());
}

#[test]
fn opening_a_root_that_is_no_directory_obeys_policy_and_donates() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fifo(&path("fifo"));
    socket_file(&path("socket"));
    let opened = |name: &str, policy: &[&str]| {
        let (_gofer, client) = client_of(&path(name), &[DIRECTFS, policy].concat());
        let (root, _) = client.mounted().expect("mount");
        client.open(root.control_fd, 0).map(|(_, donated)| donated.len())
    };
    assert_eq!(opened("fifo", &[]), Err(Errno::EPERM));
    assert_eq!(opened("fifo", &["--host-fifo=open"]), Ok(1));
    assert_eq!(opened("socket", &[]), Err(Errno::EPERM));
    assert_eq!(opened("socket", &["--host-uds=open"]), Err(Errno::ENXIO));
}

#[test]
fn a_channel_comes_with_the_memory_and_a_socket_for_descriptors() {
    let served = Served::new();
    let offer = served.client.channel().expect("a channel");
    assert_eq!(offer.place, ChannelReply { data_offset: 0, data_length: WINDOW });
    let seals = rustix::fs::fcntl_get_seals(&offer.memory).expect("a memfd");
    assert_eq!(seals, SealFlags::SHRINK | SealFlags::SEAL);
    assert!(rustix::fs::ftruncate(&offer.memory, 0).is_err(), "nobody can take the memory away");
    assert_eq!(rustix::net::sockopt::socket_type(&offer.fd_socket), Ok(SocketType::SEQPACKET));
    assert!(never_waits(&offer.memory) && never_waits(&offer.fd_socket));
    let window = offer.window();
    let mut header = [1; 64];
    window.copy_out(0, &mut header).expect("inside");
    assert_eq!(header, [0; 64], "a fresh window is zero");
    assert_eq!(window.state().load(std::sync::atomic::Ordering::Relaxed), 0, "the client begins");
}

#[test]
fn windows_lie_back_to_back_in_one_memory_that_doubles() {
    let served = Served::new();
    let mut memory = Vec::new();
    for (number, size) in [(0, 2), (1, 4), (2, 8), (3, 8)] {
        let offer = served.client.channel().expect("a channel");
        assert_eq!(offer.place.data_offset, number * i64::try_from(WINDOW).expect("small"));
        assert_eq!(offer.place.data_length, WINDOW);
        assert_eq!(rustix::fs::fstat(&offer.memory).expect("stat").st_size, size << 20);
        memory.push(identity(&offer.memory));
    }
    memory.dedup();
    assert_eq!(memory.len(), 1, "the same memory for all");
}

#[test]
fn a_fifth_channel_is_enomem_even_when_others_are_dead() {
    let served = Served::new();
    let first = served.client.on_channel();
    // A channel may come over a channel.
    let answer = first.ask(&ChannelRequest).expect("a second channel");
    assert_eq!(answer.fds.len(), 2);
    first.shut_down();
    for _ in 0..2 {
        drop(served.client.channel().expect("a channel"));
    }
    for _ in 0..3 {
        assert_eq!(served.client.channel().map(drop), Err(Errno::ENOMEM));
    }
    assert!(served.client.fstat(served.root).is_ok());
}

#[test]
fn four_channels_and_the_socket_answer_alike() {
    let served = Served::with(&[], |dir| files(dir, &["f"]));
    let file = served.client.walk_to(served.root, "f");
    let channels: Vec<_> = (0..4).map(|_| served.client.on_channel()).collect();
    for channel in &channels {
        assert_eq!(channel.fstat(file), served.client.fstat(file));
        let (open, donated) = channel.open(file, 0).expect("open");
        assert_eq!(donated.len(), 1);
        assert_eq!(channel.pread(open, 0, 1), Ok(b"f".to_vec()));
    }
}

#[test]
fn the_end_of_a_connection_shuts_its_channels_down_and_gives_everything_back() {
    use std::sync::atomic::Ordering;
    let server = Listening::with(&[], nothing);
    let idle = server.gofer.descriptors().len();

    let (client, root) = server.client();
    let (used, fresh) = (client.channel().expect("a channel"), client.channel().expect("a channel"));
    let windows = [used.window(), fresh.window()];
    let used = used.connect();
    let (_, open, _) = client.create(root, "f").expect("create");
    assert_eq!(used.pwrite(open, 0, b"x"), Ok(1));
    drop(client);

    assert!(eventually(|| windows.iter().all(|window| window.state().load(Ordering::Relaxed) == 2)), "shut down");
    server.gofer.assert_descriptors(idle, "given back");
}
