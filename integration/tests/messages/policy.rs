//! What policy lets clients do with sockets, FIFOs and devices of the host: one matrix.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use gofer_integration::{Ask, Trial, new_in, nothing, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, Gid, Uid};
use rustix::fs::OFlags;

use super::{READ, READ_WRITE, WRITE, access, fifo, never_waits, null_device, socket_file};

const SOCKETS: [&str; 4] = ["none", "open", "create", "all"];

fn landscape(dir: &Path) {
    fifo(&dir.join("fifo"));
    socket_file(&dir.join("socket"));
    null_device(&dir.join("null"));
}

fn open(t: &Trial<'_>, name: &str, flags: u32) -> Result<usize, Errno> {
    t.client.open(t.client.walk_to(t.root, name), flags).map(|(_, donated)| donated.len())
}

#[test]
fn by_default_nothing_special_is_opened() {
    over_both(&[], landscape, |t| {
        for name in ["fifo", "socket", "null"] {
            for flags in [READ, WRITE, READ_WRITE] {
                assert_eq!(open(t, name, flags), Err(Errno::EPERM), "{name} {flags}");
            }
        }
    });
}

#[test]
fn each_switch_opens_its_own_type() {
    for (switch, fifo, socket, null) in [
        ("--host-fifo=open", Ok(1), Err(Errno::EPERM), Err(Errno::EPERM)),
        ("--host-fifo=none", Err(Errno::EPERM), Err(Errno::EPERM), Err(Errno::EPERM)),
        // A socket cannot be opened, allowed or not.
        ("--host-uds=open", Err(Errno::EPERM), Err(Errno::ENXIO), Err(Errno::EPERM)),
        ("--host-uds=all", Err(Errno::EPERM), Err(Errno::ENXIO), Err(Errno::EPERM)),
        ("--host-uds=create", Err(Errno::EPERM), Err(Errno::EPERM), Err(Errno::EPERM)),
        ("--character-device-policy=emulated-only", Err(Errno::EPERM), Err(Errno::EPERM), Err(Errno::EPERM)),
        ("--character-device-policy=prefer-emulated", Err(Errno::EPERM), Err(Errno::EPERM), Ok(1)),
        ("--character-device-policy=passthrough", Err(Errno::EPERM), Err(Errno::EPERM), Ok(1)),
    ] {
        over_both(&[switch], landscape, |t| {
            for (name, expected) in [("fifo", fifo), ("socket", socket), ("null", null)] {
                assert_eq!(open(t, name, READ), expected, "{name} under {switch}");
            }
        });
    }
}

#[test]
fn a_read_only_connection_opens_what_policy_allows_for_reading() {
    let flags = &["--readonly", "--host-fifo=open", "--character-device-policy=passthrough"];
    over_both(flags, landscape, |t| {
        for name in ["fifo", "null"] {
            assert_eq!(open(t, name, READ), Ok(1), "{name}");
            assert_eq!(open(t, name, WRITE), Err(Errno::EROFS), "{name}");
            assert_eq!(open(t, name, READ_WRITE), Err(Errno::EROFS), "{name}");
        }
        assert_eq!(open(t, "socket", WRITE), Err(Errno::EROFS), "before policy");
    });
}

#[test]
fn a_fifo_never_waits_for_its_other_end() {
    over_both(&["--host-fifo=open"], landscape, |t| {
        let fd = t.client.walk_to(t.root, "fifo");
        assert_eq!(t.client.open(fd, WRITE).map(drop), Err(Errno::ENXIO), "no reader yet");
        let (reader, donated) = t.client.open(fd, READ).expect("open");
        assert_eq!((access(&donated[0]), never_waits(&donated[0])), (OFlags::RDONLY, true));
        assert_eq!(rustix::io::read(&donated[0], &mut [0; 4]), Ok(0), "no writer");
        let (_, writing) = t.client.open(fd, WRITE).expect("open");
        assert_eq!((access(&writing[0]), never_waits(&writing[0])), (OFlags::WRONLY, true));
        assert_eq!(rustix::io::write(&writing[0], b"hello"), Ok(5));
        let mut bytes = [0; 5];
        assert_eq!(rustix::io::read(&donated[0], &mut bytes), Ok(5));
        assert_eq!(&bytes, b"hello");
        assert_eq!(rustix::io::read(&donated[0], &mut bytes), Err(rustix::io::Errno::AGAIN));
        let (_, both) = t.client.open(fd, READ_WRITE).expect("open");
        assert_eq!(access(&both[0]), OFlags::RDWR);
        t.client.close(&[reader]);
    });
}

#[test]
fn a_device_is_donated_with_the_access_asked_for() {
    over_both(&["--character-device-policy=passthrough"], landscape, |t| {
        let fd = t.client.walk_to(t.root, "null");
        for (flags, mode) in [(READ, OFlags::RDONLY), (WRITE, OFlags::WRONLY), (READ_WRITE, OFlags::RDWR)] {
            let (opened, donated) = t.client.open(fd, flags).expect("open");
            assert_eq!((donated.len(), access(&donated[0])), (1, mode));
            assert!(never_waits(&donated[0]));
            if flags != READ {
                assert_eq!(t.client.pwrite(opened, 0, b"gone"), Ok(4));
            }
            if flags != WRITE {
                assert_eq!(t.client.pread(opened, 0, 4), Ok(Vec::new()));
            }
        }
    });
}

#[test]
fn sockets_are_connected_to_where_policy_says_open_and_bound_where_it_says_create() {
    for (policy, opens, creates) in SOCKETS
        .into_iter()
        .zip([(false, false), (true, false), (false, true), (true, true)])
        .map(|(p, (o, c))| (p, o, c))
    {
        let flag = format!("--host-uds={policy}");
        over_both(&[&flag], nothing, |t| {
            let listener = UnixListener::bind(t.host("there")).expect("a socket");
            let fd = t.client.walk_to(t.root, "there");
            let refused = |allowed| if allowed { None } else { Some(Errno::EPERM) };
            assert_eq!(t.client.connect(fd, 1).err(), refused(opens), "{policy}");
            let creds = (Uid::NONE, Gid::NONE);
            assert_eq!(t.client.connect_as(fd, 1, creds).err(), refused(opens), "{policy}");
            let new = new_in(t.root, FileType::Socket, 0o600);
            assert_eq!(t.client.bind(new, 1, "new").err(), refused(creates), "{policy}");
            assert_eq!(t.exists("new"), creates, "{policy}");
            if creates {
                assert!(t.metadata("new").file_type().is_socket());
            }
            drop(listener);
        });
    }
}

#[test]
fn what_a_policy_refuses_it_refuses_before_looking_at_the_rest() {
    over_both(&[], landscape, |t| {
        let fd = t.client.walk_to(t.root, "socket");
        assert_eq!(t.client.connect(fd, 99).map(drop), Err(Errno::EPERM), "before the type");
        let new = new_in(t.root, FileType::Socket, 0o600);
        assert_eq!(t.client.bind(new, 99, "new").map(drop), Err(Errno::EPERM), "before the type");
        assert_eq!(t.client.bind(new, 1, &"n".repeat(200)).map(drop), Err(Errno::EPERM), "before the length");
        assert_eq!(t.client.bind(new, 1, "fifo").map(drop), Err(Errno::EPERM), "before the host");
        assert_eq!(t.client.bind(new, 1, "..").map(drop), Err(Errno::EINVAL), "after the name");
    });
}

#[test]
fn policy_does_not_keep_attributes_from_being_seen_or_set() {
    over_both(&[], landscape, |t| {
        for name in ["fifo", "socket", "null"] {
            let fd = t.client.walk_to(t.root, name);
            assert_eq!(t.client.chmod(fd, 0o612).map(|reply| reply.failure_mask.0), Ok(0));
            assert_eq!(t.client.fstat(fd).expect("stat").mode.permissions(), 0o612);
            assert!(t.client.rename((t.root, name), (t.root, &format!("{name}-moved"))).is_ok());
            assert!(t.client.unlink(t.root, &format!("{name}-moved")).is_ok());
        }
    });
}
