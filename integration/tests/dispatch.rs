//! What precedes every handler: the order of the checks, what is tolerated, and what an answer may be.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use gofer::{Limits, Policy, Server};
use gofer_integration::specimen::{Takes, specimens};
use gofer_integration::{Ask, Exchange, Raw, Trial, new_in, nothing, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Mid};
use serde_json::Value;

const LIMIT: usize = 2_093_056;

const READ_ONLY: &[&str] = &["--readonly", "--host-uds=all"];

/// Messages that a read-only connection refuses unread.
const MUTATING: [u16; 14] = [4, 8, 11, 13, 14, 15, 16, 18, 22, 23, 26, 28, 29, 33];

fn answer(t: &Trial<'_>, mid: u16, payload: &[u8]) -> Result<(), Errno> {
    t.client.exchange(mid, payload).map(drop)
}

#[test]
fn a_payload_beyond_the_limit_is_eio_whatever_the_message_and_the_next_request_is_served() {
    over_both(READ_ONLY, nothing, |t| {
        for mid in [1, 3, 4, 11, 0, 20, 34, 9999] {
            for length in [LIMIT + 1, LIMIT + 4] {
                assert_eq!(answer(t, mid, &vec![0; length]), Err(Errno::EIO), "{mid}, {length} bytes");
            }
            assert!(t.client.fstat(t.root).is_ok());
        }
    });
}

#[test]
fn a_payload_at_the_limit_is_served() {
    over_both(&[], nothing, |t| {
        let mut payload = t.root.0.to_le_bytes().to_vec();
        payload.resize(LIMIT, 0xff);
        assert_eq!(answer(t, Mid::FSTAT.0, &payload), Ok(()));
    });
}

#[test]
fn a_channel_takes_more_than_the_limit_and_no_more_than_its_window() {
    let served = gofer_integration::Served::new();
    let channel = served.client.on_channel();
    let longest = channel.max_payload();
    assert_eq!(longest, (2 << 20) - 16 - 4);
    assert_eq!(channel.exchange(3, &vec![0; longest]).map(drop), Err(Errno::EIO));
    assert!(channel.request(3, &[&vec![0; longest + 1]]).is_err(), "not even sent");
    assert!(channel.fstat(served.root).is_ok());
}

#[test]
fn unknown_messages_and_those_that_are_no_requests_are_eopnotsupp_unread() {
    over_both(READ_ONLY, nothing, |t| {
        for mid in [0, 20, 34, 35, 64, 255, 256, 257, 1000, 0x8000, 0xfffe, 0xffff] {
            for payload in [&[][..], &[1; 8], &[0xff; 3000]] {
                assert_eq!(answer(t, mid, payload), Err(Errno::EOPNOTSUPP), "{mid}");
            }
        }
    });
}

#[test]
fn every_message_that_is_announced_has_a_handler() {
    over_both(&[], nothing, |t| {
        for request in specimens(FdId::NONE, b"name") {
            let answered = answer(t, request.mid.0, &request.payload);
            assert_ne!(answered, Err(Errno::EOPNOTSUPP), "{:?}", request.mid);
        }
        let all: Vec<u16> = specimens(FdId::NONE, b"name").iter().map(|request| request.mid.0).collect();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=19).chain(21..=33).collect::<Vec<_>>(), "there is a specimen of each");
    });
}

#[test]
fn a_read_only_connection_refuses_changes_before_it_parses_them() {
    over_both(READ_ONLY, nothing, |t| {
        for mid in (1..=33).filter(|mid| *mid != 20) {
            let expected = match mid {
                1 => Ok(()),
                // Channels, of which the trial may have one; afterwards the limit.
                2 => continue,
                _ if MUTATING.contains(&mid) => Err(Errno::EROFS),
                _ => Err(Errno::EIO),
            };
            assert_eq!(answer(t, mid, &[]), expected, "{mid} without a payload");
        }
        for request in specimens(t.root, b"..") {
            if MUTATING.contains(&request.mid.0) {
                assert_eq!(answer(t, request.mid.0, &request.payload), Err(Errno::EROFS), "{:?}", request.mid);
            }
        }
        assert_eq!(std::fs::read_dir(t.served.path()).expect("a listing").count(), 0);
    });
}

#[test]
fn a_read_only_connection_decides_on_open_at_after_parsing_and_before_the_descriptor() {
    over_both(
        READ_ONLY,
        |dir| std::fs::write(dir.join("f"), "f").expect("a file"),
        |t| {
            let file = t.client.walk_to(t.root, "f");
            for flags in [1, 2, 3, 0o1000, 0o1002] {
                for fd in [file, t.root, FdId::NONE] {
                    assert_eq!(t.client.open(fd, flags).map(drop), Err(Errno::EROFS), "{fd:?} {flags}");
                }
            }
            assert_eq!(answer(t, Mid::OPEN_AT.0, &[0; 15]), Err(Errno::EIO));
            assert_eq!(t.client.open(FdId::NONE, 0).map(drop), Err(Errno::EBADF));
            let (open, donated) = t.client.open(file, 0).expect("open");
            assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
            let mode = rustix::fs::fcntl_getfl(&donated[0]).expect("flags") & rustix::fs::OFlags::ACCMODE;
            assert_eq!(mode, rustix::fs::OFlags::RDONLY, "what is donated does not write either");
            assert_eq!(std::fs::read(t.host("f")).expect("read"), b"f");
        },
    );
}

#[test]
fn a_read_only_connection_serves_all_that_changes_nothing() {
    over_both(
        READ_ONLY,
        |dir| {
            std::fs::write(dir.join("f"), "f").expect("a file");
            std::os::unix::fs::symlink("f", dir.join("l")).expect("a link");
        },
        |t| {
            let listener = std::os::unix::net::UnixListener::bind(t.host("s")).expect("a socket");
            let file = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(file, 0).expect("open");
            let (dir, _) = t.client.open(t.root, 0).expect("open");
            assert_eq!(t.client.walk_stat(t.root, &["", "f"]).map(|stats| stats.len()), Ok(2));
            assert_eq!(t.client.fsync(&[open]), Ok(()));
            assert!(t.client.fstat_fs(file).is_ok());
            assert_eq!(t.client.read_link(t.client.walk_to(t.root, "l")), Ok(b"f".to_vec()));
            assert_eq!(t.client.list(dir).len(), 3);
            assert_eq!(t.client.get_xattr(file, 0, "user.k"), Err(Errno::ENODATA));
            assert_eq!(t.client.list_xattr(file, 0), Ok(Vec::new()));
            // A connection is no change of the tree.
            assert!(t.client.connect(t.client.walk_to(t.root, "s"), 1).is_ok());
            t.client.close(&[open, dir, file]);
            drop(listener);
        },
    );
}

#[test]
fn a_payload_that_is_cut_anywhere_is_eio_before_anything_else_is_judged() {
    over_both(&["--host-uds=all"], nothing, |t| {
        // With a bad name on a bad descriptor, so that any later check would answer something else.
        for request in specimens(FdId::NONE, b"..") {
            for length in 0..request.payload.len() {
                let payload = &request.payload[..length];
                assert_eq!(answer(t, request.mid.0, payload), Err(Errno::EIO), "{:?}, {length} bytes", request.mid);
            }
            if request.takes != Takes::None && request.takes != Takes::Anything {
                let whole = answer(t, request.mid.0, &request.payload).expect_err("a bad descriptor");
                assert!(matches!(whole, Errno::EBADF | Errno::EINVAL), "{:?}: {whole:?}", request.mid);
            }
        }
    });
}

#[test]
fn bytes_behind_a_complete_payload_are_ignored() {
    over_both(
        &["--host-uds=all"],
        |dir| std::fs::write(dir.join("f"), "f").expect("a file"),
        |t| {
            for request in specimens(FdId::NONE, b"name") {
                if request.takes == Takes::None {
                    continue;
                }
                let expected = answer(t, request.mid.0, &request.payload);
                for junk in [&b"\0"[..], b"junk", &[0xff; 5000]] {
                    let payload = [&request.payload, junk].concat();
                    assert_eq!(answer(t, request.mid.0, &payload), expected, "{:?}", request.mid);
                }
            }
            // And where it succeeds.
            for request in specimens(t.root, b"new") {
                let creates = matches!(request.mid.0, 8 | 13 | 14 | 15 | 29);
                if creates {
                    let payload = [&request.payload[..], b"junk"].concat();
                    assert_eq!(answer(t, request.mid.0, &payload), Ok(()), "{:?}", request.mid);
                    let remove = if request.mid == Mid::MKDIR_AT { std::fs::remove_dir } else { std::fs::remove_file };
                    remove(t.host("new")).expect("it is there, under this very name");
                }
            }
        },
    );
}

#[test]
fn padding_is_ignored() {
    over_both(
        &["--host-uds=all"],
        |dir| std::fs::write(dir.join("f"), "f").expect("a file"),
        |t| {
            let listener = std::os::unix::net::UnixListener::bind(t.host("s")).expect("a socket");
            let (file, socket) = (t.client.walk_to(t.root, "f"), t.client.walk_to(t.root, "s"));
            let (open, _) = t.client.open(file, 0).expect("open");
            let (dir, _) = t.client.open(t.root, 0).expect("open");
            let (_, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o600), 1, "b").expect("bind");
            // Which bytes of which message are padding.
            for (mid, fd, padding) in [
                (Mid::OPEN_AT, file, 12..16),
                (Mid::PREAD, open, 20..24),
                (Mid::GETDENTS64, dir, 12..16),
                (Mid::CONNECT, socket, 12..16),
                (Mid::CONNECT_WITH_CREDS, socket, 12..16),
                (Mid::LISTEN, bound, 12..16),
                (Mid::OPEN_CREATE_AT, t.root, 18..24),
                (Mid::MKDIR_AT, t.root, 18..24),
                (Mid::MKNOD_AT, t.root, 18..24),
                (Mid::BIND_AT, t.root, 18..24),
            ] {
                let request = specimens(fd, b"new").into_iter().find(|request| request.mid == mid).expect("a specimen");
                let mut payload = request.payload;
                payload[padding].fill(0xef);
                assert_eq!(answer(t, mid.0, &payload), Ok(()), "{mid:?}");
                let _ = std::fs::remove_dir(t.host("new")).or_else(|_| std::fs::remove_file(t.host("new")));
            }
            drop(listener);
        },
    );
}

#[test]
fn padding_of_the_socket_header_is_ignored() {
    use std::io::Write;
    let served = gofer_integration::Served::new();
    let frame = [&[8, 0, 0, 0, 3, 0, 0xab, 0xcd][..], &served.root.0.to_le_bytes()].concat();
    (&served.client.stream).write_all(&frame).expect("write");
    assert_eq!(served.client.receive().map(|answer| answer.mid), Some(Mid::FSTAT));
}

#[test]
fn a_header_may_come_in_pieces_and_requests_back_to_back() {
    use std::io::Write;
    let served = gofer_integration::Served::new();
    let frame = [&[8, 0, 0, 0, 3, 0, 0, 0][..], &served.root.0.to_le_bytes()].concat();
    for byte in &frame {
        (&served.client.stream).write_all(&[*byte]).expect("write");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(served.client.receive().map(|answer| answer.mid), Some(Mid::FSTAT));
    let unknown = [0, 0, 0, 0, 99, 0, 0, 0];
    (&served.client.stream).write_all(&[&frame[..], &unknown, &frame].concat()).expect("write");
    for expected in [Mid::FSTAT, Mid::ERROR, Mid::FSTAT] {
        assert_eq!(served.client.receive().map(|answer| answer.mid), Some(expected));
    }
}

/// A vector: its name, number and bytes.
struct Vector {
    name: String,
    mid: u16,
    payload: Vec<u8>,
}

fn vectors(direction: &str) -> Vec<Vector> {
    let text = include_str!("../../protocol/tests/vectors/lisafs.json");
    let all: Value = serde_json::from_str(text).expect("vectors");
    let of_direction = |vector: &&Value| vector["direction"] == direction;
    let vector = |vector: &Value| Vector {
        name: vector["name"].as_str().expect("a name").into(),
        mid: vector["mid"].as_u64().and_then(|mid| mid.try_into().ok()).expect("a number"),
        payload: bytes(vector["hex"].as_str().expect("bytes")),
    };
    all.as_array().expect("an array").iter().filter(of_direction).map(vector).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn malformed_vectors_are_eio() {
    let vectors = vectors("request-malformed");
    assert_eq!(vectors.len(), 9);
    over_both(&[], nothing, |t| {
        for Vector { name, mid, payload } in &vectors {
            assert_eq!(answer(t, *mid, payload), Err(Errno::EIO), "{name}");
        }
        assert!(t.client.fstat(t.root).is_ok());
    });
}

#[test]
fn odd_but_acceptable_vectors_succeed() {
    let vectors: Vec<_> = vectors("request-trailing").into_iter().chain(vectors("request-padding")).collect();
    assert_eq!(vectors.len(), 2);
    over_both(
        &[],
        |dir| std::fs::write(dir.join("f"), "f").expect("a file"),
        |t| {
            // They are about numbers 3 and 7.
            while t.client.walk_to(t.root, "f") < FdId(7) {}
            for Vector { name, mid, payload } in &vectors {
                assert_eq!(answer(t, *mid, payload), Ok(()), "{name}");
            }
        },
    );
}

#[test]
fn well_formed_vectors_are_understood() {
    let vectors = vectors("request");
    assert!(vectors.len() > 35);
    over_both(&[], nothing, |t| {
        for Vector { name, mid, payload } in &vectors {
            let answered = answer(t, *mid, payload);
            assert_ne!(answered, Err(Errno::EIO), "{name}");
            assert_eq!(answered == Err(Errno::EOPNOTSUPP), *mid == 20, "{name}");
        }
    });
}

#[test]
fn framed_vectors_are_understood() {
    use std::io::Write;
    for Vector { name, mid, payload } in vectors("request-frame-socket") {
        let served = gofer_integration::Served::new();
        (&served.client.stream).write_all(&payload).expect("write");
        let answer = served.client.receive().unwrap_or_else(|| panic!("{name}: no answer"));
        assert!(answer.mid == Mid(mid) || answer.payload == Errno::EBADF.raw().to_le_bytes(), "{name}");
    }
}

#[test]
fn a_reply_beyond_the_limit_is_eio_and_donates_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink("x".repeat(700), dir.path().join("long")).expect("a link");
    std::os::unix::fs::symlink("x".repeat(500), dir.path().join("short")).expect("a link");
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let server = Server::new().expect("a server");
    let root = server.root(dir.path()).expect("a directory");
    let limits = Limits { message_size: 600, ..Limits::default() };
    let connection = server.connect(OwnedFd::from(theirs), root, Policy::default(), limits).expect("a thread");
    let socket = Raw::new(ours);
    let root = socket.mount();
    let channel = socket.on_channel();
    let [long, short] = ["long", "short"].map(|name| socket.walk_to(root, name));
    for client in [&socket as &dyn Exchange, &channel] {
        assert_eq!(client.read_link(long), Err(Errno::EIO));
        assert_eq!(client.read_link(short).map(|target| target.len()), Ok(500));
        // 3 + 152 n bytes.
        assert_eq!(client.walk(root, &["a"; 4]).map(drop), Err(Errno::EIO));
        assert_eq!(client.walk(root, &["a"; 3]).map(|(_, inodes)| inodes.len()), Ok(0));
        assert_eq!(client.exchange(Mid::FSTAT.0, &[0; 601]).map(drop), Err(Errno::EIO));
        assert!(client.fstat(root).is_ok());
    }
    drop((socket, channel));
    connection.wait();
}
