//! A client that rewrites the window while the server reads it.

use std::fs;

use gofer_integration::{Actor, Ask, HostileChannel, Outside, Served, encoded, new_in, string};
use gofer_protocol::Mid;
use gofer_protocol::codec::{StringArrayBuf, decode};
use gofer_protocol::message::{MkdirAtRequest, PWriteReply, UnlinkAtRequest, WalkReply, WalkRequest};
use gofer_protocol::record::FileType;

/// How often each request is raced.
const TRIES: usize = 3000;

/// Bytes of a datagram before its payload.
const HEADER: usize = 4;

/// A served directory `root` beside a directory `beside`, both in a directory of ours. The client is hostile.
fn served_beside(outside: &Outside) -> (Served, HostileChannel) {
    let served = Served::with(&[], |dir| fs::create_dir(dir.join("xx")).expect("a directory"));
    std::os::unix::fs::symlink(outside.path(), served.path().join("ll")).expect("a link");
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    (served, channel)
}

/// Writes the two values to a place of the datagram in turn, through a mapping of its own.
fn flip<const LEN: usize>(channel: &HostileChannel, at: usize, one: [u8; LEN], other: [u8; LEN]) -> Actor {
    let window = channel.offer.window();
    Actor::repeat(move || {
        for value in [one, other] {
            window.copy_in(at, &value).expect("within the window");
        }
    })
}

/// Threat: rewrite shared memory between check and use; names.
#[test]
fn a_name_that_changes_under_the_check_is_used_as_it_was_checked_or_refused() {
    let outside = Outside::new();
    let (served, channel) = served_beside(&outside);
    let create = new_in(served.root, FileType::Directory, 0o755);
    let mkdir = encoded(&MkdirAtRequest { create, name: string("xx") });
    let rmdir = encoded(&UnlinkAtRequest { dir_fd: served.root, flags: 0x200, name: string("xx") });
    for payload in [(Mid::MKDIR_AT, mkdir), (Mid::UNLINK_AT, rmdir)] {
        let (mid, payload) = payload;
        let _flipping = flip(&channel, HEADER + payload.len() - 2, *b"xx", *b"..");
        for _ in 0..TRIES {
            channel.exchange(mid.0, &payload).expect("an answer");
        }
    }
    assert_eq!(served.client.fstat(served.root).expect("the server lives").mode.file_type(), Some(FileType::Directory));
    assert!(served.path().is_dir());
    let names: Vec<_> =
        fs::read_dir(served.path()).expect("a listing").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| ["xx", "ll"].iter().any(|known| name == known) || is_mixture(name)), "{names:?}");
    outside.assert_untouched();
}

/// Half of each value may be seen: `x.` and `.x` are names like others.
fn is_mixture(name: &std::ffi::OsStr) -> bool {
    name == "x." || name == ".x"
}

/// Threat: rewrite shared memory between check and use; the components of a walk.
#[test]
fn a_walk_whose_components_change_never_climbs() {
    let outside = Outside::new();
    let (served, channel) = served_beside(&outside);
    let above = fs::metadata(served.path().join("..")).expect("metadata");
    let above = std::os::unix::fs::MetadataExt::ino(&above);
    let path = StringArrayBuf::new([&b"xx"[..], b"ll", b"xx"]).expect("a path");
    let payload = encoded(&WalkRequest { dir_fd: served.root, path: path.as_array() });
    let first_name = HEADER + 8 + 2 + 2;
    for (one, other) in [(*b"xx", *b".."), (*b"ll", *b"xx"), (*b"xx", *b"x/")] {
        let _flipping = flip(&channel, first_name, one, other);
        for _ in 0..TRIES {
            let (mid, reply) = channel.exchange(Mid::WALK.0, &payload).expect("an answer");
            if mid == Mid::WALK.0 {
                // Once the reply is written the bytes are flipped further: identities are what the server said, or not
                // even a reply.
                let Ok(reply) = decode::<WalkReply<'_>>(&reply) else { continue };
                for inode in reply.inodes.iter() {
                    assert!(inode.stat.ino != above && !outside.holds(&inode.stat), "walked outside");
                }
            }
        }
        // Whatever was handed out, given back.
        let fds: Vec<_> = (served.root.0 + 1..served.root.0 + 60_000).map(gofer_protocol::FdId).collect();
        served.client.close(&fds);
    }
    assert!(served.client.fstat(served.root).is_ok());
}

/// Threat: rewrite shared memory during parsing; counts and lengths.
#[test]
fn lengths_that_change_during_parsing_end_in_a_reply() {
    let outside = Outside::new();
    let (served, channel) = served_beside(&outside);
    let path = StringArrayBuf::new([&b"xx"[..], b"xx"]).expect("a path");
    let payload = encoded(&WalkRequest { dir_fd: served.root, path: path.as_array() });
    // The count of components, the length of the first.
    for at in [HEADER + 8, HEADER + 8 + 2] {
        let _flipping = flip(&channel, at, [2, 0], [0xff, 0xff]);
        for _ in 0..TRIES {
            channel.exchange(Mid::WALK.0, &payload).expect("an answer");
        }
    }
    assert!(served.client.fstat(served.root).is_ok());
}

/// Threat: rewrite shared memory between check and use; the length of a write.
#[test]
fn a_write_whose_length_changes_stays_within_the_request() {
    let served = Served::new();
    let (_, open, _) = served.client.create(served.root, "f").expect("a file");
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    let len = 1000_u32;
    let payload = [&0_u64.to_le_bytes()[..], &open.0.to_le_bytes(), &len.to_le_bytes(), &[7; 1000]].concat();
    let _flipping = flip(&channel, HEADER + 16, len.to_le_bytes(), u32::MAX.to_le_bytes());
    let mut written = 0;
    for _ in 0..TRIES {
        let (mid, reply) = channel.exchange(Mid::PWRITE.0, &payload).expect("an answer");
        if mid == Mid::PWRITE.0 {
            written += usize::from(decode::<PWriteReply>(&reply).is_ok());
        }
    }
    assert!(written > 0);
    assert_eq!(fs::metadata(served.path().join("f")).expect("metadata").len(), 1000);
}

/// Threat: rewrite shared memory during parsing; the announced length, and a hand-over that is taken back.
#[test]
fn a_data_length_that_changes_all_the_time_harms_no_one_else() {
    let served = Served::new();
    let before = served.descriptors();
    for _ in 0..3 {
        let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
        let window = channel.offer.window();
        let flipping = Actor::repeat(move || {
            for len in [0, 3, 12, 2_093_060, u32::MAX] {
                window.set_data_len(len);
            }
        });
        for _ in 0..TRIES {
            // It ends as soon as the server meets a length that does not fit.
            if channel.exchange(Mid::FSTAT.0, &served.root.0.to_le_bytes()).is_none() {
                break;
            }
        }
        drop(flipping);
        assert!(served.client.fstat(served.root).is_ok());
    }
    // Each channel that was given up still has its window, but no descriptors of files.
    assert!(served.gofer.descriptors().len() <= before + 1 + 2 * 3);
}
