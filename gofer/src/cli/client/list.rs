//! ls.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use gofer_protocol::client::{Client, Entry, Node};
use gofer_protocol::record::{FileType, Statx};
use serde_json::json;

use super::super::Failure;
use super::{failed, show};

pub(super) fn ls(client: &Client, path: &OsString, long: bool, json: bool) -> Result<(), Failure> {
    let fail = failed("list", path);
    let node = client.lookup(path.as_bytes()).map_err(&fail)?;
    if node.file_type() != Some(FileType::Directory) {
        return print(path.as_bytes(), node.file_type(), Some(node.first_stat()), long, json);
    }
    let mut entries = node.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(&fail)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in &entries {
        let stat = if long { stat_of(&node, entry) } else { None };
        print(&entry.name, entry.file_type, stat.as_ref(), long, json)?;
    }
    Ok(())
}

/// None if the entry vanished since, or is of a type that is not served.
fn stat_of(dir: &Node, entry: &Entry) -> Option<Statx> {
    dir.lookup(&entry.name).ok().map(|node| *node.first_stat())
}

fn print(
    name: &[u8],
    file_type: Option<FileType>,
    stat: Option<&Statx>,
    long: bool,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let object = show::with(show::json_name(name), &json!({ "type": show::kind(file_type) }));
        let more = stat.map_or_else(|| json!({}), show::json_stat);
        return show::line(show::with(object, &more));
    }
    let shown = show::name(name);
    match stat {
        Some(stat) if long => show::line(format_args!(
            "{} {:>6} {:>6} {:>12} {shown}",
            show::mode(stat.mode),
            stat.uid,
            stat.gid,
            stat.size
        )),
        None if long => show::line(format_args!("?????????? {:>6} {:>6} {:>12} {shown}", "?", "?", "?")),
        _ => show::line(shown),
    }
}
