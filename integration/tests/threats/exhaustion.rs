//! Attempts to use up what the server has: descriptors, memory.

use std::fs;

use gofer_integration::{Listening, Requests, Served, each_way};
use gofer_protocol::{Errno, FdId};

/// Threat: memory exhaustion by 2 GiB getdents budgets.
#[test]
fn a_listing_with_a_budget_of_2_gib_is_cut_to_a_message_and_goes_on() {
    const ENTRIES: usize = 12_000;
    let served = Served::with(&[], |dir| {
        for n in 0..ENTRIES {
            fs::write(dir.join(format!("{n:0>200}")), "").expect("a file");
        }
    });
    let (open, _) = served.client.open(served.root, 0).expect("open");
    each_way(&served.client, |client| {
        let before = served.gofer.anonymous_kib();
        let mut names: Vec<_> = client.list(open, i32::MIN).expect("a listing");
        assert!(!names.is_empty() && names.len() < ENTRIES);
        loop {
            let more = client.list(open, i32::MAX).expect("a listing");
            if more.is_empty() {
                break;
            }
            names.extend(more);
        }
        let grown = served.gofer.anonymous_kib().saturating_sub(before);
        assert!(grown < 4096, "{grown} KiB more");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ENTRIES, "each name once");
    });
}

/// Threat: endless Walks making FDIDs, against a limit of the connection.
#[test]
fn a_client_at_its_limit_gets_emfile_and_is_served_again_once_it_closes() {
    let served = Served::with(&["--max-fds", "50", "--host-uds", "all"], |dir| {
        fs::create_dir_all(dir.join("d/d/d/d")).expect("directories");
        fs::write(dir.join("f"), "").expect("a file");
    });
    let file = served.client.walk_to(served.root, "f");
    each_way(&served.client, |client| {
        let held = fill(|| client.walk(served.root, &[b"d"]).map(|(_, inodes)| inodes[0].control_fd));
        let at_limit = served.gofer.settled_descriptors();
        for _ in 0..3 {
            let refused: Vec<(&str, Result<(), Errno>)> = vec![
                ("Walk", client.walk(served.root, &[b"f"]).map(drop)),
                ("Walk of many", client.walk(served.root, &[b"d", b"d", b"d", b"d"]).map(drop)),
                ("OpenAt", client.open(file, 0).map(drop)),
                ("OpenCreateAt", client.create(served.root, "new").map(drop)),
                ("MkdirAt", client.mkdir(served.root, "new").map(drop)),
                ("SymlinkAt", client.symlink(served.root, "new", "x").map(drop)),
                ("LinkAt", client.link(served.root, file, "new").map(drop)),
                ("BindAt", client.bind(served.root, "new").map(drop)),
                ("Mount", client.exchange(1, &[]).map(drop)),
            ];
            for (request, outcome) in refused {
                assert_eq!(outcome, Err(Errno::EMFILE), "{request}");
            }
        }
        assert!(!served.path().join("new").exists(), "an error means that nothing happened");
        served.gofer.assert_descriptors(at_limit, "descriptors leaked");
        // What needs no number goes on, and so does a walk to nowhere.
        assert!(client.walk(served.root, &[b"none"]).is_ok());
        assert!(client.fstat(file).is_ok() && client.walk_stat(served.root, &[b"d", b"d"]).is_ok());
        client.close(&held);
        assert!(client.walk(served.root, &[b"d", b"d", b"d", b"d"]).is_ok(), "there is room again");
        let last = held.last().expect("a number").0;
        client.close(&(last..last + 20).map(FdId).collect::<Vec<_>>());
    });
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
    let baseline = listening.gofer.settled_descriptors();
    listening.gofer.limit_descriptors(baseline + 40);
    let held = fill(|| greedy.walk(greedy_root, &[b"d"]).map(|(_, inodes)| inodes[0].control_fd));
    assert!(held.len() >= 35, "{} numbers", held.len());
    for _ in 0..3 {
        assert_eq!(greedy.mkdir(greedy_root, "new").err(), Some(Errno::EMFILE));
        assert_eq!(greedy.create(greedy_root, "new").err(), Some(Errno::EMFILE));
        assert_eq!(greedy.symlink(greedy_root, "new", "x").err(), Some(Errno::EMFILE));
    }
    assert!(!listening.path().join("new").exists(), "an error means that nothing happened");
    assert_eq!(modest.pread(open, 0, 5).as_deref(), Ok(&b"hello"[..]), "others are served from what they hold");
    assert!(modest.fstat(file).is_ok() && modest.rename((modest_root, "f"), (modest_root, "g")).is_ok());
    greedy.close(&held);
    assert!(modest.walk(modest_root, &[b"d"]).is_ok(), "there is room again");
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
