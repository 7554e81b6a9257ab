//! stat, mkdir, rm, mv.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use gofer_protocol::client::Client;
use gofer_protocol::record::Statx;
use serde_json::json;

use super::super::Failure;
use super::{failed, show};

pub(super) fn stat(client: &Client, paths: &[OsString], json: bool) -> Result<(), Failure> {
    for path in paths {
        let node = client.lookup(path.as_bytes()).map_err(failed("stat", path))?;
        if json {
            show::line(show::with(show::json_name(path.as_bytes()), &show::json_stat(node.first_stat())))?;
        } else {
            print_stat(&show::name(path.as_bytes()), node.first_stat())?;
        }
    }
    Ok(())
}

fn print_stat(path: &str, stat: &Statx) -> Result<(), Failure> {
    show::line(path)?;
    show::line(format_args!("  type   {}", show::kind(stat.mode.file_type())))?;
    show::line(format_args!("  mode   {:04o} {}", stat.mode.permissions(), show::mode(stat.mode)))?;
    show::line(format_args!("  owner  {}:{}", stat.uid, stat.gid))?;
    show::line(format_args!("  size   {} ({} blocks of 512)", stat.size, stat.blocks))?;
    show::line(format_args!("  inode  {} on {}:{}, {} links", stat.ino, stat.dev_major, stat.dev_minor, stat.nlink))?;
    show::line(format_args!("  mtime  {}", show::time(stat.mtime)))?;
    show::line(format_args!("  ctime  {}", show::time(stat.ctime)))
}

pub(super) fn mkdir(client: &Client, paths: &[OsString], mode: u16, json: bool) -> Result<(), Failure> {
    for path in paths {
        client.create_dir(path.as_bytes(), mode).map_err(failed("create directory", path))?;
        done(json, "created", path)?;
    }
    Ok(())
}

pub(super) fn rm(client: &Client, paths: &[OsString], dir: bool, json: bool) -> Result<(), Failure> {
    for path in paths {
        let removed = if dir { client.remove_dir(path.as_bytes()) } else { client.remove_file(path.as_bytes()) };
        removed.map_err(failed("remove", path))?;
        done(json, "removed", path)?;
    }
    Ok(())
}

pub(super) fn mv(client: &Client, from: &OsString, to: &OsString, json: bool) -> Result<(), Failure> {
    client.rename(from.as_bytes(), to.as_bytes()).map_err(failed("move", from))?;
    done(json, "moved", to)
}

/// What succeeds says nothing to people, like the tools of the host.
fn done(json: bool, what: &str, path: &OsString) -> Result<(), Failure> {
    if json { show::line(show::with(json!({ "done": what }), &show::json_name(path.as_bytes()))) } else { Ok(()) }
}
