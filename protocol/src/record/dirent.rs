//! Directory entries: the only record with a name in it.

use std::fmt;

use crate::codec::{Decoder, Malformed, SizedString, Wire};

/// One entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirent<'a> {
    /// Inode number.
    pub ino: u64,
    /// Device of the entry. On the wire the minor comes first, unlike in a `Statx`.
    pub dev_minor: u32,
    /// Device of the entry.
    pub dev_major: u32,
    /// The host directory's cookie after this entry.
    pub off: u64,
    /// `DT_*`; see [`super::FileType::from_dirent_type`].
    pub entry_type: u8,
    /// Neither `.` nor `..`.
    pub name: SizedString<'a>,
}

impl Dirent<'_> {
    /// Bytes of an entry beside its name.
    pub const FIXED_LEN: usize = 27;
}

impl<'a> Wire<'a> for Dirent<'a> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            ino: input.take()?,
            dev_minor: input.take()?,
            dev_major: input.take()?,
            off: input.take()?,
            entry_type: input.take()?,
            name: input.take()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.ino.put(out);
        self.dev_minor.put(out);
        self.dev_major.put(out);
        self.off.put(out);
        self.entry_type.put(out);
        self.name.put(out);
    }
}

/// A 16-bit count, then that many entries. Decoding checks every length, so that walking it cannot fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dirents<'a> {
    count: u16,
    encoded: &'a [u8],
}

impl<'a> Dirents<'a> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no entry: to a client, the end of the directory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entries, in the host's order.
    pub fn iter(&self) -> impl Iterator<Item = Dirent<'a>> + use<'a> {
        let mut rest = Decoder::new(self.encoded);
        std::iter::from_fn(move || rest.take().ok())
    }
}

impl fmt::Debug for Dirents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Wire<'a> for Dirents<'a> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let (count, encoded) = input.counted::<Dirent<'_>>()?;
        Ok(Self { count, encoded })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.count.put(out);
        out.extend_from_slice(self.encoded);
    }
}

/// Entries written straight behind whatever `out` holds, with the count filled in as they come.
#[derive(Debug)]
pub struct DirentsBuf<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
    count: u16,
}

impl<'o> DirentsBuf<'o> {
    /// Starts an empty array that may grow to `limit` bytes, the count's two included.
    pub fn new(out: &'o mut Vec<u8>, limit: usize) -> Self {
        let start = out.len();
        0u16.put(out);
        Self { out, start, limit, count: 0 }
    }

    /// Number of entries so far.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no entry yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that may still be added.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.out.len() - self.start)
    }

    /// Entries that the 16-bit count can still take.
    #[must_use]
    pub fn entries_left(&self) -> usize {
        usize::from(u16::MAX - self.count)
    }

    /// Adds an entry; false, and nothing added, if it does not fit.
    pub fn push(&mut self, entry: &Dirent<'_>) -> bool {
        let needed = Dirent::FIXED_LEN + entry.name.as_bytes().len();
        let Some(count) = self.count.checked_add(1).filter(|_| needed <= self.room()) else { return false };
        entry.put(self.out);
        self.count = count;
        if let Some(slot) = self.out.get_mut(self.start..self.start + 2) {
            slot.copy_from_slice(&count.to_le_bytes());
        }
        true
    }
}
