//! A server without privileges: permissions are the host's to judge, and what it refuses leaves nothing behind.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use gofer_integration::child::NOBODY;
use gofer_integration::{Ask, Trial, new_in, nothing, over_both_unprivileged};
use gofer_protocol::record::{CreateCommon, FileMode, FileType};
use gofer_protocol::{Errno, FdId, Gid, Uid};

use super::{READ, READ_WRITE, WRITE, files};

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

fn entries(t: &Trial<'_>) -> usize {
    std::fs::read_dir(t.served.path()).expect("a listing").count()
}

#[test]
fn a_created_files_own_mode_does_not_count_against_its_creator() {
    over_both_unprivileged(&[], nothing, |t| {
        for (mode, flags) in
            [(0, READ), (0, WRITE), (0, READ_WRITE), (0o400, WRITE), (0o400, READ_WRITE), (0o200, READ)]
        {
            let name = format!("{mode:o}-{flags}");
            let create = new_in(t.root, FileType::Regular, mode);
            let (child, open, donated) = t.client.open_create(create, flags, &name).expect("create");
            assert_eq!(donated.len(), 1, "{name}");
            assert_eq!((t.permissions(&name), t.owner(&name)), (u32::from(mode), (NOBODY, NOBODY)));
            assert_eq!(t.client.pwrite(open, 0, b"x").is_ok(), flags != READ, "{name}");
            assert_eq!(t.client.pread(open, 0, 1).is_ok(), flags != WRITE, "{name}");
            // A second open is another matter.
            let refused = t.client.open(child.control_fd, flags).map(drop);
            assert_eq!(refused, Err(Errno::EACCES), "{name}");
        }
    });
}

#[test]
fn an_open_that_the_mode_forbids_is_eacces_and_a_lesser_one_succeeds() {
    over_both_unprivileged(
        &[],
        |dir| {
            files(dir, &["readable", "secret"]);
            set_mode(&dir.join("readable"), 0o644);
            set_mode(&dir.join("secret"), 0o600);
        },
        |t| {
            let fd = t.client.walk_to(t.root, "readable");
            for flags in [READ_WRITE, WRITE, super::TRUNCATE] {
                assert_eq!(t.client.open(fd, flags).map(drop), Err(Errno::EACCES));
            }
            assert!(t.client.open(fd, READ).is_ok());
            // What cannot be read can be walked to and looked at.
            let secret = t.client.walk_to(t.root, "secret");
            assert_eq!(t.client.fstat(secret).expect("stat").size, 6);
            assert_eq!(t.client.open(secret, READ).map(drop), Err(Errno::EACCES));
        },
    );
}

#[test]
fn an_owner_that_cannot_be_given_undoes_the_creation() {
    over_both_unprivileged(
        &["--host-uds=all"],
        |dir| files(dir, &["f"]),
        |t| {
            for (uid, gid) in [(Uid(0), Gid::NONE), (Uid::NONE, Gid(0)), (Uid(1000), Gid(1000))] {
                let before = t.descriptors();
                let create = |file_type| CreateCommon::new(t.root, uid, gid, FileMode::new(file_type, 0o700));
                assert_eq!(t.client.open_create(create(FileType::Regular), 2, "x").map(drop), Err(Errno::EPERM));
                assert_eq!(t.client.mkdir(create(FileType::Directory), "x").map(drop), Err(Errno::EPERM));
                assert_eq!(t.client.mknod(create(FileType::Regular), (0, 0), "x").map(drop), Err(Errno::EPERM));
                assert_eq!(t.client.mknod(create(FileType::CharDevice), (0, 0), "x").map(drop), Err(Errno::EPERM));
                assert_eq!(t.client.symlink_as(t.root, (uid, gid), "x", b"y").map(drop), Err(Errno::EPERM));
                assert_eq!(t.client.bind(create(FileType::Socket), 1, "x").map(drop), Err(Errno::EPERM));
                assert_eq!(entries(t), 1);
                assert_eq!(t.descriptors(), before);
            }
            // No number was handed out either.
            let next = t.client.walk_to(t.root, "f");
            assert_eq!(next, FdId(t.root.0 + 1));
            // One's own ids are fine.
            let own = CreateCommon::new(t.root, Uid(NOBODY), Gid(NOBODY), FileMode::new(FileType::Regular, 0o600));
            assert!(t.client.open_create(own, READ_WRITE, "own").is_ok());
        },
    );
}

#[test]
fn a_directory_of_somebody_else_is_not_changed() {
    over_both_unprivileged(
        &["--host-uds=all"],
        |dir| {
            std::fs::create_dir(dir.join("roots")).expect("a directory");
            files(dir, &["roots/f"]);
            set_mode(&dir.join("roots"), 0o755);
        },
        |t| {
            let dir = t.client.walk_to(t.root, "roots");
            let file = t.client.walk_to(t.root, "roots/f");
            let new = |file_type| new_in(dir, file_type, 0o700);
            let refused = Err(Errno::EACCES);
            assert_eq!(t.client.open_create(new(FileType::Regular), 2, "x").map(drop), refused);
            assert_eq!(t.client.mkdir(new(FileType::Directory), "x").map(drop), refused);
            assert_eq!(t.client.mknod(new(FileType::Regular), (0, 0), "x").map(drop), refused);
            assert_eq!(t.client.symlink(dir, "x", b"y").map(drop), refused);
            assert_eq!(t.client.bind(new(FileType::Socket), 1, "x").map(drop), refused);
            assert_eq!(t.client.unlink(dir, "f"), refused);
            assert_eq!(t.client.rename((dir, "f"), (t.root, "f")), refused);
            assert_eq!(t.client.rename2((dir, "f"), (dir, "g"), 1), refused);
            assert!(t.client.fstat(file).is_ok());
            assert!(t.exists("roots/f") && !t.exists("roots/x"));
        },
    );
}

#[test]
fn a_directory_that_may_not_be_searched_hides_what_is_in_it() {
    over_both_unprivileged(
        &[],
        |dir| {
            std::fs::create_dir(dir.join("closed")).expect("a directory");
            files(dir, &["closed/f"]);
            set_mode(&dir.join("closed"), 0o700);
        },
        |t| {
            let dir = t.client.walk_to(t.root, "closed");
            assert_eq!(t.client.walk(dir, &["f"]).map(drop), Err(Errno::EACCES));
            assert_eq!(t.client.walk(dir, &["missing"]).map(drop), Err(Errno::EACCES));
            assert_eq!(t.client.walk_stat(t.root, &["closed", "f"]).map(drop), Err(Errno::EACCES));
            assert_eq!(t.client.open(dir, READ).map(drop), Err(Errno::EACCES));
            assert!(t.client.fstat(dir).is_ok());
        },
    );
}

#[test]
fn the_mode_of_ones_own_unreadable_file_can_be_set() {
    over_both_unprivileged(
        &[],
        |dir| {
            files(dir, &["f"]);
            set_mode(&dir.join("f"), 0);
            chown(dir.join("f"), Some(NOBODY), Some(NOBODY)).expect("an owner");
        },
        |t| {
            let fd = t.client.walk_to(t.root, "f");
            assert_eq!(t.client.open(fd, READ).map(drop), Err(Errno::EACCES));
            assert_eq!(t.client.chmod(fd, 0o600).map(|reply| reply.failure_mask.0), Ok(0));
            let (open, _) = t.client.open(fd, READ_WRITE).expect("open");
            assert_eq!(t.client.pread(open, 0, 9), Ok(b"f".to_vec()));
        },
    );
}

#[test]
fn ordinary_work_needs_no_privilege() {
    over_both_unprivileged(&["--host-uds=all"], nothing, |t| {
        let dir = t.client.mkdir(new_in(t.root, FileType::Directory, 0o700), "d").expect("mkdir").control_fd;
        let (file, open, _) = t.client.open_create(new_in(dir, FileType::Regular, 0o600), 2, "f").expect("create");
        assert_eq!(t.client.pwrite(open, 0, b"data"), Ok(4));
        let link = t.client.link(dir, file.control_fd, "g").expect("link");
        assert_eq!(link.stat.nlink, 2);
        let symlink = t.client.symlink(dir, "l", b"f").expect("symlink");
        assert_eq!(t.client.read_link(symlink.control_fd), Ok(b"f".to_vec()));
        assert_eq!(t.client.set_xattr(file.control_fd, 0, "user.k", b"v"), Ok(()));
        assert_eq!(t.client.get_xattr(file.control_fd, 0, "user.k"), Ok(b"v".to_vec()));
        let (_, bound, _) = t.client.bind(new_in(dir, FileType::Socket, 0o700), 1, "s").expect("bind");
        assert_eq!(t.client.listen(bound, 1), Ok(()));
        assert!(t.client.mknod(new_in(dir, FileType::CharDevice, 0o600), (0, 0), "whiteout").is_ok());
        assert_eq!(t.client.rename((dir, "f"), (t.root, "moved")), Ok(()));
        for name in ["g", "l", "s", "whiteout"] {
            assert_eq!(t.client.unlink(dir, name), Ok(()), "{name}");
        }
        assert_eq!(t.client.rmdir(t.root, "d"), Ok(()));
        assert_eq!(std::fs::read(t.host("moved")).expect("read"), b"data");
    });
}

#[test]
fn a_connection_with_credentials_that_the_server_cannot_take_on_is_eperm() {
    over_both_unprivileged(&["--host-uds=all"], nothing, |t| {
        let (child, bound, _) = t.client.bind(new_in(t.root, FileType::Socket, 0o777), 1, "s").expect("bind");
        t.client.listen(bound, 4).expect("listen");
        for creds in [(Uid(0), Gid::NONE), (Uid::NONE, Gid(0)), (Uid(1000), Gid(1000))] {
            assert_eq!(t.client.connect_as(child.control_fd, 1, creds).map(drop), Err(Errno::EPERM), "{creds:?}");
        }
        assert!(t.client.connect_as(child.control_fd, 1, (Uid(NOBODY), Gid(NOBODY))).is_ok());
    });
}
