//! Attempts to use up what the server has: descriptors, memory.

use std::fs;

use gofer_integration::{Ask, Listening, new_in, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

/// Threat: memory exhaustion by 2 GiB getdents budgets.
#[test]
fn a_listing_with_a_budget_of_2_gib_is_cut_to_a_message_and_goes_on() {
    const ENTRIES: usize = 12_000;
    over_both(
        &[],
        |dir| {
            for n in 0..ENTRIES {
                fs::write(dir.join(format!("{n:0>200}")), "").expect("a file");
            }
        },
        |t| {
            let (open, _) = t.client.open(t.root, 0).expect("open");
            let before = t.gofer().anonymous_kib();
            let mut names: Vec<_> = t.client.getdents(open, i32::MIN).expect("a listing");
            assert!(!names.is_empty() && names.len() < ENTRIES);
            loop {
                let more = t.client.getdents(open, i32::MAX).expect("a listing");
                if more.is_empty() {
                    break;
                }
                names.extend(more);
            }
            let grown = t.gofer().anonymous_kib().saturating_sub(before);
            assert!(grown < 4096, "{grown} KiB more");
            names.sort_by(|one, other| one.name.cmp(&other.name));
            names.dedup_by(|one, other| one.name == other.name);
            assert_eq!(names.len(), ENTRIES, "each name once");
        },
    );
}

/// Threat: endless Walks making FDIDs, against a limit of the connection.
#[test]
fn a_client_at_its_limit_gets_emfile_and_is_served_again_once_it_closes() {
    over_both(
        &["--max-fds", "50", "--host-uds", "all"],
        |dir| {
            fs::create_dir_all(dir.join("d/d/d/d")).expect("directories");
            fs::write(dir.join("f"), "").expect("a file");
        },
        |t| {
            let file = t.client.walk_to(t.root, "f");
            let held = fill(|| t.client.walk(t.root, &["d"]).map(|(_, inodes)| inodes[0].control_fd));
            let at_limit = t.descriptors();
            for _ in 0..3 {
                let refused: Vec<(&str, Result<(), Errno>)> = vec![
                    ("Walk", t.client.walk(t.root, &["f"]).map(drop)),
                    ("Walk of many", t.client.walk(t.root, &["d", "d", "d", "d"]).map(drop)),
                    ("OpenAt", t.client.open(file, 0).map(drop)),
                    ("OpenCreateAt", t.client.create(t.root, "new").map(drop)),
                    ("MkdirAt", t.client.mkdir(new_in(t.root, FileType::Directory, 0o755), "new").map(drop)),
                    ("SymlinkAt", t.client.symlink(t.root, "new", "x").map(drop)),
                    ("LinkAt", t.client.link(t.root, file, "new").map(drop)),
                    ("BindAt", t.client.bind(new_in(t.root, FileType::Socket, 0o755), 1, "new").map(drop)),
                    ("Mount", t.client.exchange(1, &[]).map(drop)),
                ];
                for (request, outcome) in refused {
                    assert_eq!(outcome, Err(Errno::EMFILE), "{request}");
                }
            }
            assert!(!t.host("new").exists(), "an error means that nothing happened");
            t.gofer().assert_descriptors(at_limit, "descriptors leaked");
            // What needs no number goes on, and so does a walk to nowhere.
            assert!(t.client.walk(t.root, &["none"]).is_ok());
            assert!(t.client.fstat(file).is_ok() && t.client.walk_stat(t.root, &["d", "d"]).is_ok());
            t.client.close(&held);
            assert!(t.client.walk(t.root, &["d", "d", "d", "d"]).is_ok(), "there is room again");
            let last = held.last().expect("a number").0;
            t.client.close(&(last..last + 20).map(FdId).collect::<Vec<_>>());
        },
    );
}

/// Threat: endless Walks making FDIDs, against the limit of the process.
#[test]
fn a_process_at_its_limit_refuses_and_recovers_and_its_other_clients_live() {
    let listening = Listening::with(&[], |dir| {
        fs::create_dir(dir.join("d")).expect("a directory");
        fs::write(dir.join("f"), "hello").expect("a file");
    });
    let ((greedy, greedy_root), (modest, modest_root)) = (listening.client(), listening.client());
    let file = modest.walk_to(modest_root, "f");
    let (open, _) = modest.open(file, 0).expect("open");
    let baseline = listening.gofer.descriptors_behind(&modest);
    listening.gofer.limit_descriptors(baseline + 40);
    let held = fill(|| greedy.walk(greedy_root, &["d"]).map(|(_, inodes)| inodes[0].control_fd));
    assert!(held.len() >= 35, "{} numbers", held.len());
    for _ in 0..3 {
        assert_eq!(greedy.mkdir(new_in(greedy_root, FileType::Directory, 0o755), "new").err(), Some(Errno::EMFILE));
        assert_eq!(greedy.create(greedy_root, "new").err(), Some(Errno::EMFILE));
        assert_eq!(greedy.symlink(greedy_root, "new", "x").err(), Some(Errno::EMFILE));
    }
    assert!(!listening.path().join("new").exists(), "an error means that nothing happened");
    assert_eq!(modest.pread(open, 0, 5).as_deref(), Ok(&b"hello"[..]), "others are served from what they hold");
    assert!(modest.fstat(file).is_ok() && modest.rename((modest_root, "f"), (modest_root, "g")).is_ok());
    greedy.close(&held);
    assert!(modest.walk(modest_root, &["d"]).is_ok(), "there is room again");
    listening.gofer.assert_descriptors(baseline + 1, "nothing leaked");
}

/// Asks until it is refused, which must be for the number of descriptors; returns what was handed out.
fn fill(mut next: impl FnMut() -> Result<FdId, Errno>) -> Vec<FdId> {
    let mut held = Vec::new();
    loop {
        match next() {
            Ok(fd) => held.push(fd),
            Err(errno) => {
                assert!(matches!(errno, Errno::EMFILE | Errno::ENFILE), "{errno:?}");
                return held;
            }
        }
    }
}
