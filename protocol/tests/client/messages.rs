//! One request, one reply, and what is believed of it.

use std::os::fd::AsFd;

use gofer_protocol::client::{Client, Error, ErrorKind};
use gofer_protocol::codec::{Array, Data, StringArrayBuf, decode};
use gofer_protocol::message::*;
use gofer_protocol::record::{CreateCommon, FileMode, FileType, Statx, StatxMask};
use gofer_protocol::{Errno, FdId, Gid, MAX_MESSAGE_SIZE, Mid, Uid};

use crate::copies::copies_of;
use crate::peer::{OVER_SOCKET, encode, inode, over_both, with_script};

const FD: FdId = FdId(7);

fn errno<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Errno {
    outcome.unwrap_err().errno()
}

/// Asserts that a reply was refused as such, and that the connection survived it.
fn refused_reply<T: std::fmt::Debug>(outcome: Result<T, Error>, errno: Errno) {
    let error = outcome.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Reply(_)), "{error}");
    assert_eq!(error.errno(), errno, "{error}");
}

#[test]
fn a_reply_is_what_the_server_says() {
    over_both(
        |line| {
            let mut stat = Statx::default();
            stat.size = 11;
            let request = line.answer(Mid::FSTAT, &stat);
            assert_eq!(decode(&request), Ok(FStatRequest { fd: FD }));
            line.end();
        },
        |client| assert_eq!(client.fstat(FD).unwrap().size, 11),
    );
}

#[test]
fn an_error_is_the_errno_that_the_server_says() {
    over_both(
        |line| {
            line.fail(Errno::ESTALE);
            // What no kernel could have said.
            line.answer_raw(Mid::ERROR, &0u32.to_le_bytes(), &[]);
            line.end();
        },
        |client| {
            let error = client.fstat(FD).unwrap_err();
            assert_eq!((error.errno(), error.kind(), error.mid()), (Errno::ESTALE, &ErrorKind::Server, Mid::FSTAT));
            assert!(error.to_string().starts_with("FSTAT: Stale file handle"), "{error}");
            assert_eq!(errno(client.fstat(FD)), Errno::EIO);
        },
    );
}

#[test]
fn a_reply_to_another_message_is_einval() {
    over_both(
        |line| {
            line.answer_raw(Mid::SET_STAT, &[0; 144], &[]);
            line.answer_raw(Mid(999), &[0; 144], &[]);
            line.answer(Mid::FSTAT, &Statx::default());
            line.end();
        },
        |client| {
            refused_reply(client.fstat(FD), Errno::EINVAL);
            refused_reply(client.fstat(FD), Errno::EINVAL);
            assert!(client.fstat(FD).is_ok());
        },
    );
}

#[test]
fn an_error_without_an_errno_is_eio() {
    over_both(
        |line| {
            for len in 0..4 {
                line.answer_raw(Mid::ERROR, &vec![2; len], &[]);
            }
            line.fail(Errno::ENOENT);
            line.end();
        },
        |client| {
            for _ in 0..4 {
                refused_reply(client.fstat(FD), Errno::EIO);
            }
            assert_eq!(errno(client.fstat(FD)), Errno::ENOENT);
        },
    );
}

#[test]
fn a_reply_that_is_cut_short_is_eio() {
    over_both(
        |line| {
            line.answer_raw(Mid::FSTAT, &[0; 143], &[]);
            line.answer_raw(Mid::FSTAT, &[], &[]);
            line.answer_raw(Mid::FSTAT, &[0; 145], &[]);
            line.end();
        },
        |client| {
            refused_reply(client.fstat(FD), Errno::EIO);
            refused_reply(client.fstat(FD), Errno::EIO);
            assert!(client.fstat(FD).is_ok(), "trailing bytes are ignored");
        },
    );
}

#[test]
fn a_reply_beyond_the_limit_is_eio_and_the_connection_lives_on() {
    over_both(
        |line| {
            line.answer_raw(Mid::FSTAT, &vec![0; usize::try_from(MAX_MESSAGE_SIZE).unwrap() + 1], &[]);
            line.answer(Mid::FSTAT, &Statx::default());
            line.end();
        },
        |client| {
            refused_reply(client.fstat(FD), Errno::EIO);
            assert!(client.fstat(FD).is_ok());
        },
    );
}

#[test]
fn counts_that_lie_are_eio() {
    over_both(
        |line| {
            // A count beyond what is there, in each kind of list.
            line.answer_raw(Mid::WALK, &[0, 0xff, 0xff], &[]);
            line.answer_raw(Mid::WALK_STAT, &[1, 0], &[]);
            line.answer_raw(Mid::GETDENTS64, &[[1, 0].as_slice(), &[0; 25], &[5, 0], b"name"].concat(), &[]);
            line.answer_raw(Mid::FLIST_XATTR, &[2, 0, 1, 0, b'a'], &[]);
            line.answer_raw(Mid::READ_LINK_AT, &[4, 0, b'a', b'b', b'c'], &[]);
            // A count beyond what was asked for.
            let inodes = [inode(5, FileType::Regular), inode(6, FileType::Regular)];
            let walked = WalkReply { status: WalkStatus::SUCCESS, inodes: Array::new(&inodes).unwrap() };
            line.answer(Mid::WALK, &walked);
            line.answer(Mid::WALK_STAT, &WalkStatReply { stats: Array::new(&[Statx::default(); 2]).unwrap() });
            // The inodes that nobody asked for are given back.
            line.end();
            assert_eq!(line.closed, [FdId(5), FdId(6)]);
        },
        |client| {
            refused_reply(client.walk(FD, &[b"a"]), Errno::EIO);
            refused_reply(client.walk_stat(FD, &[b"a"]), Errno::EIO);
            refused_reply(client.getdents64(FD, 100), Errno::EIO);
            refused_reply(client.flist_xattr(FD, 0), Errno::EIO);
            refused_reply(client.read_link_at(FD), Errno::EIO);
            refused_reply(client.walk(FD, &[b"a"]), Errno::EIO);
            refused_reply(client.walk_stat(FD, &[b"a"]), Errno::EIO);
            client.flush_closes().unwrap();
        },
    );
}

#[test]
fn the_length_of_what_was_read_is_checked_against_reply_and_request() {
    over_both(
        |line| {
            let five = encode(&PReadReply { data: Data::new(b"hello").unwrap() });
            let announcing = |len: u64| [&len.to_le_bytes(), b"hello".as_slice()].concat();
            line.answer_raw(Mid::PREAD, &announcing(6), &[]);
            line.answer_raw(Mid::PREAD, &announcing(u64::MAX), &[]);
            line.answer_raw(Mid::PREAD, &five[..7], &[]);
            line.answer_raw(Mid::PREAD, &five, &[]);
            line.answer_raw(Mid::PREAD, &announcing(4), &[]);
            line.answer_raw(Mid::PREAD, &announcing(0), &[]);
            line.end();
        },
        |client| {
            let mut room = [0; 10];
            refused_reply(client.pread(FD, 0, &mut room), Errno::EIO);
            refused_reply(client.pread(FD, 0, &mut room), Errno::EIO);
            refused_reply(client.pread(FD, 0, &mut room), Errno::EIO);
            refused_reply(client.pread(FD, 0, &mut room[..4]), Errno::EIO);
            assert_eq!(client.pread(FD, 0, &mut room).unwrap(), 4);
            assert_eq!(room[..4], *b"hell");
            assert_eq!(client.pread(FD, 0, &mut room).unwrap(), 0);
        },
    );
}

#[test]
fn no_more_bytes_are_written_than_were_sent() {
    over_both(
        |line| {
            let request = line.answer(Mid::PWRITE, &PWriteReply { count: 5 });
            let data = Data::new(b"hello").unwrap();
            assert_eq!(decode(&request), Ok(PWriteRequest { offset: 3, fd: FD, data }));
            line.answer(Mid::PWRITE, &PWriteReply { count: 6 });
            line.answer(Mid::PWRITE, &PWriteReply { count: u64::MAX });
            line.end();
        },
        |client| {
            assert_eq!(client.pwrite(FD, 3, b"hello").unwrap(), 5);
            refused_reply(client.pwrite(FD, 3, b"hello"), Errno::EIO);
            refused_reply(client.pwrite(FD, 3, b"hello"), Errno::EIO);
        },
    );
}

#[test]
fn a_donated_descriptor_is_the_callers_and_every_other_is_closed() {
    let file = tempfile::tempfile().unwrap();
    let same = file.try_clone().unwrap();
    for options in [OVER_SOCKET, crate::peer::OVER_CHANNEL] {
        let (file, same) = (same.try_clone().unwrap(), file.try_clone().unwrap());
        let over = options.clone();
        let (client, server) = with_script(&options, move |mut peer| {
            peer.mount();
            let mut line = peer.line(&over);
            let opened = encode(&OpenAtReply { open_fd: FdId(9) });
            let fd = file.as_fd();
            line.answer_raw(Mid::OPEN_AT, &opened, &[fd]);
            line.answer_raw(Mid::OPEN_AT, &opened, &[fd, fd]);
            line.answer_raw(Mid::OPEN_AT, &opened, &[]);
            line.answer_raw(Mid::OPEN_AT, &opened[..7], &[fd]);
            line.answer_raw(Mid::ERROR, &5u32.to_le_bytes(), &[fd]);
            line.answer_raw(Mid::FSTAT, &opened, &[fd]);
            line.answer_raw(Mid::FSTAT, &[0; 144], &[fd, fd]);
            line.answer_raw(Mid::ACCEPT, &[0, 0], &[]);
            line.answer_raw(Mid::ACCEPT, &[0, 0], &[fd]);
            line.end();
        });
        let client = client.unwrap();
        let others = copies_of(&same);
        let donated = client.open_at(FD, 0).unwrap().donated.unwrap();
        assert_eq!(copies_of(&same), others + 1);
        drop(donated);
        let donated = client.open_at(FD, 0).unwrap().donated;
        assert!(donated.is_some());
        assert_eq!(copies_of(&same), others + 1, "the second one");
        drop(donated);
        assert!(client.open_at(FD, 0).unwrap().donated.is_none());
        assert_eq!(errno(client.open_at(FD, 0)), Errno::EIO);
        assert_eq!(errno(client.open_at(FD, 0)), Errno::EIO);
        assert_eq!(errno(client.open_at(FD, 0)), Errno::EINVAL);
        assert!(client.fstat(FD).is_ok());
        assert_eq!(copies_of(&same), others);
        assert_eq!(errno(client.accept(FD)), Errno::EBADF);
        let accepted = client.accept(FD).unwrap();
        assert_eq!(copies_of(&same), others + 1);
        drop(accepted);
        drop(client);
        server.join().unwrap();
    }
}

#[test]
fn what_the_server_has_not_announced_is_not_asked_for() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount_with(MAX_MESSAGE_SIZE, &[Mid::MOUNT, Mid::CLOSE, Mid(300)]);
        assert_eq!(crate::peer::receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    let error = client.fstat(FD).unwrap_err();
    assert_eq!(error.errno(), Errno::EOPNOTSUPP);
    assert!(matches!(error.kind(), ErrorKind::Refused(_)));
    assert_eq!(errno(client.pread(FD, 0, &mut [0])), Errno::EOPNOTSUPP);
    assert_eq!(errno(client.pwrite(FD, 0, &[0])), Errno::EOPNOTSUPP);
    // A server that does not know this message does not need to know.
    client.flush(FD).unwrap();
    drop(client);
    server.join().unwrap();
}

#[test]
fn what_is_beyond_a_limit_is_not_sent() {
    let (client, server) = with_script(&OVER_SOCKET, |mut peer| {
        peer.mount_with(70_000, Mid::ALL);
        assert_eq!(crate::peer::receive(&mut peer.socket), None);
    });
    let client = client.unwrap();
    let refused = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused(_)), "{error}");
        error.errno()
    };
    let create = CreateCommon::new(FD, Uid::NONE, Gid::NONE, FileMode(0));
    let long = vec![b'a'; 65_536];
    assert_eq!(client.max_write(), 69_980);
    assert_eq!(refused(client.pwrite(FD, 0, &vec![0; 69_981]).map(drop)), Errno::EIO);
    assert_eq!(client.max_read(), 69_992);
    assert_eq!(refused(client.pread(FD, 0, &mut vec![0; 69_993]).map(drop)), Errno::ENOBUFS);
    assert_eq!(refused(client.mkdir_at(create, &long).map(drop)), Errno::ENAMETOOLONG);
    assert_eq!(refused(client.symlink_at(FD, Uid::NONE, Gid::NONE, b"a", &long).map(drop)), Errno::ENAMETOOLONG);
    assert_eq!(refused(client.fset_xattr(FD, b"user.a", &long, 0)), Errno::ENAMETOOLONG);
    assert_eq!(refused(client.walk(FD, &[&long]).map(drop)), Errno::ENAMETOOLONG);
    assert_eq!(refused(client.walk(FD, &vec![&b"a"[..]; 65_536]).map(drop)), Errno::ENAMETOOLONG);
    assert_eq!(refused(client.fsync(&vec![FD; 65_536])), Errno::E2BIG);
    // Within each limit of its own, but not in one message.
    assert_eq!(refused(client.fset_xattr(FD, &long[1..], &long[1..], 0)), Errno::EIO);
    assert_eq!(refused(client.fsync(&vec![FD; 10_000])), Errno::EIO);
    drop(client);
    server.join().unwrap();
}

/// One call of each method, with the request that it sends and the reply that it reads.
#[test]
fn every_message_has_a_method() {
    over_both(
        |line| {
            let file = inode(20, FileType::Regular);
            let names = StringArrayBuf::new([&b"user.a"[..], b"user.b"]).unwrap();
            let nothing = Empty {};
            let tempfile = tempfile::tempfile().unwrap();
            let mut asked = Vec::new();
            while let Some((mid, request)) = line.receive() {
                let (payload, donates) = match mid {
                    Mid::MOUNT => {
                        let supported = Array::new(Mid::ALL).unwrap();
                        let max_message_size = MAX_MESSAGE_SIZE;
                        (encode(&MountReply { root: file, max_message_size, supported }), true)
                    }
                    Mid::SET_STAT => (encode(&SetStatReply { failure_mask: StatxMask::MODE, failure_errno: 1 }), false),
                    Mid::FSTAT_FS => (vec![0; 64], false),
                    Mid::WALK => {
                        let inodes = Array::new(std::slice::from_ref(&file)).unwrap();
                        (encode(&WalkReply { status: WalkStatus::MISSING, inodes }), false)
                    }
                    Mid::WALK_STAT => (encode(&WalkStatReply { stats: Array::new(&[file.stat]).unwrap() }), false),
                    Mid::OPEN_AT => (encode(&OpenAtReply { open_fd: FdId(21) }), true),
                    Mid::OPEN_CREATE_AT => (encode(&OpenCreateAtReply { child: file, open_fd: FdId(22) }), true),
                    Mid::MKDIR_AT | Mid::MKNOD_AT | Mid::SYMLINK_AT | Mid::LINK_AT => (encode(&file), false),
                    Mid::FSTAT => (encode(&file.stat), false),
                    Mid::PWRITE => (encode(&PWriteReply { count: 1 }), false),
                    Mid::PREAD => (encode(&PReadReply { data: Data::new(b"x").unwrap() }), false),
                    Mid::READ_LINK_AT | Mid::FGET_XATTR => (vec![1, 0, b'x'], false),
                    Mid::GETDENTS64 => (vec![0, 0], false),
                    Mid::FLIST_XATTR => (encode(&FListXattrReply { names: names.as_array() }), false),
                    Mid::BIND_AT => (encode(&BindAtReply { child: file, bound_fd: FdId(23) }), true),
                    Mid::ACCEPT => (vec![0, 0], true),
                    Mid::CONNECT | Mid::CONNECT_WITH_CREDS => (encode(&nothing), true),
                    _ => (encode(&nothing), false),
                };
                let fd = tempfile.as_fd();
                line.send(mid, &payload, if donates { std::slice::from_ref(&fd) } else { &[] });
                asked.push(mid);
                assert!(!request.is_empty() || mid == Mid::MOUNT);
            }
            let all: Vec<Mid> =
                Mid::ALL.iter().copied().filter(|mid| !matches!(*mid, Mid::ERROR | Mid::CHANNEL)).collect();
            assert_eq!(line.closed, [FD]);
            asked.push(Mid::CLOSE);
            asked.sort_unstable();
            assert_eq!(asked, all);
        },
        |client| {
            let create = CreateCommon::new(FD, Uid(1), Gid(2), FileMode(0o644));
            assert!(client.mount().unwrap().donated.is_some());
            client.fstat(FD).unwrap();
            let changes = SetStatRequest { mask: StatxMask::MODE, mode: 0o600, ..SetStatRequest::nothing(FD) };
            assert_eq!(client.set_stat(&changes).unwrap().failure_errno, 1);
            assert_eq!(client.walk(FD, &[b"a", b"b"]).unwrap().status, WalkStatus::MISSING);
            assert_eq!(client.walk_stat(FD, &[b""]).unwrap().len(), 1);
            assert!(client.open_at(FD, 0).unwrap().donated.is_some());
            assert_eq!(client.open_create_at(create, 2, b"a").unwrap().open_fd, FdId(22));
            client.close(&[FD]).unwrap();
            client.fsync(&[FD]).unwrap();
            assert_eq!(client.pwrite(FD, 0, b"xy").unwrap(), 1);
            assert_eq!(client.pread(FD, 0, &mut [0; 2]).unwrap(), 1);
            assert_eq!(client.mkdir_at(create, b"a").unwrap().control_fd, FdId(20));
            client.mknod_at(create, 0, 0, b"a").unwrap();
            client.symlink_at(FD, Uid(1), Gid(2), b"a", b"target").unwrap();
            client.link_at(FD, FdId(8), b"a").unwrap();
            client.fstat_fs(FD).unwrap();
            client.fallocate(FD, 0, 1, 2).unwrap();
            assert_eq!(client.read_link_at(FD).unwrap(), b"x");
            client.flush(FD).unwrap();
            client.connect_to(FD, 1).unwrap();
            client.unlink_at(FD, 0, b"a").unwrap();
            client.rename_at(FD, b"a", FD, b"b").unwrap();
            assert_eq!(client.getdents64(FD, 100).unwrap(), []);
            assert_eq!(client.fget_xattr(FD, b"user.a", 0).unwrap(), b"x");
            client.fset_xattr(FD, b"user.a", b"x", 0).unwrap();
            assert_eq!(client.flist_xattr(FD, 0).unwrap(), [b"user.a", b"user.b"]);
            client.fremove_xattr(FD, b"user.a").unwrap();
            assert_eq!(client.bind_at(create, 1, b"a").unwrap().bound_fd, FdId(23));
            client.listen(FD, 1).unwrap();
            assert_eq!(client.accept(FD).unwrap().peer_addr, b"");
            client.connect_with_creds(FD, 1, Uid(1), Gid(2)).unwrap();
            client.rename_at2(FD, b"a", FD, b"b", 1).unwrap();
        },
    );
}

#[test]
fn a_client_can_be_used_by_all_threads() {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<Client>();
    shareable::<Error>();
}
