//! A tree as text, one line for each file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Names, attributes and contents of all that is below `root`, in order.
pub(crate) fn lines(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    add(root, root, &mut lines);
    lines
}

fn add(root: &Path, path: &Path, lines: &mut Vec<String>) {
    let data = fs::symlink_metadata(path).expect("attributes");
    let content = if data.is_file() {
        format!("{:?}", fs::read(path).expect("a file"))
    } else if data.is_symlink() {
        format!("{:?}", fs::read_link(path).expect("a link"))
    } else {
        String::new()
    };
    let name = path.strip_prefix(root).expect("below the root").display();
    let (mode, links, uid, gid, size) = (data.mode(), data.nlink(), data.uid(), data.gid(), data.size());
    lines.push(format!("{name} {mode:o} {links} {uid} {gid} {size} {content}"));
    if data.is_dir() {
        let mut entries: Vec<_> = path.read_dir().expect("a listing").map(|e| e.expect("an entry").path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| add(root, entry, lines));
    }
}
