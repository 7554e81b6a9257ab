//! Listings of any length.

use std::collections::VecDeque;
use std::fmt;

use super::{Error, File};
use crate::Mid;
use crate::record::{Dirent, FileType};

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Neither `.` nor `..` in what [`ReadDir`] yields.
    pub name: Vec<u8>,
    /// None where the host's file system does not tell.
    pub file_type: Option<FileType>,
    /// Inode number.
    pub ino: u64,
    /// Device of the entry.
    pub dev_major: u32,
    /// Device of the entry.
    pub dev_minor: u32,
    /// The host directory's cookie after this entry.
    pub off: u64,
}

impl From<Dirent<'_>> for Entry {
    fn from(dirent: Dirent<'_>) -> Self {
        Self {
            name: dirent.name.as_bytes().to_vec(),
            file_type: FileType::from_dirent_type(dirent.entry_type),
            ino: dirent.ino,
            dev_major: dirent.dev_major,
            dev_minor: dirent.dev_minor,
            off: dirent.off,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" ({:?}, inode {})", self.name.escape_ascii(), self.file_type, self.ino)
    }
}

/// The entries of a directory, asked for as they are needed. Ends after an error.
///
/// A server keeps the position with the open directory: this reads it alone.
#[derive(Debug)]
pub struct ReadDir {
    dir: File,
    next: Next,
    entries: VecDeque<Entry>,
}

/// What to ask for when no entry is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    FromTheFront,
    GoOn,
    Nothing,
}

impl ReadDir {
    /// Lists an open directory from its front.
    #[must_use]
    pub fn new(dir: File) -> Self {
        Self { dir, next: Next::FromTheFront, entries: VecDeque::new() }
    }

    /// Starts again from the front.
    pub fn rewind(&mut self) {
        self.next = Next::FromTheFront;
        self.entries.clear();
    }

    /// Asks for more entries.
    fn fill(&mut self) -> Result<(), Error> {
        let count = match self.next {
            Next::FromTheFront => -BUDGET,
            Next::GoOn => BUDGET,
            Next::Nothing => return Ok(()),
        };
        self.next = Next::Nothing;
        let entries = self.dir.client().getdents64(self.dir.id(), count)?;
        if entries.iter().any(|entry| !is_name(&entry.name)) {
            return Err(Error::reply(Mid::GETDENTS64, "an entry has no name, or not one that a file can have"));
        }
        if !entries.is_empty() {
            self.next = Next::GoOn;
        }
        self.entries.extend(entries.into_iter().filter(|entry| entry.name != b"." && entry.name != b".."));
        Ok(())
    }
}

impl Iterator for ReadDir {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        // A reply may hold nothing but `.` and `..`, and is not the end then.
        while self.entries.is_empty() && self.next != Next::Nothing {
            if let Err(error) = self.fill() {
                return Some(Err(error));
            }
        }
        self.entries.pop_front().map(Ok)
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Bytes of the host's records to ask for; the kernel of a sandbox asks for as many.
const BUDGET: i32 = 1 << 16;
