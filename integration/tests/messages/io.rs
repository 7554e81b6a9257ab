//! PRead, PWrite, FSync, FAllocate.

use std::os::unix::fs::FileExt;

use gofer_integration::{Ask, Trial, nothing, over_both, say};
use gofer_protocol::message::{PWriteRequest, Request as _};
use gofer_protocol::{Errno, FdId};

use super::{READ, READ_WRITE, WRITE, fifo, files};

const LIMIT: u32 = 2_093_056;
/// Payload that a PRead's reply and a PWrite's request have room for.
const LONGEST_READ: u32 = LIMIT - 8;
const LONGEST_WRITE: u32 = LIMIT - 20;

/// First offset that no file can have.
const BEYOND: u64 = 1 << 63;

fn opened(t: &Trial<'_>, name: &str, flags: u32) -> FdId {
    t.client.open(t.client.walk_to(t.root, name), flags).expect("open").0
}

fn pattern(len: u32) -> Vec<u8> {
    (0..len).map(|at| u8::try_from(at % 251).expect("small")).collect()
}

#[test]
fn what_is_written_is_on_the_host_and_read_back() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", READ_WRITE);
            let data = pattern(100_000);
            assert_eq!(t.client.pwrite(fd, 5_000, &data), Ok(100_000));
            let host = std::fs::read(t.host("f")).expect("read");
            assert_eq!(host.len(), 105_000);
            assert_eq!((host[0], host[5_000..] == data[..]), (b'f', true));
            assert_eq!(t.client.pread(fd, 5_000, 100_000), Ok(data));
            assert_eq!(t.client.pread(fd, 0, 3), Ok(vec![b'f', 0, 0]));
        },
    );
}

#[test]
fn the_largest_messages_carry_the_most_data() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", READ_WRITE);
            let data = pattern(LONGEST_WRITE);
            assert_eq!(t.client.pwrite(fd, 0, &data), Ok(LONGEST_WRITE.into()));
            assert_eq!(t.client.pread(fd, 0, LONGEST_READ), Ok(data.clone()));
            assert_eq!(t.client.pwrite(fd, LONGEST_WRITE.into(), b"and twelve more"), Ok(15));
            let read = t.client.pread(fd, 0, LONGEST_READ).expect("read");
            assert_eq!(read.len(), usize::try_from(LONGEST_READ).expect("small"));
            assert!(read.starts_with(&data) && read.ends_with(b"and twelve m"));
        },
    );
}

#[test]
fn a_read_whose_reply_would_not_fit_is_enobufs() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", READ);
            for count in [LONGEST_READ + 1, LIMIT, u32::MAX - 8, u32::MAX - 7, u32::MAX] {
                assert_eq!(t.client.pread(fd, 0, count), Err(Errno::ENOBUFS), "{count}");
            }
        },
    );
}

#[test]
fn reads_end_with_the_file() {
    over_both(
        &[],
        |dir| std::fs::write(dir.join("f"), "0123456789").expect("a file"),
        |t| {
            let fd = opened(t, "f", READ);
            assert_eq!(t.client.pread(fd, 8, 100), Ok(b"89".to_vec()));
            assert_eq!(t.client.pread(fd, 10, 100), Ok(Vec::new()));
            assert_eq!(t.client.pread(fd, 1 << 40, 100), Ok(Vec::new()));
            assert_eq!(t.client.pread(fd, 3, 0), Ok(Vec::new()));
        },
    );
}

#[test]
fn offsets_that_no_file_has_are_einval_unless_nothing_is_moved() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", READ_WRITE);
            for (offset, len) in [(BEYOND, 1), (u64::MAX, 1), (BEYOND - 1, 1), (BEYOND - 4, 4), (u64::MAX - 3, 8)] {
                let data = vec![0; usize::try_from(len).expect("small")];
                assert_eq!(t.client.pread(fd, offset, len), Err(Errno::EINVAL), "{offset}");
                assert_eq!(t.client.pwrite(fd, offset, &data), Err(Errno::EINVAL), "{offset}");
            }
            for offset in [0, BEYOND - 1, BEYOND, u64::MAX] {
                assert_eq!(t.client.pread(fd, offset, 0), Ok(Vec::new()), "{offset}");
                assert_eq!(t.client.pwrite(fd, offset, b""), Ok(0), "{offset}");
            }
            assert_eq!(t.client.pread(fd, BEYOND - 2, 1), Ok(Vec::new()), "an offset that a file may have");
            assert_eq!(t.metadata("f").len(), 1);
        },
    );
}

#[test]
fn writing_beyond_the_largest_file_is_efbig_and_up_to_it_a_short_count() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let host = std::fs::File::options().write(true).open(t.host("f")).expect("the file");
            let Some(largest) = largest_file(&host) else {
                return say::skipped("this file system has no limit");
            };
            let fd = opened(t, "f", READ_WRITE);
            assert_eq!(t.client.pwrite(fd, largest, b"x"), Err(Errno::EFBIG));
            assert_eq!(t.client.pwrite(fd, BEYOND - 9, b"x"), Err(Errno::EFBIG));
            assert_eq!(t.client.pwrite(fd, largest - 4, b"longer than four"), Ok(4));
            assert_eq!(t.metadata("f").len(), largest);
        },
    );
}

/// The largest size that the host gives `file`, which is empty afterwards; none if it takes every size.
fn largest_file(file: &std::fs::File) -> Option<u64> {
    let takes = |size| rustix::fs::ftruncate(file, size).is_ok();
    let (mut good, mut bad) = (0, BEYOND - 1);
    if takes(bad) {
        return None;
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if takes(middle) { good = middle } else { bad = middle }
    }
    assert!(takes(0));
    Some(good)
}

#[test]
fn data_behind_the_announced_length_is_ignored_and_missing_data_is_eio() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", WRITE);
            let request = |announced: u32, data: &[u8]| {
                let mut payload = 0u64.to_le_bytes().to_vec();
                payload.extend(fd.0.to_le_bytes());
                payload.extend(announced.to_le_bytes());
                payload.extend(data);
                t.client.exchange(PWriteRequest::MID.0, &payload).map(|answer| answer.decode::<u64>())
            };
            assert_eq!(request(3, b"abcdef"), Ok(3));
            assert_eq!(std::fs::read(t.host("f")).expect("read"), b"abc");
            for announced in [7, 100, u32::MAX] {
                assert_eq!(request(announced, b"abcdef"), Err(Errno::EIO), "{announced}");
            }
            assert_eq!(request(0, b""), Ok(0));
            assert_eq!(std::fs::read(t.host("f")).expect("read"), b"abc");
        },
    );
}

#[test]
fn a_length_that_lies_is_noticed_before_a_descriptor_that_is_none() {
    over_both(&[], nothing, |t| {
        let mut payload = [0; 24];
        payload[16] = 9;
        assert_eq!(t.client.exchange(PWriteRequest::MID.0, &payload).map(drop), Err(Errno::EIO));
        payload[16] = 4;
        assert_eq!(t.client.exchange(PWriteRequest::MID.0, &payload).map(drop), Err(Errno::EBADF));
    });
}

#[test]
fn a_directory_has_no_data() {
    over_both(&[], nothing, |t| {
        let (fd, _) = t.client.open(t.root, READ).expect("open");
        assert_eq!(t.client.pread(fd, 0, 10), Err(Errno::EISDIR));
        assert_eq!(t.client.pwrite(fd, 0, b"x"), Err(Errno::EBADF));
        assert_eq!(t.client.fallocate(fd, 0, 0, 1), Err(Errno::EBADF));
        assert_eq!(t.client.fsync(&[fd]), Ok(()), "but it can be synced");
    });
}

#[test]
fn a_fifo_has_no_offsets() {
    over_both(
        &["--host-fifo=open"],
        |dir| fifo(&dir.join("p")),
        |t| {
            let fd = opened(t, "p", READ_WRITE);
            assert_eq!(t.client.pread(fd, 0, 10), Err(Errno::ESPIPE));
            assert_eq!(t.client.pwrite(fd, 0, b"x"), Err(Errno::ESPIPE));
            assert_eq!(t.client.fallocate(fd, 0, 0, 10), Err(Errno::ESPIPE));
            assert_eq!(t.client.fsync(&[fd]), Err(Errno::EINVAL));
        },
    );
}

#[test]
fn fsync_tries_all_and_returns_the_first_error() {
    over_both(
        &["--host-fifo=open"],
        |dir| {
            files(dir, &["f"]);
            fifo(&dir.join("p"));
        },
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (good, pipe) = (opened(t, "f", READ), opened(t, "p", READ));
            assert_eq!(t.client.fsync(&[]), Ok(()));
            assert_eq!(t.client.fsync(&[good, good]), Ok(()));
            assert_eq!(t.client.fsync(&[good, FdId(0), control]), Err(Errno::EBADF));
            assert_eq!(t.client.fsync(&[good, control, FdId(0)]), Err(Errno::EINVAL));
            assert_eq!(t.client.fsync(&[pipe, FdId(0), good]), Err(Errno::EINVAL), "the host's own error");
            assert_eq!(t.client.fsync(&[FdId(0), pipe]), Err(Errno::EBADF));
        },
    );
}

#[test]
fn fallocate_makes_room() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", WRITE);
            assert_eq!(t.client.fallocate(fd, 0, 20, 100_000), Ok(()));
            let metadata = t.metadata("f");
            assert_eq!(metadata.len(), 100_020);
            assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 >= 100_000);
            let host = std::fs::File::open(t.host("f")).expect("the file");
            let mut byte = [9];
            host.read_exact_at(&mut byte, 50_000).expect("read");
            assert_eq!(byte, [0]);
        },
    );
}

#[test]
fn fallocate_refuses_nothing_at_all_offsets_that_no_file_has_and_every_mode() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let fd = opened(t, "f", READ_WRITE);
            for (offset, length) in [(0, 0), (5, 0), (BEYOND, 1), (0, BEYOND), (u64::MAX, u64::MAX)] {
                assert_eq!(t.client.fallocate(fd, 0, offset, length), Err(Errno::EINVAL), "{offset} {length}");
            }
            // Together beyond what a file can have.
            assert_eq!(t.client.fallocate(fd, 0, BEYOND - 1, BEYOND - 1), Err(Errno::EFBIG));
            for mode in [1, 2, 3, 0x10, 1 << 32, u64::MAX] {
                assert_eq!(t.client.fallocate(fd, mode, 0, 1), Err(Errno::EOPNOTSUPP), "{mode}");
            }
            assert_eq!(t.metadata("f").len(), 1);
        },
    );
}
