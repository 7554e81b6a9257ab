//! The memory behind a connection's packet windows: one memfd, shared with the client, that only grows.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_getfl, fcntl_setfl, ftruncate, memfd_create},
    io::{Errno, fcntl_dupfd_cloexec},
    param::page_size,
};

use super::{
    channel::HEADER_SIZE as CHANNEL_HEADER,
    window::{HEADER_SIZE as WINDOW_HEADER, MapError, Window},
};

/// Windows a connection may have, for as long as it lives: the client makes one per processor, and four at most.
pub const MAX_WINDOWS: u64 = 4;

/// Carves the packet windows of one connection out of a memfd, back to back. Windows are never reused.
#[derive(Debug)]
pub struct WindowAllocator {
    window_length: u64,
    windows: u64,
    /// Created with the first window: many connections never ask for one.
    memory: Option<Memory>,
}

impl WindowAllocator {
    /// For messages of up to `max_message_size` bytes of payload.
    pub fn new(max_message_size: u32) -> Self {
        let needed = WINDOW_HEADER as u64 + CHANNEL_HEADER as u64 + u64::from(max_message_size);
        Self { window_length: needed.next_multiple_of(page_size() as u64), windows: 0, memory: None }
    }

    /// Makes the next window, zeroed unless the client tampers with memory that is not its own yet.
    pub fn allocate(&mut self) -> Result<Allocation, AllocateError> {
        if self.windows == MAX_WINDOWS {
            return Err(AllocateError::Limit);
        }
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(Memory::create()?),
        };
        let start = self.windows * self.window_length;
        memory.grow(start + self.window_length)?;
        let data_offset = i64::try_from(start).map_err(|_| Errno::OVERFLOW)?;
        let window = Window::map(&*memory, data_offset, self.window_length)?;
        let memory = fcntl_dupfd_cloexec(&*memory, 0)?;
        self.windows += 1;
        Ok(Allocation { window, memory, data_offset, data_length: self.window_length })
    }
}

/// A new window, and what the client needs to map it as well.
#[derive(Debug)]
pub struct Allocation {
    /// The server's mapping.
    pub window: Window,
    /// The memfd, to be donated.
    pub memory: OwnedFd,
    /// Where in the memfd the window starts.
    pub data_offset: i64,
    /// How long it is.
    pub data_length: u64,
}

/// Why there is no further window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateError {
    /// The connection has [`MAX_WINDOWS`] already.
    Limit,
    /// The memory could not be made or mapped.
    Map(MapError),
}

impl AllocateError {
    /// What the client is told: `ENOMEM` at the limit, which it expects and takes for "enough".
    pub const fn errno(self) -> Errno {
        match self {
            Self::Limit => Errno::NOMEM,
            Self::Map(MapError::Host(errno)) => errno,
            Self::Map(_) => Errno::INVAL,
        }
    }
}

impl From<Errno> for AllocateError {
    fn from(errno: Errno) -> Self {
        Self::Map(MapError::Host(errno))
    }
}

impl From<MapError> for AllocateError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

impl fmt::Display for AllocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => write!(f, "the connection has {MAX_WINDOWS} packet windows already"),
            Self::Map(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AllocateError {}

/// A memfd that neither side can shrink: a page that is mapped can always be touched.
#[derive(Debug)]
struct Memory {
    file: OwnedFd,
    /// As far as we have grown it. The client can make it longer still, at the price of our next growth failing.
    size: u64,
}

impl Memory {
    fn create() -> rustix::io::Result<Self> {
        let file = memfd_create(c"lisafs", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // SEAL as well, so that the client cannot forbid what we still need, such as growing.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)?;
        // Clients get their descriptors non-blocking. For a memfd it means nothing.
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        Ok(Self { file, size: 0 })
    }

    /// Doubles the size, from one page on, until it is at least `end`.
    fn grow(&mut self, end: u64) -> rustix::io::Result<()> {
        if end <= self.size {
            return Ok(());
        }
        let mut size = if self.size == 0 { page_size() as u64 } else { self.size };
        while size < end {
            size = size.checked_mul(2).ok_or(Errno::OVERFLOW)?;
        }
        ftruncate(&self.file, size)?;
        self.size = size;
        Ok(())
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
