//! What the server refuses of its own accord, though the host would do it.

use std::fs;
use std::path::PathBuf;

use gofer_integration::{Ask, Exchange, Served, change, new_in, over_both};
use gofer_protocol::Errno;
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{FileType, StatxMask};
use rustix::fs::{OFlags, XattrFlags, setxattr};

/// Threat: set dangerous xattrs: `system.*` and `trusted.*` in every way, `security.*` in writing.
#[test]
fn attributes_with_a_meaning_to_the_host_are_eopnotsupp() {
    over_both(
        &[],
        |dir| {
            fs::write(dir.join("f"), "").expect("a file");
            setxattr(dir.join("f"), "trusted.host", b"x", XattrFlags::empty()).expect("an attribute, which needs root");
            setxattr(dir.join("f"), "user.mine", b"x", XattrFlags::empty()).expect("an attribute");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            for (name, readable) in [
                ("trusted.host", false),
                ("trusted.overlay.opaque", false),
                ("system.posix_acl_access", false),
                ("system.anything", false),
                ("security.capability", true),
                ("security.selinux", true),
            ] {
                let set = t.client.set_xattr(fd, 0, name, b"x").err();
                let removed = t.client.remove_xattr(fd, name).err();
                assert_eq!((set, removed), (Some(Errno::EOPNOTSUPP), Some(Errno::EOPNOTSUPP)), "{name}");
                let read = t.client.get_xattr(fd, 0, name).err();
                // There is no such label here.
                let expected = if readable { Errno::ENODATA } else { Errno::EOPNOTSUPP };
                assert_eq!(read, Some(expected), "{name}");
            }
            let names = t.client.list_xattr(fd, 0).expect("a list");
            assert_eq!(names, ["user.mine"], "what cannot be read is not listed");
        },
    );
}

/// Threat: set setuid files: owners and modes are the client's to choose, so only what it asks for is set.
#[test]
fn setuid_and_setgid_are_set_by_request_alone() {
    over_both(
        &[],
        |dir| fs::write(dir.join("f"), "").expect("a file"),
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            t.client.chmod(fd, 0o6755).expect("a reply");
            assert_eq!(t.client.fstat(fd).expect("attributes").mode.permissions(), 0o6755);
            // Type bits are no part of it.
            t.client.chmod(fd, 0o20_000 | 0o755).expect("a reply");
            let is = t.client.fstat(fd).expect("attributes");
            assert_eq!(is.mode.0, 0o100_755);
        },
    );
}

/// Policy: RenameAt2 takes the flags 0, 1 and 2; UnlinkAt 0 and 0x200; FAllocate mode 0; SetStat what can be set.
#[test]
fn flags_that_no_client_needs_are_refused() {
    over_both(
        &[],
        |dir| {
            fs::write(dir.join("f"), "hello").expect("a file");
            fs::write(dir.join("g"), "world").expect("a file");
        },
        |t| {
            let dir = t.root;
            let file = t.client.walk_to(dir, "f");
            let (open, _) = t.client.open(file, 2).expect("open");
            for flags in [3, 4, 5, 8, 1 << 31, u32::MAX] {
                let outcome = t.client.rename2((dir, "f"), (dir, "g"), flags).err();
                assert_eq!(outcome, Some(Errno::EINVAL), "RenameAt2 with {flags:x}");
            }
            for flags in [1, 0x100, 0x201, 0x1000, u32::MAX] {
                let outcome = t.client.unlink_with(dir, "f", flags).err();
                assert_eq!(outcome, Some(Errno::EINVAL), "UnlinkAt with {flags:x}");
            }
            for mode in [1, 2, 3, 0x10, 1 << 32, u64::MAX] {
                let outcome = t.client.fallocate(open, mode, 0, 4).err();
                assert_eq!(outcome, Some(Errno::EOPNOTSUPP), "FAllocate with {mode:x}");
            }
            for mask in [1, 4, 0x80, 0x100, 0x400, 0x800, 0x1000, u32::MAX] {
                let outcome =
                    t.client.set_stat(&SetStatRequest { size: 0, ..change(file, StatxMask(mask | 0x200)) }).err();
                assert_eq!(outcome, Some(Errno::EPERM), "SetStat with {mask:x}");
            }
            // O_CREAT | O_EXCL | O_APPEND | O_DIRECTORY | O_PATH: dropped.
            let (opened, fds) = t.client.open(file, 0o100 | 0o200 | 0o2000 | 0o200_000 | 0o10_000_000).expect("open");
            let flags = rustix::fs::fcntl_getfl(&fds[0]).expect("flags");
            assert!(!flags.intersects(OFlags::APPEND | OFlags::PATH), "{flags:?}");
            t.client.close(&[opened]);
            assert_eq!(fs::read(t.host("f")).expect("a file"), b"hello");
            assert_eq!(fs::read(t.host("g")).expect("a file"), b"world");
        },
    );
}

/// Policy: descriptors are closed on exec, everywhere.
#[test]
fn every_descriptor_of_the_server_is_closed_on_exec() {
    let served = Served::with(&["--host-uds", "all", "--host-fifo", "open", "--donate-mount-point"], |dir| {
        fs::create_dir(dir.join("d")).expect("a directory");
        fs::write(dir.join("f"), "").expect("a file");
    });
    // What the server was started with: standard input and the like. The client's socket is not among them.
    let before = kept_on_exec(&served);
    assert!(
        !before.iter().any(|target| target.starts_with(served.path()) || target.starts_with("socket:")),
        "{before:?}"
    );
    for client in [&served.client as &dyn Exchange, &served.client.on_channel()] {
        let (dir, file) = (client.walk_to(served.root, "d"), client.walk_to(served.root, "f"));
        client.open(dir, 0).expect("open");
        client.open(file, 2).expect("open");
        client.set_stat(&change(file, StatxMask::SIZE)).expect("set");
        client.create(dir, "c").expect("create");
        let (socket, bound, _) = client.bind(new_in(dir, FileType::Socket, 0o755), 1, "s").expect("bind");
        client.listen(bound, 8).expect("listen");
        client.connect(socket.control_fd, 1).expect("connect");
        client.accept(bound).expect("accept");
        client.unlink(dir, "s").expect("unlink");
        client.unlink(dir, "c").expect("unlink");
    }
    assert!(served.gofer.descriptors().len() > before.len() + 15);
    assert_eq!(kept_on_exec(&served), before);
}

fn kept_on_exec(served: &Served) -> Vec<PathBuf> {
    let all = served.gofer.descriptor_flags().into_iter();
    all.filter(|(_, flags)| !flags.contains(OFlags::CLOEXEC)).map(|(target, _)| target).collect()
}
