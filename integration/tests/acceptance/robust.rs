//! Serving: what clients do wrong, and what they may do with directfs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use gofer::contract::Generation;
use gofer::launch::Mount;
use gofer_integration::specimen::specimens;
use gofer_integration::{Ask, Exchange, new_in};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Mid};

use crate::subject::{clients, each, each_of_ours, is_stock};

/// 47, by a client; what an application in a sandbox does is in `through_runsc`.
#[test]
fn with_directfs_the_mode_of_a_bound_socket_can_be_changed_and_the_gofer_lives_on() {
    // E24's original dies of it.
    each_of_ours(|subject| {
        let socket = subject.path("volume/socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let mut gofer = subject.start(&subject.bundle().mount(Mount::bind("/socket", &socket)));
        let clients = clients(&mut gofer);
        clients[1].chmod(clients[1].mount(), 0o600).expect("its mode is set");
        assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o600);
        clients[0].mount();
        assert_eq!(gofer.ended().expect("a status"), None);
    });
}

/// 47. The originals die of most of these.
#[test]
fn with_directfs_any_request_is_answered_channel_included_and_the_gofer_lives_on() {
    each_of_ours(|subject| {
        let _listener = UnixListener::bind(subject.path("volume/socket")).expect("a socket");
        for sockets in ["none", "all"] {
            let launcher = subject.launcher(&subject.bundle().mount(Mount::bind("/v", subject.path("volume"))));
            let mut gofer = subject.started(launcher.global(format!("--host-uds={sockets}")));
            let client = clients(&mut gofer).remove(1);
            let root = client.mount();
            every_request(&client, root);
            // A channel serves the same.
            every_request(&client.on_channel(), root);
            client.fstat(root).expect("it serves");
            assert_eq!(gofer.ended().expect("a status"), None);
        }
    });
}

/// Each message, well-formed, on descriptors of every kind.
fn every_request(client: &dyn Exchange, root: FdId) {
    let file = client.walk_to(root, "file");
    let socket = client.walk_to(root, "socket");
    let (open, _) = client.open(file, 2).expect("it opens");
    for fd in [root, file, socket, open] {
        for specimen in specimens(fd, b"new") {
            // Close would take the descriptor away; a connection has four channels.
            if specimen.mid != Mid::CLOSE && specimen.mid != Mid::CHANNEL {
                let answer = client.try_exchange(specimen.mid.0, &specimen.payload);
                assert!(answer.is_some(), "{:?} has no answer", specimen.mid);
                // Whatever was made.
                let _ = client.unlink(root, "new");
                let _ = client.rmdir(root, "new");
            }
        }
    }
    client.close(&[open, socket]);
}

/// 48.
#[test]
fn it_survives_a_lack_of_descriptors() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--fdlimit=64");
        let mut gofer = subject.started(launcher);
        for number in 0..200 {
            fs::write(subject.path(&format!("root/{number}")), "").expect("a file");
        }
        let client = clients(&mut gofer).remove(0);
        let root = client.mount();
        let mut held = Vec::new();
        let refused = (0..200).find_map(|number| match client.walk(root, &[number.to_string()]) {
            Ok((_, inodes)) => {
                held.extend(inodes.first().map(|inode| inode.control_fd));
                None
            }
            Err(errno) => Some(errno),
        });
        assert_eq!(refused, Some(Errno::EMFILE), "{:?} with {} files", subject.generation, held.len());
        client.close(&held);
        client.walk_to(root, "199");
        assert_eq!(gofer.ended().expect("a status"), None);
    });
}

/// 48.
#[test]
fn it_survives_malformed_messages() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        let client = clients(&mut gofer).remove(0);
        let root = client.mount();
        // MID 0 and those beyond the table.
        for mid in [200, 999, 0xffff] {
            assert_eq!(client.exchange(mid, b"junk").map(drop), Err(Errno::EOPNOTSUPP), "MID {mid}");
        }
        for specimen in specimens(root, b"name") {
            // What the originals do not do with directfs is the end of them.
            let safe = [Mid::FSTAT, Mid::WALK, Mid::WALK_STAT, Mid::OPEN_AT, Mid::OPEN_CREATE_AT, Mid::FSYNC];
            if is_stock() && !safe.contains(&specimen.mid) {
                continue;
            }
            for length in 0..specimen.payload.len() {
                let answer = client.exchange(specimen.mid.0, &specimen.payload[..length]).map(drop);
                assert_eq!(answer, Err(Errno::EIO), "{:?} of {length} bytes", specimen.mid);
            }
        }
        client.fstat(root).expect("it serves");
        assert_eq!(gofer.ended().expect("a status"), None);
    });
}

/// 48. The originals' handler panics, which they catch; ours knows what to say.
#[test]
fn it_survives_a_request_that_makes_the_originals_handler_fail() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--host-uds=all");
        let mut gofer = subject.started(match subject.generation {
            Generation::E22 => launcher,
            _ => launcher.global("--directfs=false"),
        });
        let client = clients(&mut gofer).remove(0);
        let root = client.mount();
        let (_, bound, _) = client.bind(new_in(root, FileType::Socket, 0o600), 1, "socket").expect("a socket");
        let refused = if is_stock() { Errno::EREMOTEIO } else { Errno::EINVAL };
        assert_eq!(client.fstat(bound).map(drop), Err(refused), "{:?}", subject.generation);
        client.fstat(root).expect("it serves");
        assert_eq!(gofer.ended().expect("a status"), None);
    });
}
