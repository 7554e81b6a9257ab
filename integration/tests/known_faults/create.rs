//! Creating files.

use std::fs;

use gofer_integration::{Ask, Served};
use gofer_protocol::Errno;

/// Row B64, as far as a client sees it: there is no unnamed file, and no named one by mistake.
#[test]
fn stray_flags_of_an_open_never_make_a_file() {
    const CREAT: u32 = 0o100;
    const APPEND: u32 = 0o2000;
    const DIRECTORY: u32 = 0o200_000;
    const TMPFILE: u32 = 0o20_000_000 | DIRECTORY;
    let served = Served::with(&[], |dir| fs::write(dir.join("f"), "content").expect("a file"));
    let file = served.client.walk_to(served.root, "f");
    for stray in [TMPFILE, CREAT, DIRECTORY, !0o1003] {
        for access in [1, 2] {
            assert_eq!(served.client.open(served.root, access | stray).map(|_| ()), Err(Errno::EISDIR), "{stray:o}");
        }
        // The bits are dropped: a directory opens, and lists.
        let (open, donated) = served.client.open(served.root, stray).expect("a directory for reading");
        assert_eq!((donated.len(), served.client.list(open).len()), (0, 1), "{stray:o}");
    }
    // Appending is the client's work, so a write goes where it says.
    let (open, donated) = served.client.open(file, 2 | APPEND).expect("open");
    assert_eq!(served.client.pwrite(open, 0, b"C"), Ok(1));
    let donated = rustix::fs::fcntl_getfl(donated.first().expect("a descriptor")).expect("flags");
    assert!(!donated.contains(rustix::fs::OFlags::APPEND));
    assert_eq!(fs::read(served.path().join("f")).expect("the file"), b"Content");
    assert_eq!(fs::read_dir(served.path()).expect("the root").count(), 1);
}
