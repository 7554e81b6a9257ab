//! Names that are more than a name.

use std::fs;

use gofer_integration::client::{creation, encoded};
use gofer_integration::raw::string;
use gofer_integration::{Client, Outside, Requests, Served, each_way};
use gofer_protocol::message::{MknodAtRequest, RenameAt2Request};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId, Request};

/// Threat: escape by `..`, `/`, absolute names.
#[test]
fn no_request_takes_a_name_that_is_not_a_single_component() {
    let outside = Outside::new();
    let served = Served::with(&["--host-uds", "all"], |dir| {
        fs::create_dir(dir.join("d")).expect("a directory");
        fs::write(dir.join("f"), "").expect("a file");
    });
    let file = served.client.walk_to(served.root, "f");
    let sibling = format!("../{}", outside.path().file_name().expect("a name").display());
    let (new, secret) = (format!("{sibling}/new"), format!("{sibling}/secret"));
    let absolute = format!("{}/secret", outside.path().display());
    each_way(&served.client, |client| {
        for name in ["", ".", "..", "/", "d/", "d/x", "./f", "../..", "a\0b", "..\0", &new, &secret, &absolute] {
            for (request, outcome) in everything_that_takes_a_name(client, served.root, file, name) {
                assert_eq!(outcome, Err(Errno::EINVAL), "{request} with {name:?}");
            }
        }
        assert_eq!(client.symlink(served.root, "l", "a\0b"), Err(Errno::EINVAL), "a target with a NUL");
    });
    let mut left: Vec<_> = fs::read_dir(served.path()).expect("a listing").flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["d", "f"]);
    outside.assert_untouched();
}

fn everything_that_takes_a_name(
    client: &dyn Client,
    dir: FdId,
    file: FdId,
    name: &str,
) -> Vec<(&'static str, Result<(), Errno>)> {
    let mknod =
        MknodAtRequest { create: creation(dir, FileType::Regular, 0o644), minor: 0, major: 0, name: string(name) };
    let exchange = |old, new| {
        let request =
            RenameAt2Request { old_dir: dir, new_dir: dir, old_name: string(old), new_name: string(new), flags: 2 };
        client.exchange(RenameAt2Request::MID.0, &encoded(&request)).map(drop)
    };
    let mut attempts = vec![
        ("Walk", client.walk(dir, &[name.as_bytes()]).map(drop)),
        ("Walk, second", client.walk(dir, &[b"d", name.as_bytes()]).map(drop)),
        ("WalkStat, second", client.walk_stat(dir, &[b"d", name.as_bytes()]).map(drop)),
        ("OpenCreateAt", client.create(dir, name).map(drop)),
        ("MkdirAt", client.mkdir(dir, name).map(drop)),
        ("MknodAt", client.ask(&mknod).map(drop)),
        ("SymlinkAt", client.symlink(dir, name, "x").map(drop)),
        ("LinkAt", client.link(dir, file, name).map(drop)),
        ("UnlinkAt", client.unlink(dir, name)),
        ("UnlinkAt of a directory", client.rmdir(dir, name)),
        ("RenameAt, old", client.rename((dir, name), (dir, "n"))),
        ("RenameAt, new", client.rename((dir, "f"), (dir, name))),
        ("RenameAt2, old", exchange(name, "f")),
        ("RenameAt2, new", exchange("f", name)),
        ("BindAt", client.bind(dir, name).map(drop)),
    ];
    // An empty first component of WalkStat means the start itself.
    if !name.is_empty() {
        attempts.push(("WalkStat", client.walk_stat(dir, &[name.as_bytes()]).map(drop)));
    }
    attempts
}
