//! cat, get, put: data of files, in pieces as large as a message.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gofer_protocol::Errno;
use gofer_protocol::client::{Client, Error, File};
use serde_json::json;

use super::super::Failure;
use super::{failed, show};

const O_RDONLY: u32 = 0;
const O_WRONLY_TRUNC: u32 = 1 | 0o1000;

/// Bytes that are moved at a time.
const PIECE: usize = 1 << 20;

/// Transfers below this size need no progress line.
const WORTH_WATCHING: u64 = 64 << 20;

pub(super) fn cat(client: &Client, paths: &[OsString]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for path in paths {
        let file = open(client, path)?;
        download(&file, &mut out, &mut Progress::silent(), path)?;
    }
    out.flush().map_err(|error| Failure::new("write to standard output", error))
}

pub(super) fn get(client: &Client, remote: &OsString, local: &Path, json: bool) -> Result<(), Failure> {
    let file = open(client, remote)?;
    let size = file.stat().map_err(failed("read", remote))?.size;
    let mut target =
        fs::File::create(local).map_err(|error| Failure::new(format_args!("create {}", local.display()), error))?;
    let bytes = download(&file, &mut target, &mut Progress::of(size), remote)?;
    moved(json, remote, bytes)
}

pub(super) fn put(client: &Client, local: &Path, remote: &OsString, json: bool) -> Result<(), Failure> {
    let unreadable = |error| Failure::new(format_args!("read {}", local.display()), error);
    let mut source = fs::File::open(local).map_err(unreadable)?;
    let size = source.metadata().map_err(unreadable)?.len();
    let fail = failed("write", remote);
    let file = create_or_replace(client, remote).map_err(&fail)?;
    let mut progress = Progress::of(size);
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let len = source.read(&mut piece).map_err(unreadable)?;
        let Some(data) = piece.get(..len).filter(|data| !data.is_empty()) else { break };
        file.write_all_at(data, at).map_err(&fail)?;
        at += as_u64(len);
        progress.show(at);
    }
    file.close().map_err(&fail)?;
    moved(json, remote, at)
}

fn open(client: &Client, path: &OsString) -> Result<File, Failure> {
    client.lookup(path.as_bytes()).and_then(|node| node.open(O_RDONLY)).map_err(failed("open", path))
}

fn create_or_replace(client: &Client, path: &OsString) -> Result<File, Error> {
    match client.create_new(path.as_bytes(), 0o644) {
        Ok((_, file)) => Ok(file),
        Err(error) if error.errno() == Errno::EEXIST => client.lookup(path.as_bytes())?.open(O_WRONLY_TRUNC),
        Err(error) => Err(error),
    }
}

fn download(file: &File, out: &mut impl Write, progress: &mut Progress, path: &OsString) -> Result<u64, Failure> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let len = file.read_at(&mut piece, at).map_err(failed("read", path))?;
        let Some(data) = piece.get(..len).filter(|data| !data.is_empty()) else { return Ok(at) };
        out.write_all(data).map_err(|error| Failure::new(format_args!("write what {path:?} holds"), error))?;
        at += as_u64(len);
        progress.show(at);
    }
}

fn moved(json: bool, path: &OsString, bytes: u64) -> Result<(), Failure> {
    if json { show::line(show::with(json!({ "bytes": bytes }), &show::json_name(path.as_bytes()))) } else { Ok(()) }
}

/// A line on a terminal that says how far a long transfer has come.
struct Progress {
    total: u64,
    shown: Option<u64>,
}

impl Progress {
    fn silent() -> Self {
        Self { total: 0, shown: None }
    }

    fn of(total: u64) -> Self {
        Self { total, shown: (total >= WORTH_WATCHING && io::stderr().is_terminal()).then_some(0) }
    }

    fn show(&mut self, done: u64) {
        let percent = done.saturating_mul(100).checked_div(self.total).unwrap_or(100).min(100);
        if self.shown.is_some_and(|shown| shown != percent) {
            self.shown = Some(percent);
            // A terminal that is gone is no reason to stop.
            let _ = write!(io::stderr(), "\r{percent:3} % of {} MiB", self.total >> 20);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = writeln!(io::stderr());
        }
    }
}

fn as_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
