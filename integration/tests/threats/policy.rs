//! What the server refuses of its own accord, though the host would do it.

use std::fs;
use std::path::PathBuf;

use gofer_integration::client::encoded;
use gofer_integration::raw::string;
use gofer_integration::{Requests, Served, each_way};
use gofer_protocol::codec::SizedString;
use gofer_protocol::message::{
    FAllocateRequest, FGetXattrRequest, FListXattrReply, FListXattrRequest, FRemoveXattrRequest, FSetXattrRequest,
    RenameAt2Request, UnlinkAtRequest,
};
use gofer_protocol::record::StatxMask;
use gofer_protocol::{Errno, Request};
use rustix::fs::{OFlags, XattrFlags, setxattr};

/// Threat: set dangerous xattrs: `system.*` and `trusted.*` in every way, `security.*` in writing.
#[test]
fn attributes_with_a_meaning_to_the_host_are_eopnotsupp() {
    let served = Served::with(&[], |dir| {
        fs::write(dir.join("f"), "").expect("a file");
        setxattr(dir.join("f"), "trusted.host", b"x", XattrFlags::empty()).expect("an attribute, which needs root");
        setxattr(dir.join("f"), "user.mine", b"x", XattrFlags::empty()).expect("an attribute");
    });
    let fd = served.client.walk_to(served.root, "f");
    each_way(&served.client, |client| {
        let value = SizedString::new(b"x").expect("a value");
        for (name, readable) in [
            ("trusted.host", false),
            ("trusted.overlay.opaque", false),
            ("system.posix_acl_access", false),
            ("system.anything", false),
            ("security.capability", true),
            ("security.selinux", true),
        ] {
            let name_of = name;
            let name = string(name);
            let set = client.ask(&FSetXattrRequest { fd, flags: 0, name, value }).err();
            let removed = client.ask(&FRemoveXattrRequest { fd, name }).err();
            assert_eq!((set, removed), (Some(Errno::EOPNOTSUPP), Some(Errno::EOPNOTSUPP)), "{name_of}");
            let read = client.ask(&FGetXattrRequest { fd, buf_size: 0, name }).err();
            // There is no such label here.
            let expected = if readable { Errno::ENODATA } else { Errno::EOPNOTSUPP };
            assert_eq!(read, Some(expected), "{name_of}");
        }
        let answer = client.ask(&FListXattrRequest { fd, size: 0 }).expect("a list");
        let names: Vec<_> = answer.decode::<FListXattrReply<'_>>().names.iter().map(<[u8]>::to_vec).collect();
        assert_eq!(names, [b"user.mine".to_vec()], "what cannot be read is not listed");
    });
}

/// Threat: set setuid files: owners and modes are the client's to choose, so only what it asks for is set.
#[test]
fn setuid_and_setgid_are_set_by_request_alone() {
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "").expect("a file"));
    let fd = served.client.walk_to(served.root, "f");
    each_way(&served.client, |client| {
        let mode = |bits| {
            move |set: &mut gofer_protocol::message::SetStatRequest| (set.mask, set.mode) = (StatxMask::MODE, bits)
        };
        client.set_stat(fd, mode(0o6755)).expect("a reply");
        assert_eq!(client.fstat(fd).expect("attributes").mode.permissions(), 0o6755);
        // Type bits are no part of it.
        client.set_stat(fd, mode(0o20_000 | 0o755)).expect("a reply");
        let is = client.fstat(fd).expect("attributes");
        assert_eq!(is.mode.0, 0o100_755);
    });
}

/// Policy: RenameAt2 takes the flags 0, 1 and 2; UnlinkAt 0 and 0x200; FAllocate mode 0; SetStat what can be set.
#[test]
fn flags_that_no_client_needs_are_refused() {
    let served = Served::with(&[], |dir| {
        fs::write(dir.join("f"), "hello").expect("a file");
        fs::write(dir.join("g"), "world").expect("a file");
    });
    let dir = served.root;
    let file = served.client.walk_to(dir, "f");
    let (open, _) = served.client.open(file, 2).expect("open");
    each_way(&served.client, |client| {
        for flags in [3, 4, 5, 8, 1 << 31, u32::MAX] {
            let (old_name, new_name) = (string("f"), string("g"));
            let request = RenameAt2Request { old_dir: dir, new_dir: dir, old_name, new_name, flags };
            let outcome = client.exchange(RenameAt2Request::MID.0, &encoded(&request)).err();
            assert_eq!(outcome, Some(Errno::EINVAL), "RenameAt2 with {flags:x}");
        }
        for flags in [1, 0x100, 0x201, 0x1000, u32::MAX] {
            let outcome = client.ask(&UnlinkAtRequest { dir_fd: dir, flags, name: string("f") }).err();
            assert_eq!(outcome, Some(Errno::EINVAL), "UnlinkAt with {flags:x}");
        }
        for mode in [1, 2, 3, 0x10, 1 << 32, u64::MAX] {
            let outcome = client.ask(&FAllocateRequest { fd: open, mode, offset: 0, length: 4 }).err();
            assert_eq!(outcome, Some(Errno::EOPNOTSUPP), "FAllocate with {mode:x}");
        }
        for mask in [1, 4, 0x80, 0x100, 0x400, 0x800, 0x1000, u32::MAX] {
            let outcome = client.set_stat(file, |set| (set.mask, set.size) = (StatxMask(mask | 0x200), 0)).err();
            assert_eq!(outcome, Some(Errno::EPERM), "SetStat with {mask:x}");
        }
        // O_CREAT | O_EXCL | O_APPEND | O_DIRECTORY | O_PATH: dropped.
        let (opened, fds) = client.open(file, 0o100 | 0o200 | 0o2000 | 0o200_000 | 0o10_000_000).expect("open");
        let flags = rustix::fs::fcntl_getfl(&fds[0]).expect("flags");
        assert!(!flags.intersects(OFlags::APPEND | OFlags::PATH), "{flags:?}");
        client.close(&[opened]);
    });
    assert_eq!(fs::read(served.path().join("f")).expect("a file"), b"hello");
    assert_eq!(fs::read(served.path().join("g")).expect("a file"), b"world");
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
    each_way(&served.client, |client| {
        let (dir, file) = (client.child(served.root, "d").control_fd, client.child(served.root, "f").control_fd);
        client.open(dir, 0).expect("open");
        client.open(file, 2).expect("open");
        client.set_stat(file, |set| set.mask = StatxMask::SIZE).expect("set");
        client.create(dir, "c").expect("create");
        let (socket, bound, _) = client.bind(dir, "s").expect("bind");
        client.exchange(30, &[&bound.0.to_le_bytes()[..], &[8, 0, 0, 0, 0, 0, 0, 0]].concat()).expect("listen");
        client.connect(socket.control_fd).expect("connect");
        client.exchange(31, &bound.0.to_le_bytes()).expect("accept");
        client.unlink(dir, "s").expect("unlink");
        client.unlink(dir, "c").expect("unlink");
    });
    assert!(served.gofer.descriptors().len() > before.len() + 15);
    assert_eq!(kept_on_exec(&served), before);
}

fn kept_on_exec(served: &Served) -> Vec<PathBuf> {
    let all = served.gofer.descriptor_flags().into_iter();
    all.filter(|(_, flags)| !flags.contains(OFlags::CLOEXEC)).map(|(target, _)| target).collect()
}
