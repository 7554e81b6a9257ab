//! What the clients of all generations rely on: a test for each habit that a server can be caught breaking.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

use gofer_integration::child::umask;
use gofer_integration::specimen::specimens;
use gofer_integration::{
    Ask, Exchange, Gofer, Raw, Served, Trial, change, fifo, new_in, nothing, over_both, over_both_unprivileged,
};
use gofer_protocol::message::{MountReply, MountRequest, SetStatReply, SetStatRequest, WalkStatus};
use gofer_protocol::record::{CreateCommon, FileMode, FileType, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId, Gid, Mid, Request, Uid, Wire};
use rustix::fs::{Mode, OFlags};

const READ: u32 = 0;
const WRITE: u32 = 1;
const READ_WRITE: u32 = 2;

fn file(dir: &Path, name: &str) {
    std::fs::write(dir.join(name), name).expect("a file");
}

// How a client mounts.

#[test]
fn a_client_that_asks_for_channels_from_all_sides_at_once_gets_four() {
    let served = Served::new();
    let first = served.client.on_channel();
    // Over the socket and over a channel that works already, at the same time.
    let (by_socket, by_channel) = std::thread::scope(|scope| {
        let over_channel = scope.spawn(|| (0..4).filter(|_| first.exchange(Mid::CHANNEL.0, &[]).is_ok()).count());
        let over_socket = (0..4).filter(|_| served.client.channel().is_ok()).count();
        (over_socket, over_channel.join().expect("no panic"))
    });
    assert_eq!(by_socket + by_channel, 3);
    assert_eq!(served.client.channel().map(drop), Err(Errno::ENOMEM), "which clients take for enough");
}

#[test]
fn a_mount_reply_fits_a_client_that_does_not_know_the_limit_yet() {
    let served = Served::new();
    let answer = served.client.ask(&MountRequest).expect("mount");
    assert!(answer.payload.len() <= usize::try_from(gofer_protocol::INITIAL_MESSAGE_SIZE).expect("small"));
    let MountReply { max_message_size, supported, .. } = answer.decode();
    assert!(max_message_size >= gofer_protocol::INITIAL_MESSAGE_SIZE, "channels carry at least what sockets do");
    assert!(!supported.is_empty() && supported.iter().all(|mid| mid.0 < 1000), "a client sizes a table by the largest");
    let needed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 29];
    assert!(needed.iter().all(|mid| supported.iter().any(|known| known.0 == *mid)));
    assert!(supported.iter().all(|mid| mid != Mid::FLUSH && mid != Mid::ERROR));
}

/// As clients of the oldest generation receive: without room for descriptors.
#[test]
fn a_client_without_room_for_descriptors_loses_them_and_nothing_else() {
    let served = Served::with(&["--donate-mount-point"], |dir| file(dir, "f"));
    let ask = |mid: Mid, payload: &[u8]| {
        served.client.send(mid.0, payload);
        let mut header = [0; 8];
        (&served.client.stream).read_exact(&mut header).expect("a header");
        let [l0, l1, l2, l3, m0, m1, ..] = header;
        let mut payload = vec![0; usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).expect("small")];
        (&served.client.stream).read_exact(&mut payload).expect("a payload");
        (Mid(u16::from_le_bytes([m0, m1])), payload)
    };
    let (mid, payload) = ask(Mid::MOUNT, &[]);
    assert_eq!((mid, payload.len()), (Mid::MOUNT, 222));
    let fd = served.client.walk_to(served.root, "f");
    let (mid, payload) = ask(Mid::OPEN_AT, &[&fd.0.to_le_bytes()[..], &[0; 8]].concat());
    assert_eq!((mid, payload.len()), (Mid::OPEN_AT, 8));
    assert!(served.client.fstat(fd).is_ok());
}

#[test]
fn a_directfs_client_works_on_the_donated_root_and_asks_for_the_rest() {
    let served = Served::with(&["--donate-mount-point", "--host-uds=all"], |dir| {
        std::fs::create_dir(dir.join("d")).expect("a directory");
        file(dir, "d/f");
        symlink("f", dir.join("d/l")).expect("a link");
    });
    let (root, donated) = served.client.mounted().expect("mount");
    let [root_fd] = <[OwnedFd; 1]>::try_from(donated).expect("the mount point");
    // Its own work.
    let opened = rustix::fs::openat(&root_fd, "d/f", OFlags::RDONLY, Mode::empty()).expect("open");
    assert_eq!(rustix::io::read(&opened, &mut [0; 9]), Ok(3));
    assert!(rustix::fs::openat(&root_fd, "new", OFlags::CREATE | OFlags::RDWR, Mode::RUSR).is_ok());
    // What needs the server: the root anew, whose number is closed at once,
    let (open, donated) = served.client.open(root.control_fd, READ).expect("open");
    assert_eq!(donated.len(), 1);
    served.client.close(&[open]);
    assert!(rustix::fs::fstat(&donated[0]).is_ok());
    // sockets,
    let dir = served.client.walk_to(root.control_fd, "d");
    let (child, bound, _) = served.client.bind(new_in(dir, FileType::Socket, 0o600), 1, "s").expect("bind");
    served.client.listen(bound, 4).expect("listen");
    let found = served.client.walk_to(root.control_fd, "d/s");
    assert!(served.client.connect(found, 1).is_ok());
    assert!(served.client.accept(bound).is_ok());
    // times and attributes of what cannot be opened.
    let link = served.client.walk_to(root.control_fd, "d/l");
    for fd in [link, child.control_fd] {
        let mtime = Timespec { seconds: 9, nanoseconds: 9 };
        let request = SetStatRequest { mtime, ..change(fd, StatxMask::MTIME) };
        let applied = SetStatReply { failure_mask: StatxMask(0), failure_errno: 0 };
        assert_eq!(served.client.set_stat(&request), Ok(applied));
        assert_eq!(served.client.get_xattr(fd, 0, "security.x"), Err(Errno::ENODATA));
        assert!(served.client.list_xattr(fd, 0).is_ok());
    }
    // And everything else all the same: whoever asks is served.
    assert!(served.client.channel().is_ok());
    assert_eq!(Ask::walk_stat(&served.client, root.control_fd, &["d", "f"]).map(|stats| stats.len()), Ok(2));
}

#[test]
fn a_mount_point_that_is_a_socket_has_its_mode_set_by_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let (_gofer, stream) = Gofer::serve(&path, &["--donate-mount-point"]);
    let client = Raw::new(stream);
    let (root, _) = client.mounted().expect("mount");
    assert_eq!(client.chmod(root.control_fd, 0o604).map(|reply| reply.failure_mask.0), Ok(0));
    assert_eq!(path.metadata().expect("metadata").permissions().mode() & 0o7777, 0o604);
}

// Attributes.

#[test]
fn every_inode_has_a_type_and_regular_files_a_size() {
    over_both(
        &["--host-uds=all"],
        |dir| {
            file(dir, "f");
            symlink("f", dir.join("l")).expect("a link");
        },
        |t| {
            let owner = (Uid::NONE, Gid::NONE);
            let target = t.client.walk_to(t.root, "f");
            let inodes = [
                t.client.mounted().expect("mount").0,
                t.client.find(t.root, "f"),
                t.client.find(t.root, "l"),
                t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "c").expect("create").0,
                t.client.mkdir(new_in(t.root, FileType::Directory, 0o700), "d").expect("mkdir"),
                t.client.mknod(new_in(t.root, FileType::Regular, 0o600), (0, 0), "n").expect("mknod"),
                t.client.symlink_as(t.root, owner, "s", b"f").expect("symlink"),
                t.client.link(t.root, target, "h").expect("link"),
                t.client.bind(new_in(t.root, FileType::Socket, 0o700), 1, "b").expect("bind").0,
            ];
            for inode in inodes {
                assert!(inode.stat.mask.contains(StatxMask::TYPE.or(StatxMask::SIZE)), "{:?}", inode.stat.mode);
                assert!(inode.stat.mode.file_type().is_some());
                assert!(inode.stat.nlink > 0 && inode.stat.blksize > 0 && inode.stat.ino != 0);
            }
        },
    );
}

#[test]
fn one_file_has_one_identity_wherever_it_is_met() {
    over_both(&[], nothing, |t| {
        let identity = |stat: gofer_protocol::record::Statx| (stat.ino, (stat.dev_major, stat.dev_minor));
        let (created, open, _) =
            t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "f").expect("create");
        let linked = t.client.link(t.root, created.control_fd, "g").expect("link");
        let (listing, _) = t.client.open(t.root, READ).expect("open");
        let expected = identity(created.stat);
        assert_eq!(identity(t.client.find(t.root, "f").stat), expected);
        assert_eq!(identity(t.client.find(t.root, "g").stat), expected);
        assert_eq!(identity(linked.stat), expected);
        assert_eq!(identity(t.client.fstat(created.control_fd).expect("stat")), expected);
        assert_eq!(identity(t.client.fstat(open).expect("stat")), expected);
        assert_eq!(identity(t.client.walk_stat(t.root, &["g"]).expect("walk")[0]), expected);
        for entry in t.client.list(listing) {
            assert_eq!((entry.ino, entry.device), expected);
        }
    });
}

#[test]
fn times_are_exact_to_the_nanosecond() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let mtime = Timespec { seconds: 1_234_567_890, nanoseconds: 987_654_321 };
            t.client.set_stat(&SetStatRequest { mtime, ..change(fd, StatxMask::MTIME) }).expect("a reply");
            for stat in [t.client.fstat(fd).expect("stat"), t.client.walk_stat(fd, &[""]).expect("walk")[0]] {
                assert_eq!((stat.mtime.seconds, stat.mtime.nanoseconds), (1_234_567_890, 987_654_321));
            }
        },
    );
}

#[test]
fn a_success_of_set_stat_has_neither_bits_nor_errno() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            for mask in [StatxMask(0), StatxMask::MODE, StatxMask::SIZE, StatxMask::MTIME, StatxMask::UID] {
                let reply = t.client.set_stat(&SetStatRequest { mode: 0o600, ..change(fd, mask) }).expect("a reply");
                assert_eq!((reply.failure_mask.0, reply.failure_errno), (0, 0));
            }
        },
    );
}

// Errnos with a meaning.

#[test]
fn fifos_sockets_and_binds_are_eperm_so_that_clients_make_their_own() {
    over_both(&[], nothing, |t| {
        for file_type in [FileType::Fifo, FileType::Socket] {
            assert_eq!(t.client.mknod(new_in(t.root, file_type, 0o600), (0, 0), "x"), Err(Errno::EPERM));
        }
        assert_eq!(t.client.bind(new_in(t.root, FileType::Socket, 0o600), 1, "x").map(drop), Err(Errno::EPERM));
        // Which a client does only if a walk finds nothing.
        assert_eq!(t.client.walk(t.root, &["x"]), Ok((WalkStatus::MISSING, Vec::new())));
    });
}

#[test]
fn a_mount_points_directory_that_exists_is_eexist() {
    over_both(
        &[],
        |dir| std::fs::create_dir(dir.join("d")).expect("a directory"),
        |t| {
            assert_eq!(t.client.mkdir(new_in(t.root, FileType::Directory, 0o755), "d"), Err(Errno::EEXIST));
        },
    );
}

#[test]
fn a_walk_that_finds_nothing_has_status_and_count_to_say_so() {
    over_both(
        &[],
        |dir| symlink("x", dir.join("l")).expect("a link"),
        |t| {
            // The older clients read the status, the newer ones the count.
            assert_eq!(t.client.walk(t.root, &["missing", "x"]), Ok((WalkStatus::MISSING, Vec::new())));
            let (status, inodes) = t.client.walk(t.root, &["l", "x"]).expect("walk");
            assert_eq!((status, inodes.len()), (WalkStatus::SYMLINK, 1));
        },
    );
}

#[test]
fn a_read_write_open_that_is_refused_is_eacces_and_the_retry_succeeds() {
    over_both_unprivileged(
        &[],
        |dir| {
            file(dir, "f");
            std::fs::set_permissions(dir.join("f"), PermissionsExt::from_mode(0o444)).expect("a mode");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(t.client.open(fd, READ_WRITE).map(drop), Err(Errno::EACCES));
            assert!(t.client.open(fd, READ).is_ok());
        },
    );
}

#[test]
fn a_fifo_without_a_reader_is_enxio_until_there_is_one() {
    over_both(
        &["--host-fifo=open"],
        |dir| {
            fifo(&dir.join("p"));
        },
        |t| {
            let fd = t.client.walk_to(t.root, "p");
            assert_eq!(t.client.open(fd, WRITE).map(drop), Err(Errno::ENXIO));
            let (reader, _donated) = t.client.open(fd, READ).expect("open");
            let (writer, donated) = t.client.open(fd, WRITE).expect("open");
            // A client looks for a writer by tee(2) and waits by epoll, so it needs the descriptor itself.
            assert_eq!(donated.len(), 1);
            t.client.close(&[reader, writer]);
        },
    );
}

#[test]
fn reading_at_the_end_is_no_bytes_and_no_error() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let (open, _) = t.client.open(t.client.walk_to(t.root, "f"), READ).expect("open");
            assert_eq!(t.client.pread(open, 1, 4096), Ok(Vec::new()));
        },
    );
}

#[test]
fn an_absent_attribute_is_enodata() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            for name in ["user.absent", "security.capability"] {
                assert_eq!(t.client.get_xattr(fd, 0, name), Err(Errno::ENODATA), "{name}");
                assert_eq!(t.client.get_xattr(fd, 65_536, name), Err(Errno::ENODATA), "{name}");
            }
        },
    );
}

/// Clients of one generation take the length of what comes for a size of 0 as the value's; others ask with the largest.
#[test]
fn every_generation_learns_an_attributes_size() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            t.client.set_xattr(fd, 0, "user.k", &[7; 300]).expect("set");
            assert_eq!(t.client.get_xattr(fd, 0, "user.k"), Ok(vec![7; 300]));
            assert_eq!(t.client.get_xattr(fd, 65_536, "user.k"), Ok(vec![7; 300]));
            assert_eq!(t.client.get_xattr(fd, 299, "user.k"), Err(Errno::ERANGE));
        },
    );
}

// Donated descriptors.

#[test]
fn a_donated_file_is_read_written_synced_and_mapped_shared() {
    over_both(&[], nothing, |t| {
        let (_, open, donated) =
            t.client.open_create(new_in(t.root, FileType::Regular, 0o600), READ_WRITE, "f").expect("create");
        let [fd] = <[OwnedFd; 1]>::try_from(donated).expect("one descriptor");
        assert_eq!(rustix::io::pwrite(&fd, b"by itself", 0), Ok(9));
        assert_eq!(t.client.pread(open, 0, 99), Ok(b"by itself".to_vec()));
        assert_eq!(t.client.pwrite(open, 0, b"by server"), Ok(9));
        let mut bytes = [0; 9];
        assert_eq!(rustix::io::pread(&fd, &mut bytes, 0), Ok(9));
        assert_eq!(&bytes, b"by server");
        assert!(rustix::fs::fsync(&fd).is_ok() && rustix::fs::fdatasync(&fd).is_ok());
        assert!(maps_shared(&fd));
        // It is the client's: what becomes of the number does not matter.
        t.client.close(&[open]);
        assert_eq!(rustix::io::pread(&fd, &mut bytes, 0), Ok(9));
    });
}

#[allow(unsafe_code, reason = "whether a file can be mapped shows by mapping it")]
fn maps_shared(fd: impl AsFd) -> bool {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: with a null address the kernel picks a free range, so no existing memory is affected.
    let mapped = unsafe { mmap(std::ptr::null_mut(), 4096, prot, MapFlags::SHARED, fd, 0) };
    // SAFETY: the range was just mapped, and nothing refers to it.
    mapped.is_ok_and(|address| unsafe { munmap(address, 4096) }.is_ok())
}

#[test]
fn one_handle_opened_for_both_serves_both_directions() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let (open, donated) = t.client.open(t.client.walk_to(t.root, "f"), READ_WRITE).expect("open");
            assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
            assert_eq!(t.client.pwrite(open, 0, b"g"), Ok(1));
            let mode = rustix::fs::fcntl_getfl(&donated[0]).expect("flags") & OFlags::ACCMODE;
            assert_eq!(mode, OFlags::RDWR);
        },
    );
}

#[test]
fn connections_are_unix_sockets_that_come_with_success() {
    over_both(&["--host-uds=all"], nothing, |t| {
        let (child, bound, polled) = t.client.bind(new_in(t.root, FileType::Socket, 0o700), 1, "s").expect("bind");
        t.client.listen(bound, 4).expect("listen");
        let connected = t.client.connect(child.control_fd, 1).expect("connect");
        let accepted = t.client.accept(bound).expect("accept");
        for fd in [&polled, &connected, &accepted] {
            let domain = rustix::net::sockopt::socket_domain(fd).expect("a socket");
            assert_eq!(domain, rustix::net::AddressFamily::UNIX);
        }
        UnixStream::from(connected).write_all(b"x").expect("write");
        assert_eq!(rustix::io::read(&accepted, &mut [0; 4]), Ok(1));
    });
}

// Other habits.

#[test]
fn descriptors_are_closed_a_hundred_at_a_time() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let held: Vec<FdId> = (0..100).map(|_| t.client.walk_to(t.root, "f")).collect();
            let before = t.descriptors();
            t.client.close(&held);
            assert_eq!(t.descriptors(), before - 100);
            assert!(held.iter().all(|fd| t.client.fstat(*fd) == Err(Errno::EBADF)));
        },
    );
}

#[test]
fn a_hostile_umask_does_not_touch_the_modes_that_clients_send() {
    let dir = tempfile::tempdir().expect("a directory");
    // The server inherits it.
    let (_gofer, stream) = Gofer::serve_with(dir.path(), &["--host-uds=all"], |command| umask(command, 0o777));
    let client = Raw::new(stream);
    let root = client.mount();
    client.mkdir(new_in(root, FileType::Directory, 0o777), "d").expect("mkdir");
    client.mknod(new_in(root, FileType::Regular, 0o666), (0, 0), "n").expect("mknod");
    client.open_create(new_in(root, FileType::Regular, 0o666), 2, "c").expect("create");
    client.bind(new_in(root, FileType::Socket, 0o777), 1, "s").expect("bind");
    for (name, mode) in [("d", 0o777), ("n", 0o666), ("c", 0o666), ("s", 0o777)] {
        let metadata = dir.path().join(name).symlink_metadata().expect("metadata");
        assert_eq!(metadata.permissions().mode() & 0o7777, mode, "{name}");
    }
}

/// Clients compute the group in a setgid directory themselves, and add the bit for directories.
#[test]
fn a_directory_made_setgid_by_its_client_in_a_setgid_directory_is() {
    over_both(
        &[],
        |dir| {
            std::fs::create_dir(dir.join("d")).expect("a directory");
            std::os::unix::fs::chown(dir.join("d"), None, Some(77)).expect("a group");
            std::fs::set_permissions(dir.join("d"), PermissionsExt::from_mode(0o2777)).expect("a mode");
        },
        |t| {
            let mode = FileMode::new(FileType::Directory, 0o2755);
            let create = CreateCommon::new(t.client.walk_to(t.root, "d"), Uid(5), Gid(77), mode);
            let child = t.client.mkdir(create, "e").expect("mkdir");
            assert_eq!((child.stat.mode.permissions(), child.stat.gid), (0o2755, 77));
        },
    );
}

/// After a write to a setuid file clients send the mode without the bit.
#[test]
fn a_mode_is_set_after_a_write() {
    over_both(
        &[],
        |dir| {
            file(dir, "f");
            std::fs::set_permissions(dir.join("f"), PermissionsExt::from_mode(0o4755)).expect("a mode");
        },
        |t| {
            let control = t.client.walk_to(t.root, "f");
            let (open, _) = t.client.open(control, WRITE).expect("open");
            t.client.pwrite(open, 0, b"x").expect("write");
            assert_eq!(t.client.chmod(control, 0o755).map(|reply| reply.failure_mask.0), Ok(0));
            assert_eq!(t.permissions("f"), 0o755);
        },
    );
}

#[test]
fn a_listing_is_one_rewound_request_then_more_until_nothing_comes() {
    over_both(
        &[],
        |dir| (0..3000).for_each(|number| file(dir, &format!("a-longer-name-{number}"))),
        |t| {
            let (open, _) = t.client.open(t.root, READ).expect("open");
            for _ in 0..2 {
                let mut all = t.client.getdents(open, -65_536).expect("a listing");
                assert!(all.len() > 1000, "65,536 bytes of records hold more than {}", all.len());
                loop {
                    let more = t.client.getdents(open, 65_536).expect("a listing");
                    if more.is_empty() {
                        break;
                    }
                    all.extend(more);
                }
                assert_eq!(all.len(), 3000);
            }
        },
    );
}

#[test]
fn a_long_walk_stops_early_and_a_leading_empty_name_revalidates() {
    over_both(
        &[],
        |dir| std::fs::create_dir_all(dir.join(["x"; 10].join("/"))).expect("directories"),
        |t| {
            let (status, inodes) = t.client.walk(t.root, &["x"; 20]).expect("walk");
            assert_eq!((status, inodes.len()), (WalkStatus::MISSING, 10));
            let path = [&[""][..], &["x"; 10]].concat();
            let before = t.client.walk_stat(t.root, &path).expect("walk");
            assert_eq!(before.len(), 11);
            std::fs::rename(t.host(&["x"; 3].join("/")), t.host("moved")).expect("rename");
            assert_eq!(t.client.walk_stat(t.root, &path).map(|stats| stats.len()), Ok(3), "it is told what is gone");
        },
    );
}

#[test]
fn removed_files_are_opened_to_be_saved() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            t.client.unlink(t.root, "f").expect("unlink");
            for flags in [READ, READ_WRITE] {
                let (open, donated) = t.client.open(fd, flags).expect("open");
                assert_eq!((t.client.pread(open, 0, 9), donated.len()), (Ok(b"f".to_vec()), 1));
            }
        },
    );
}

/// As after a restore: a new connection, a walk for each entry, missing mount points made, handles opened.
#[test]
fn a_new_connection_finds_everything_again() {
    let served = Served::with(&[], |dir| {
        std::fs::create_dir(dir.join("d")).expect("a directory");
        file(dir, "d/f");
    });
    let before = served.client.walk_to(served.root, "d/f");
    let identity = |stat: gofer_protocol::record::Statx| (stat.ino, stat.dev_major, stat.dev_minor, stat.mtime);
    let expected = identity(served.client.fstat(before).expect("stat"));
    let (_gofer, stream) = Gofer::serve(served.path(), &[]);
    let restored = Raw::new(stream);
    let root = restored.mount();
    let dir = restored.find(root, "d");
    let file = restored.find(dir.control_fd, "f");
    assert_eq!(identity(file.stat), expected);
    restored.mkdir(new_in(root, FileType::Directory, 0o755), "vanished").expect("mkdir");
    assert!(restored.open(file.control_fd, READ_WRITE).is_ok());
    assert!(served.client.fstat(before).is_ok());
}

/// Clients bound their data by these, and take a short count for the end.
#[test]
fn data_comes_in_chunks_of_the_announced_limit() {
    over_both(&[], nothing, |t| {
        let (_, open, _) = t.client.open_create(new_in(t.root, FileType::Regular, 0o600), 2, "f").expect("create");
        let limit = 2_093_056usize;
        let whole = vec![5; 3 * (1 << 20)];
        let mut written = 0;
        for chunk in whole.chunks(limit - 20) {
            let count = t.client.pwrite(open, written, chunk).expect("write");
            assert_eq!(usize::try_from(count), Ok(chunk.len()));
            written += count;
        }
        let mut read = Vec::new();
        loop {
            let count = u32::try_from(limit - 8).expect("small");
            let chunk = t.client.pread(open, read.len() as u64, count).expect("read");
            let short = chunk.len() < limit - 8;
            read.extend(chunk);
            if short {
                break;
            }
        }
        assert!(read == whole);
    });
}

#[test]
fn nothing_but_the_requests_number_or_zero_answers_it() {
    over_both(&[], nothing, |t| {
        for request in specimens(FdId::NONE, b"x") {
            // The exchange itself insists on it, and on four bytes of errno.
            let _ = t.client.exchange(request.mid.0, &request.payload);
        }
    });
}

// One server for all generations.

fn requests_of(t: &Trial<'_>, mids: impl Iterator<Item = u16>) -> Vec<(u16, Result<(), Errno>)> {
    mids.map(|mid| (mid, t.client.exchange(mid, &[]).map(drop))).collect()
}

#[test]
fn messages_that_older_servers_executed_unannounced_are_eopnotsupp() {
    over_both(&[], nothing, |t| {
        for (mid, answered) in requests_of(t, [0, 20].into_iter()) {
            assert_eq!(answered, Err(Errno::EOPNOTSUPP), "{mid}");
        }
        for (mid, answered) in requests_of(t, [27, 28, 32, 33].into_iter()) {
            assert_eq!(answered, Err(Errno::EIO), "{mid} is announced, so its payload is looked at");
        }
    });
}

#[test]
fn attributes_come_in_the_first_144_bytes_of_statx_with_all_that_fstat_has() {
    over_both(
        &[],
        |dir| file(dir, "f"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            let mut payload = Vec::new();
            gofer_protocol::message::FStatRequest { fd }.put(&mut payload);
            let answer = t.client.exchange(gofer_protocol::message::FStatRequest::MID.0, &payload).expect("stat");
            assert_eq!(answer.payload.len(), 144);
            let mask = u32::from_le_bytes(answer.payload[..4].try_into().expect("four bytes"));
            assert_eq!(mask & 0x7ff, 0x7ff);
            assert_eq!(answer.payload[32..40], t.metadata("f").ino().to_le_bytes());
        },
    );
}

#[test]
fn symlinks_have_no_mode_and_say_so() {
    over_both(
        &[],
        |dir| symlink("x", dir.join("l")).expect("a link"),
        |t| {
            let reply = t.client.chmod(t.client.walk_to(t.root, "l"), 0o600).expect("a reply");
            assert_eq!((reply.failure_mask, reply.failure_errno), (StatxMask::MODE, Errno::EOPNOTSUPP.raw()));
        },
    );
}

#[test]
fn a_rename_without_flags_is_the_same_by_both_messages() {
    over_both(
        &[],
        |dir| file(dir, "a"),
        |t| {
            t.client.rename((t.root, "a"), (t.root, "b")).expect("rename");
            t.client.rename2((t.root, "b"), (t.root, "c"), 0).expect("rename");
            assert!(t.exists("c") && !t.exists("a") && !t.exists("b"));
        },
    );
}
