//! What holds for the names and the descriptors of all messages.

use gofer_integration::specimen::{Takes, specimens};
use gofer_integration::{Ask, nothing, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

use super::files;

#[test]
fn a_number_that_names_nothing_is_ebadf() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            let closed = t.client.walk_to(t.root, "f");
            t.client.close(&[closed]);
            for fd in [FdId::NONE, closed, FdId(closed.0 + 1), FdId(1 << 32 | 1), FdId(u64::MAX)] {
                for request in specimens(fd, b"name") {
                    if matches!(request.takes, Takes::None | Takes::Anything) {
                        continue;
                    }
                    let answer = t.client.exchange(request.mid.0, &request.payload).map(drop);
                    assert_eq!(answer, Err(Errno::EBADF), "{:?} on {fd:?}", request.mid);
                }
            }
        },
    );
}

#[test]
fn a_descriptor_of_another_kind_is_einval() {
    over_both(
        &["--host-uds=create"],
        |dir| files(dir, &["f"]),
        |t| {
            let (open, _) = t.client.open(t.client.walk_to(t.root, "f"), 2).expect("open");
            let create = gofer_integration::new_in(t.root, FileType::Socket, 0o600);
            let (_, bound, _) = t.client.bind(create, 1, "s").expect("bind");
            for (fd, kind) in [(t.root, Takes::Control), (open, Takes::Open), (bound, Takes::Bound)] {
                for request in specimens(fd, b"name") {
                    let right = match request.takes {
                        Takes::None | Takes::Anything => true,
                        Takes::ControlOrOpen => kind != Takes::Bound,
                        one => one == kind,
                    };
                    if !right {
                        let answer = t.client.exchange(request.mid.0, &request.payload).map(drop);
                        assert_eq!(answer, Err(Errno::EINVAL), "{:?} on {fd:?}, {kind:?}", request.mid);
                    }
                }
            }
        },
    );
}

#[test]
fn an_unsafe_name_is_einval_before_the_descriptor_is_looked_at() {
    over_both(
        &["--host-uds=all"],
        |dir| files(dir, &["f"]),
        |t| {
            for name in [&b""[..], b".", b"..", b"/", b"a/b", b"/etc", b"a/", b"../x", b"a\0", b"\0"] {
                for fd in [t.root, FdId::NONE] {
                    for request in specimens(fd, name).iter().filter(|request| request.named) {
                        let answer = t.client.exchange(request.mid.0, &request.payload).map(drop);
                        assert_eq!(answer, Err(Errno::EINVAL), "{:?} of {}", request.mid, name.escape_ascii());
                    }
                }
            }
            assert_eq!(std::fs::read_dir(t.served.path()).expect("a listing").count(), 1);
        },
    );
}

#[test]
fn a_descriptor_is_looked_at_before_its_type() {
    over_both(
        &["--host-uds=all"],
        |dir| files(dir, &["f"]),
        |t| {
            let file = t.client.walk_to(t.root, "f");
            for request in specimens(file, b"name").iter().filter(|request| request.named) {
                let answer = t.client.exchange(request.mid.0, &request.payload).map(drop);
                assert_eq!(answer, Err(Errno::ENOTDIR), "{:?} in a file", request.mid);
            }
        },
    );
}

#[test]
fn a_name_that_is_too_long_for_the_host_is_enametoolong() {
    over_both(
        &[],
        |dir| files(dir, &["f"]),
        |t| {
            for length in [256, 4_096, 65_535] {
                let name = "n".repeat(length);
                let target = t.client.walk_to(t.root, "f");
                let new = |file_type| gofer_integration::new_in(t.root, file_type, 0o700);
                let too_long = Err(Errno::ENAMETOOLONG);
                assert_eq!(t.client.open_create(new(FileType::Regular), 2, &name).map(drop), too_long);
                assert_eq!(t.client.mkdir(new(FileType::Directory), &name).map(drop), too_long);
                assert_eq!(t.client.mknod(new(FileType::Regular), (0, 0), &name).map(drop), too_long);
                let nobody = (gofer_protocol::Uid::NONE, gofer_protocol::Gid::NONE);
                assert_eq!(t.client.symlink_as(t.root, nobody, &name, b"x").map(drop), too_long);
                assert_eq!(t.client.link(t.root, target, &name).map(drop), too_long);
                assert_eq!(t.client.unlink(t.root, &name), too_long);
                assert_eq!(t.client.rename((t.root, &name), (t.root, "x")), too_long);
                assert_eq!(t.client.rename((t.root, "f"), (t.root, &name)), too_long);
            }
        },
    );
}

#[test]
fn names_are_bytes_for_every_message() {
    over_both(&[], nothing, |t| {
        for name in [&b"\xff\xfe\x80"[..], b"\n", b" ", b"...", b"\x01", &[b'x'; 255]] {
            for request in specimens(t.root, name) {
                let creates = matches!(request.mid.0, 8 | 13..=15);
                if !creates {
                    continue;
                }
                let what = format!("{:?} of {}", request.mid, name.escape_ascii());
                t.client.exchange(request.mid.0, &request.payload).unwrap_or_else(|errno| panic!("{what}: {errno:?}"));
                let path = t.served.path().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
                let metadata = path.symlink_metadata().unwrap_or_else(|error| panic!("{what}: {error}"));
                if metadata.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) }.expect("remove");
            }
        }
    });
}
