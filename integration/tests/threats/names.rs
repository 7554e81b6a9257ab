//! Names that are more than a name.

use std::fs;

use gofer_integration::{Ask, Exchange, Outside, new_in, over_both};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

/// Threat: escape by `..`, `/`, absolute names.
#[test]
fn no_request_takes_a_name_that_is_not_a_single_component() {
    let outside = Outside::new();
    over_both(
        &["--host-uds", "all"],
        |dir| {
            fs::create_dir(dir.join("d")).expect("a directory");
            fs::write(dir.join("f"), "").expect("a file");
        },
        |t| {
            let file = t.client.walk_to(t.root, "f");
            let sibling = format!("../{}", outside.path().file_name().expect("a name").display());
            let (new, secret) = (format!("{sibling}/new"), format!("{sibling}/secret"));
            let absolute = format!("{}/secret", outside.path().display());
            for name in ["", ".", "..", "/", "d/", "d/x", "./f", "../..", "a\0b", "..\0", &new, &secret, &absolute] {
                for (request, outcome) in everything_that_takes_a_name(t.client, t.root, file, name) {
                    assert_eq!(outcome, Err(Errno::EINVAL), "{request} with {name:?}");
                }
            }
            assert_eq!(t.client.symlink(t.root, "l", "a\0b"), Err(Errno::EINVAL), "a target with a NUL");
            let mut left: Vec<_> =
                fs::read_dir(t.path()).expect("a listing").flatten().map(|e| e.file_name()).collect();
            left.sort();
            assert_eq!(left, ["d", "f"]);
            outside.assert_untouched();
        },
    );
}

fn everything_that_takes_a_name(
    client: &dyn Exchange,
    dir: FdId,
    file: FdId,
    name: &str,
) -> Vec<(&'static str, Result<(), Errno>)> {
    let exchange = |old, new| client.rename2((dir, old), (dir, new), 2);
    let mut attempts = vec![
        ("Walk", client.walk(dir, &[name]).map(drop)),
        ("Walk, second", client.walk(dir, &["d", name]).map(drop)),
        ("WalkStat, second", client.walk_stat(dir, &["d", name]).map(drop)),
        ("OpenCreateAt", client.create(dir, name).map(drop)),
        ("MkdirAt", client.mkdir(new_in(dir, FileType::Directory, 0o755), name).map(drop)),
        ("MknodAt", client.mknod(new_in(dir, FileType::Regular, 0o644), (0, 0), name).map(drop)),
        ("SymlinkAt", client.symlink(dir, name, "x").map(drop)),
        ("LinkAt", client.link(dir, file, name).map(drop)),
        ("UnlinkAt", client.unlink(dir, name)),
        ("UnlinkAt of a directory", client.rmdir(dir, name)),
        ("RenameAt, old", client.rename((dir, name), (dir, "n"))),
        ("RenameAt, new", client.rename((dir, "f"), (dir, name))),
        ("RenameAt2, old", exchange(name, "f")),
        ("RenameAt2, new", exchange("f", name)),
        ("BindAt", client.bind(new_in(dir, FileType::Socket, 0o755), 1, name).map(drop)),
    ];
    // An empty first component of WalkStat means the start itself.
    if !name.is_empty() {
        attempts.push(("WalkStat", client.walk_stat(dir, &[name]).map(drop)));
    }
    attempts
}
