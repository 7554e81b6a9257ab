//! The packet window: memory shared with the peer, and the only unsafe code of this crate.
//!
//! The peer can write to this memory at any moment, so there are no references into it other than to the two atomic
//! words of its header. Everything else moves by relaxed atomic accesses, byte for byte out into private memory or in
//! from it, or is handed to the kernel by address. What was copied out is checked and used; it is never read again.
//!
//! | bytes | are |
//! |---|---|
//! | 0..4 | whose turn it is, see [`super::flipcall`] |
//! | 4..8 | length of the datagram |
//! | 8..16 | reserved |
//! | 16.. | the datagram |
//!
//! All offsets in this interface count from the start of the datagram area.

#![allow(unsafe_code, reason = "maps shared memory and moves bytes in and out of it")]

use std::{
    fmt,
    mem::MaybeUninit,
    ops::Range,
    os::fd::{AsFd, AsRawFd},
    ptr::{self, NonNull},
    // Never loom's: these overlay real memory.
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use rustix::{
    fs::{SealFlags, fcntl_get_seals, fstat, fstatfs},
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
    param::page_size,
    thread::futex,
};

use super::flipcall::{SleepFailed, Word};

/// Bytes of a window before the datagram area.
pub const HEADER_SIZE: usize = 16;

/// One mapped packet window.
pub struct Window {
    /// Start of a mapping of `length` bytes, page-aligned; this value owns it.
    base: NonNull<u8>,
    /// A multiple of the page size, so at least one page.
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and stays where it is while the value moves.
unsafe impl Send for Window {}

// SAFETY: `&Window` gives access to the memory only by atomic operations and by system calls, which may race with
// anything without harm to this program.
unsafe impl Sync for Window {}

impl Window {
    /// Maps `length` bytes at `offset` of `memory`.
    ///
    /// Nothing that `memory`'s other owners do afterwards can make an access fault: it has to be a memfd that can not
    /// shrink, and long enough.
    pub fn map(memory: impl AsFd, offset: i64, length: u64) -> Result<Self, MapError> {
        let memory = memory.as_fd();
        let page = page_size();
        let length = u32::try_from(length).ok().and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|&length| length >= page && length % page == 0).ok_or(MapError::Length)?;
        let offset = u64::try_from(offset).map_err(|_| MapError::Offset)?;
        if !offset.is_multiple_of(page as u64) {
            return Err(MapError::Offset);
        }
        // On other file systems than the kernel's own tmpfs a fault can fail for want of space or huge pages.
        if fstatfs(memory)?.f_type != TMPFS_MAGIC {
            return Err(MapError::NotSealed);
        }
        // The seal before the size: only then is the size a promise.
        if !fcntl_get_seals(memory)?.contains(SealFlags::SHRINK) {
            return Err(MapError::NotSealed);
        }
        let size = u64::try_from(fstat(memory)?.st_size).unwrap_or(0);
        if offset.checked_add(length as u64).is_none_or(|end| end > size) {
            return Err(MapError::BeyondEnd);
        }

        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address the kernel picks a free range, so no existing memory is affected.
        let base = unsafe { mmap(ptr::null_mut(), length, prot, MapFlags::SHARED, memory, offset) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, length })
    }

    /// The word that says whose turn it is.
    #[inline]
    pub fn state(&self) -> &AtomicU32 {
        // SAFETY: offset 0 is inside the mapping, which is at least a page.
        unsafe { self.header_word(0) }
    }

    /// The length that the last sender gave its datagram: untrusted, and any later call may give another answer.
    #[inline]
    pub fn data_len(&self) -> u32 {
        self.data_len_word().load(Ordering::Relaxed)
    }

    /// Announces the length of a datagram. The hand-over that follows publishes it.
    #[inline]
    pub fn set_data_len(&self, length: u32) {
        self.data_len_word().store(length, Ordering::Relaxed);
    }

    /// The longest datagram that fits.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.length - HEADER_SIZE
    }

    /// Copies the bytes from `offset` on into `target`, all of it or nothing.
    #[inline]
    pub fn copy_out(&self, offset: usize, target: &mut [u8]) -> Result<(), OutOfBounds> {
        let at = self.locate(offset, target.len())?;
        let target: *mut [u8] = target;
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, the borrow of `target` goes on until the end of this
        // function, and `load` writes nothing but initialized bytes.
        let target = unsafe { &mut *(target as *mut [MaybeUninit<u8>]) };
        // SAFETY: `locate` has found the range inside the mapping.
        unsafe { self.load(at, target) };
        Ok(())
    }

    /// Appends `length` bytes from `offset` on to `target`, all of them or nothing.
    #[inline]
    pub fn append_to(&self, offset: usize, length: usize, target: &mut Vec<u8>) -> Result<(), OutOfBounds> {
        let at = self.locate(offset, length)?;
        target.reserve(length);
        let spare = target.spare_capacity_mut().get_mut(..length).ok_or(OutOfBounds)?;
        // SAFETY: `locate` has found the range inside the mapping.
        unsafe { self.load(at, spare) };
        let filled = target.len() + length;
        // SAFETY: `load` has initialized the first `length` bytes of the spare capacity.
        unsafe { target.set_len(filled) };
        Ok(())
    }

    /// Copies `source` to `offset`, all of it or nothing.
    #[inline]
    pub fn copy_in(&self, offset: usize, source: &[u8]) -> Result<(), OutOfBounds> {
        let at = self.locate(offset, source.len())?;
        // SAFETY: `locate` has found the range inside the mapping.
        unsafe { self.store(at, source) };
        Ok(())
    }

    /// Reads up to `length` bytes at `position` of `file` straight to `offset`, with one call (repeated if interrupted).
    ///
    /// `EINVAL` if the range is not inside the window, or `position` is no file position.
    pub fn read_from_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        let at = self.locate(offset, length)?;
        let position = libc::off_t::try_from(position).map_err(|_| Errno::INVAL)?;
        // SAFETY: `locate` has found `at` inside the mapping.
        let target = unsafe { self.base.add(at) };
        // SAFETY: the kernel writes at most `length` bytes from `target` on, which `locate` has found to be inside the
        // mapping. No Rust reference covers them.
        retry(|| unsafe { libc::pread(file.as_fd().as_raw_fd(), target.as_ptr().cast(), length, position) })
    }

    /// Writes up to `length` bytes from `offset` on straight to `position` of `file`, with one call (repeated if
    /// interrupted). What is written is what the peer makes of the bytes during the call.
    ///
    /// `EINVAL` if the range is not inside the window, or `position` is no file position.
    pub fn write_to_file(
        &self,
        file: impl AsFd,
        offset: usize,
        length: usize,
        position: u64,
    ) -> rustix::io::Result<usize> {
        let at = self.locate(offset, length)?;
        let position = libc::off_t::try_from(position).map_err(|_| Errno::INVAL)?;
        // SAFETY: `locate` has found `at` inside the mapping.
        let source = unsafe { self.base.add(at) };
        // SAFETY: the kernel reads at most `length` bytes from `source` on, which `locate` has found to be inside the
        // mapping. No Rust reference covers them.
        retry(|| unsafe { libc::pwrite(file.as_fd().as_raw_fd(), source.as_ptr().cast(), length, position) })
    }

    /// Gives the memory of all whole pages in `range` back to the system; they read as zero afterwards. The page with
    /// the header stays.
    ///
    /// For bytes that nobody needs: only while it is this side's turn can it know which those are.
    ///
    /// `EINVAL` if the range is not inside the window.
    pub fn release(&self, range: Range<usize>) -> rustix::io::Result<()> {
        let length = range.end.checked_sub(range.start).ok_or(Errno::INVAL)?;
        let page = page_size();
        let start = self.locate(range.start, length)?.next_multiple_of(page);
        let end = (HEADER_SIZE + range.end) / page * page;
        let Some(length) = end.checked_sub(start).filter(|&length| length > 0) else { return Ok(()) };
        // SAFETY: `start < end`, and `end` is at most the end of the mapping, by `locate`.
        let start = unsafe { self.base.add(start) };
        // SAFETY: the pages are whole, lie inside our mapping, and hold plain bytes, of which any value is valid.
        unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxRemove) }
    }

    /// Where in the mapping `offset` is, if `length` bytes from there on are all in the datagram area.
    #[inline]
    fn locate(&self, offset: usize, length: usize) -> Result<usize, OutOfBounds> {
        let end = offset.checked_add(length).ok_or(OutOfBounds)?;
        if end > self.capacity() {
            return Err(OutOfBounds);
        }
        Ok(HEADER_SIZE + offset)
    }

    /// Copies `target.len()` bytes out of the mapping, and initializes all of `target`.
    ///
    /// # Safety
    ///
    /// `at + target.len() <= self.length`.
    #[inline]
    unsafe fn load(&self, at: usize, target: &mut [MaybeUninit<u8>]) {
        let (head, rest) = target.split_at_mut(unaligned_head(at, target.len()));
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        let mut at = at;
        for byte in head {
            // SAFETY: `at` advances with `target`, so the caller has promised that it is inside.
            byte.write(unsafe { self.byte(at) }.load(Ordering::Relaxed));
            at += 1;
        }
        for word in words {
            // SAFETY: as above, for eight bytes; `head` ended where `at` became a multiple of eight.
            let value = unsafe { self.word(at) }.load(Ordering::Relaxed);
            *word = value.to_ne_bytes().map(MaybeUninit::new);
            at += WORD;
        }
        for byte in tail {
            // SAFETY: as above.
            byte.write(unsafe { self.byte(at) }.load(Ordering::Relaxed));
            at += 1;
        }
    }

    /// Copies `source` into the mapping.
    ///
    /// # Safety
    ///
    /// `at + source.len() <= self.length`.
    #[inline]
    unsafe fn store(&self, at: usize, source: &[u8]) {
        let (head, rest) = source.split_at(unaligned_head(at, source.len()));
        let (words, tail) = rest.as_chunks::<WORD>();
        let mut at = at;
        for &byte in head {
            // SAFETY: `at` advances with `source`, so the caller has promised that it is inside.
            unsafe { self.byte(at) }.store(byte, Ordering::Relaxed);
            at += 1;
        }
        for &word in words {
            // SAFETY: as above, for eight bytes; `head` ended where `at` became a multiple of eight.
            unsafe { self.word(at) }.store(u64::from_ne_bytes(word), Ordering::Relaxed);
            at += WORD;
        }
        for &byte in tail {
            // SAFETY: as above.
            unsafe { self.byte(at) }.store(byte, Ordering::Relaxed);
            at += 1;
        }
    }

    /// # Safety
    ///
    /// `at < self.length`.
    #[inline]
    unsafe fn byte(&self, at: usize) -> &AtomicU8 {
        // SAFETY: inside the mapping, by the caller's promise.
        let address = unsafe { self.base.add(at) };
        // SAFETY: any address is aligned for a byte, and the mapping lives as long as `self`. The copies of one side are
        // ordered by the hand-over, so within this program accesses of different sizes do not race.
        unsafe { AtomicU8::from_ptr(address.as_ptr()) }
    }

    /// # Safety
    ///
    /// `at` is a multiple of [`WORD`], and `at + WORD <= self.length`.
    #[inline]
    unsafe fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the mapping, by the caller's promise.
        let address = unsafe { self.base.add(at) };
        // SAFETY: aligned, as `base` is page-aligned; for the rest see `byte`.
        unsafe { AtomicU64::from_ptr(address.as_ptr().cast()) }
    }

    #[inline]
    fn data_len_word(&self) -> &AtomicU32 {
        // SAFETY: offset 4 is inside the mapping, which is at least a page.
        unsafe { self.header_word(4) }
    }

    /// # Safety
    ///
    /// `at` is a multiple of four, and `at + 4 <= HEADER_SIZE`.
    #[inline]
    unsafe fn header_word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, by the caller's promise.
        let address = unsafe { self.base.add(at) };
        // SAFETY: aligned, as `base` is page-aligned; the mapping lives as long as `self`; and the header is touched
        // through these words only, since `locate` keeps every copy behind it.
        unsafe { AtomicU32::from_ptr(address.as_ptr().cast()) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that borrowed from `self` is left.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Word for Window {
    #[inline]
    fn load(&self) -> u32 {
        self.state().load(Ordering::Acquire)
    }

    #[inline]
    fn compare_exchange(&self, current: u32, new: u32) -> Result<(), u32> {
        self.state().compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    fn swap(&self, new: u32) {
        self.state().swap(new, Ordering::AcqRel);
    }

    fn sleep(&self, expected: u32, limit: Duration) -> Result<(), SleepFailed> {
        let limit = futex::Timespec::try_from(limit).map_err(|_| SleepFailed)?;
        match futex::wait(self.state(), SHARED, expected, Some(&limit)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(_) => Err(SleepFailed),
        }
    }

    #[inline]
    fn wake_one(&self) {
        // It can only fail where `sleep` fails as well, which is reported.
        let _ = futex::wake(self.state(), SHARED, 1);
    }

    fn wake_all(&self) {
        let _ = futex::wake(self.state(), SHARED, i32::MAX.cast_unsigned());
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("state", &self.state().load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

/// A range that is not inside the datagram area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds;

impl From<OutOfBounds> for Errno {
    fn from(_: OutOfBounds) -> Self {
        Self::INVAL
    }
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not inside the packet window")
    }
}

impl std::error::Error for OutOfBounds {}

/// Why memory was not mapped as a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The length is not a whole number of pages between one page and 4 GiB.
    Length,
    /// The offset is negative or not a multiple of the page size.
    Offset,
    /// The descriptor is not a memfd that is sealed against shrinking.
    NotSealed,
    /// The memory ends before the window does.
    BeyondEnd,
    /// The host refused.
    Host(Errno),
}

impl From<Errno> for MapError {
    fn from(errno: Errno) -> Self {
        Self::Host(errno)
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the window's length is not a whole number of pages below 4 GiB"),
            Self::Offset => f.write_str("the window's offset is not a whole number of pages"),
            Self::NotSealed => f.write_str("the window's memory is not a memfd sealed against shrinking"),
            Self::BeyondEnd => f.write_str("the window reaches beyond the end of its memory"),
            Self::Host(errno) => write!(f, "cannot map the window: {errno}"),
        }
    }
}

impl std::error::Error for MapError {}

/// How many of the `length` bytes from `at` on come before the first whole aligned word.
#[inline]
fn unaligned_head(at: usize, length: usize) -> usize {
    (at.next_multiple_of(WORD) - at).min(length)
}

/// Repeats `call` while it is interrupted.
fn retry(call: impl Fn() -> libc::ssize_t) -> rustix::io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO) {
                Errno::INTR => {}
                errno => return Err(errno),
            },
        }
    }
}

const WORD: usize = size_of::<u64>();

const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// The waiters are in different processes, so the futex is not a private one.
const SHARED: futex::Flags = futex::Flags::empty();
