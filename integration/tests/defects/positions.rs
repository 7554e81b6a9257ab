//! D3, D8, D10, D11: which name is whose, and what was removed.

use std::fs;

use gofer_integration::{Actor, Ask, Exchange, HostileChannel, Served, encoded, new_in, nothing, over_both};
use gofer_protocol::codec::StringArrayBuf;
use gofer_protocol::message::WalkRequest;
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Mid};

/// Whether the server knows that it removed this file.
fn is_deleted(client: &dyn Exchange, dir: FdId, file: FdId) -> bool {
    match client.link(dir, file, "probe") {
        Ok(linked) => {
            client.unlink(dir, "probe").expect("unlink");
            client.close(&[linked.control_fd]);
            false
        }
        Err(errno) => {
            assert_eq!(errno, Errno::EINVAL);
            true
        }
    }
}

/// Defect D3: a file at a name whose predecessor is released is still known, so its removal is noticed.
#[test]
fn releasing_a_removed_file_leaves_its_successor_known() {
    over_both(&[], nothing, |t| {
        let (old, old_open, _) = t.client.create(t.root, "f").expect("create");
        t.client.unlink(t.root, "f").expect("unlink");
        let (new, new_open, _) = t.client.create(t.root, "f").expect("create");
        t.client.close(&[old.control_fd, old_open]);
        t.client.unlink(t.root, "f").expect("unlink");
        assert!(is_deleted(t.client, t.root, new.control_fd));

        // A third one of that name is not what the second number stands for.
        fs::write(t.host("f"), "third").expect("a file");
        assert_eq!(t.client.link(t.root, new.control_fd, "l").err(), Some(Errno::EINVAL));
        assert_eq!(t.client.fstat(new.control_fd).expect("attributes").nlink, 0);
        assert!(!t.host("l").exists());
        fs::remove_file(t.host("f")).expect("remove");
        t.client.close(&[new.control_fd, new_open]);
    });
}

/// Defect D3: likewise after a replacing rename.
#[test]
fn releasing_a_replaced_file_leaves_its_successor_known() {
    over_both(&[], nothing, |t| {
        let (replaced, replaced_open, _) = t.client.create(t.root, "f").expect("create");
        let (moved, moved_open, _) = t.client.create(t.root, "g").expect("create");
        t.client.rename((t.root, "g"), (t.root, "f")).expect("rename");
        assert!(is_deleted(t.client, t.root, replaced.control_fd));
        t.client.close(&[replaced.control_fd, replaced_open]);
        assert!(!is_deleted(t.client, t.root, moved.control_fd));
        t.client.unlink(t.root, "f").expect("unlink");
        assert!(is_deleted(t.client, t.root, moved.control_fd));
        t.client.close(&[moved.control_fd, moved_open]);
    });
}

/// Defect D8: a rename between two links of one file does nothing on the host, and nothing in the server.
#[test]
fn a_rename_between_two_links_of_one_file_leaves_both_where_they_are() {
    over_both(
        &[],
        |dir| fs::create_dir(dir.join("d")).expect("a directory"),
        |t| {
            let dir = t.client.find(t.root, "d").control_fd;
            let (a, open, _) = t.client.create(t.root, "a").expect("create");
            let b = t.client.link(dir, a.control_fd, "b").expect("link");
            t.client.rename((t.root, "a"), (dir, "b")).expect("a rename that does nothing");
            assert!(t.host("a").exists() && t.host("d/b").exists());
            assert!(!is_deleted(t.client, t.root, a.control_fd), "a was not moved");
            assert!(!is_deleted(t.client, t.root, b.control_fd), "b was not replaced");
            // Each is still known by its own name.
            t.client.unlink(dir, "b").expect("unlink");
            assert!(is_deleted(t.client, t.root, b.control_fd) && !is_deleted(t.client, t.root, a.control_fd));
            t.client.unlink(t.root, "a").expect("unlink");
            assert!(is_deleted(t.client, t.root, a.control_fd));
            t.client.close(&[dir, a.control_fd, open, b.control_fd]);
        },
    );
}

/// Defect D8: an exchange of two links changes nothing that could be seen; NOREPLACE refuses.
#[test]
fn an_exchange_of_two_links_of_one_file_keeps_both_known() {
    over_both(&[], nothing, |t| {
        let (a, open, _) = t.client.create(t.root, "a").expect("create");
        let b = t.client.link(t.root, a.control_fd, "b").expect("link");
        for (flags, expected) in [(2, None), (1, Some(Errno::EEXIST))] {
            assert_eq!(t.client.rename2((t.root, "a"), (t.root, "b"), flags).err(), expected);
        }
        t.client.unlink(t.root, "a").expect("unlink");
        t.client.unlink(t.root, "b").expect("unlink");
        assert!(is_deleted(t.client, t.root, a.control_fd) && is_deleted(t.client, t.root, b.control_fd));
        t.client.close(&[a.control_fd, open, b.control_fd]);
    });
}

/// Defect D10: what a failing walk takes back is what it handed out, whatever the client writes into the reply.
#[test]
fn a_failing_walk_releases_no_number_that_the_client_writes_into_the_reply() {
    let served = Served::with(&[], |dir| {
        fs::create_dir_all(dir.join("d/d/d/d")).expect("directories");
        fs::write(dir.join("d/d/d/d/f"), "").expect("a file");
    });
    let baseline = served.descriptors();
    let victim = served.client.walk_to(served.root, "d");
    let channel = HostileChannel::greeted(served.client.channel().expect("a channel"));
    let window = channel.offer.window();
    let redirecting = Actor::repeat(move || {
        // Wherever an inode of the reply begins: behind the header, status and count, one each 152 bytes.
        for n in 0..5 {
            window.copy_in(4 + 3 + n * 152, &victim.0.to_le_bytes()).expect("within the window");
        }
    });
    // The last component is below a file, so that the walk fails when all others were made.
    let path = StringArrayBuf::new([&b"d"[..], b"d", b"d", b"d", b"f", b"x"]).expect("a path");
    let request = encoded(&WalkRequest { dir_fd: served.root, path: path.as_array() });
    for _ in 0..2000 {
        // The redirection hits the request as well.
        channel.exchange(Mid::WALK.0, &request).expect("an answer");
    }
    drop(redirecting);
    let (mid, errno) = channel.exchange(Mid::WALK.0, &request).expect("an answer");
    assert_eq!((mid, errno), (0, 20_u32.to_le_bytes().to_vec()), "ENOTDIR");
    assert!(served.client.fstat(victim).is_ok(), "the victim is still there");
    // The victim, and what the channel has.
    served.gofer.assert_descriptors(baseline + 1 + 2, "nothing was left behind either");
}

/// Defect D11: BindAt lacks the read-only check.
#[test]
fn binding_on_a_read_only_connection_is_erofs() {
    over_both(&["--readonly", "--host-uds", "all"], nothing, |t| {
        assert_eq!(t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "s").err(), Some(Errno::EROFS));
        assert!(!t.host("s").exists());
    });
}

/// Defect D11: FRemoveXattr lacks the deleted check.
#[test]
fn removing_an_attribute_of_a_removed_file_is_einval() {
    over_both(&[], nothing, |t| {
        let (file, open, _) = t.client.create(t.root, "f").expect("create");
        t.client.unlink(t.root, "f").expect("unlink");
        let removed = t.client.remove_xattr(file.control_fd, "user.a").err();
        assert_eq!(removed, Some(Errno::EINVAL));
        t.client.close(&[file.control_fd, open]);
    });
}

/// Defect D11: LinkAt leaks a reference to its target.
#[test]
fn a_file_that_was_linked_is_released_when_its_numbers_are() {
    over_both(&[], nothing, |t| {
        let baseline = t.descriptors();
        let (file, open, _) = t.client.create(t.root, "f").expect("create");
        for name in ["a", "b", "c"] {
            let linked = t.client.link(t.root, file.control_fd, name).expect("link");
            t.client.unlink(t.root, name).expect("unlink");
            t.client.close(&[linked.control_fd]);
        }
        t.client.unlink(t.root, "f").expect("unlink");
        t.client.close(&[file.control_fd, open]);
        t.gofer().assert_descriptors(baseline, "leaked");
    });
}
