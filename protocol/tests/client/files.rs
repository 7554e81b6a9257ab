//! Data of any length through messages of one length.

use std::error::Error as _;

use gofer_protocol::client::{Client, ErrorKind, File};
use gofer_protocol::codec::{Data, decode};
use gofer_protocol::message::{PReadReply, PReadRequest, PWriteReply, PWriteRequest};
use gofer_protocol::record::Statx;
use gofer_protocol::{Errno, FdId, Mid};

use crate::peer::{Line, encode, over_both};

fn file(client: &Client) -> File {
    File::new(client.own(FdId(9)), None)
}

/// Serves one file in memory, on a disk that holds `disk` bytes. Returns how many reads and writes it took.
fn serve_file(line: &mut Line, disk: usize) -> (usize, usize) {
    let (mut reads, mut writes) = (0, 0);
    let mut file: Vec<u8> = Vec::new();
    while let Some((mid, request)) = line.receive() {
        match mid {
            Mid::PWRITE => {
                writes += 1;
                let request: PWriteRequest<'_> = decode(&request).unwrap();
                let at = usize::try_from(request.offset).unwrap();
                let room = disk.saturating_sub(at);
                let data = request.data.as_bytes();
                let fitting = &data[..data.len().min(room)];
                if fitting.is_empty() && !data.is_empty() {
                    line.send(Mid::ERROR, &Errno::ENOSPC.raw().to_le_bytes(), &[]);
                    continue;
                }
                file.resize(file.len().max(at + fitting.len()), 0);
                file[at..at + fitting.len()].copy_from_slice(fitting);
                let count = u64::try_from(fitting.len()).unwrap();
                line.send(mid, &encode(&PWriteReply { count }), &[]);
            }
            Mid::PREAD => {
                reads += 1;
                let request: PReadRequest = decode(&request).unwrap();
                let at = usize::try_from(request.offset).unwrap().min(file.len());
                let end = (at + usize::try_from(request.count).unwrap()).min(file.len());
                line.send(mid, &encode(&PReadReply { data: Data::new(&file[at..end]).unwrap() }), &[]);
            }
            Mid::FSTAT => {
                let mut stat = Statx::default();
                stat.size = u64::try_from(file.len()).unwrap();
                line.send(mid, &encode(&stat), &[]);
            }
            other => panic!("{other:?}"),
        }
    }
    (reads, writes)
}

/// 8 MiB and three bytes, each byte telling where it is.
fn large() -> Vec<u8> {
    (0..(8 << 20) + 3u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

#[test]
fn data_longer_than_a_message_is_moved_in_pieces() {
    over_both(
        |line| {
            // Five messages each time: the last is short, which tells the end of the file.
            assert_eq!(serve_file(line, usize::MAX), (5 + 5, 5));
        },
        |client| {
            let file = file(client);
            let data = large();
            assert_eq!(file.write_at(&data, 5).unwrap(), data.len());
            let mut back = vec![0; data.len()];
            file.read_exact_at(&mut back, 5).unwrap();
            assert!(back == data);

            let mut more = vec![0; data.len() + (2 << 20)];
            assert_eq!(file.read_at(&mut more, 5).unwrap(), data.len());
            assert!(more[..data.len()] == data);
        },
    );
}

#[test]
fn a_short_write_is_told_and_the_next_one_meets_the_error() {
    over_both(
        |line| {
            serve_file(line, 5_000_000);
        },
        |client| {
            let file = file(client);
            let data = large();
            assert_eq!(file.write_at(&data, 5).unwrap(), 4_999_995);
            let error = file.write_at(&data[4_999_995..], 5_000_000).unwrap_err();
            assert_eq!((error.errno(), error.kind()), (Errno::ENOSPC, &ErrorKind::Server));
            assert_eq!(file.write_all_at(&data, 5).unwrap_err().errno(), Errno::ENOSPC);
            let mut back = vec![0; 4_999_995];
            file.read_exact_at(&mut back, 5).unwrap();
            assert!(back == data[..4_999_995]);
        },
    );
}

/// An error that comes up where a message ends must not hide what came before it.
#[test]
fn an_error_behind_some_progress_is_left_to_the_next_call() {
    over_both(
        |line| {
            let count = u64::try_from(line.receive().unwrap().1.len() - 20).unwrap();
            line.send(Mid::PWRITE, &encode(&PWriteReply { count }), &[]);
            line.fail(Errno::EDQUOT);
            line.fail(Errno::EDQUOT);
            line.end();
        },
        |client| {
            let file = file(client);
            let data = large();
            assert_eq!(file.write_at(&data, 0).unwrap(), client.max_write());
            assert_eq!(file.write_at(&data, 0).unwrap_err().errno(), Errno::EDQUOT);
        },
    );
}

#[test]
fn the_end_of_a_file_is_no_bytes_and_no_busy_loop() {
    over_both(
        |line| {
            let (reads, _) = serve_file(line, usize::MAX);
            assert_eq!(reads, 4 + 2 + 1);
        },
        |client| {
            let file = file(client);
            file.write_all_at(b"0123456789", 0).unwrap();
            let mut room = [0; 4096];
            assert_eq!(file.read_at(&mut room, 0).unwrap(), 10);
            assert_eq!(file.read_at(&mut room, 10).unwrap(), 0);
            assert_eq!(file.read_at(&mut room, 11).unwrap(), 0);
            assert_eq!(file.read_at(&mut room, 1 << 40).unwrap(), 0);
            let error = file.read_exact_at(&mut room, 0).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::EndOfFile);
            assert!(error.source().is_none());
            assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::UnexpectedEof);
            assert_eq!(file.read_to_end_at(3).unwrap(), b"3456789");
        },
    );
}

#[test]
fn everything_to_the_end_is_read_whatever_its_length() {
    over_both(
        |line| {
            serve_file(line, usize::MAX);
        },
        |client| {
            let file = file(client);
            assert_eq!(file.read_to_end_at(0).unwrap(), b"");
            let data = large();
            for len in [1, 65_535, 65_536, 65_537, 5_000_000] {
                file.write_all_at(&data[..len], 0).unwrap();
                assert!(file.read_to_end_at(0).unwrap() == data[..len], "{len}");
            }
        },
    );
}

#[test]
fn a_write_without_progress_is_an_error_and_no_busy_loop() {
    over_both(
        |line| {
            line.answer(Mid::PWRITE, &PWriteReply { count: 0 });
            line.end();
        },
        |client| {
            let error = file(client).write_all_at(b"data", 0).unwrap_err();
            assert_eq!(error.errno(), Errno::EIO);
        },
    );
}

#[test]
fn positions_that_a_file_cannot_have_do_not_wrap_around() {
    over_both(
        |line| {
            // The first message is the server's to judge; the second would begin beyond all numbers.
            let count = u64::try_from(line.receive().unwrap().1.len() - 20).unwrap();
            line.send(Mid::PWRITE, &encode(&PWriteReply { count }), &[]);
            line.end();
        },
        |client| {
            let file = file(client);
            let data = large();
            let first = u64::try_from(client.max_write()).unwrap();
            assert_eq!(file.write_at(&data, u64::MAX - first + 1).unwrap(), client.max_write());
        },
    );
}

#[test]
fn append_goes_to_the_present_end() {
    over_both(
        |line| {
            serve_file(line, usize::MAX);
        },
        |client| {
            let file = file(client);
            assert_eq!(file.append(b"one").unwrap(), 0);
            assert_eq!(file.append(b"two").unwrap(), 3);
            assert_eq!(file.read_to_end_at(0).unwrap(), b"onetwo");
        },
    );
}
