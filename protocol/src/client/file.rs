//! Open files: data of any length, in as many messages as it takes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Client, Error, Fd};
use crate::record::Statx;
use crate::{Errno, FdId, Mid};

/// An open file of the server. Closed some time after it was dropped, see [`Client::flush_closes`].
///
/// All data goes through the server. Who wants to take the direct way asks for [`File::donated`].
#[derive(Debug)]
pub struct File {
    fd: Fd,
    donated: Option<OwnedFd>,
}

impl File {
    /// Takes over an open descriptor, and the host's where one came with it.
    #[must_use]
    pub fn new(fd: Fd, donated: Option<OwnedFd>) -> Self {
        Self { fd, donated }
    }

    /// Its number, for as long as this lives.
    #[must_use]
    pub fn id(&self) -> FdId {
        self.fd.id()
    }

    /// The connection that it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.fd.client()
    }

    /// The file on the host, opened the same way, if the server has donated it.
    #[must_use]
    pub fn donated(&self) -> Option<BorrowedFd<'_>> {
        self.donated.as_ref().map(AsFd::as_fd)
    }

    /// Takes the host's file out.
    pub fn take_donated(&mut self) -> Option<OwnedFd> {
        self.donated.take()
    }

    /// Its present attributes.
    ///
    /// # Errors
    /// Those of [`Client::fstat`].
    pub fn stat(&self) -> Result<Statx, Error> {
        self.client().fstat(self.id())
    }

    /// Reads at `offset`, and returns how much there was: less than `into` has room for only at the end of the file,
    /// and nothing only there or if `into` is empty.
    ///
    /// # Errors
    /// Those of [`Client::pread`], if nothing was read before. An error behind some data is left to the next call.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        let step = self.client().max_read();
        transfer(Mid::PREAD, offset, into.len(), step, |done, len, at| {
            let room = into.get_mut(done..done + len).unwrap_or_default();
            self.client().pread(self.id(), at, room)
        })
    }

    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::EndOfFile`](super::ErrorKind::EndOfFile) if there is less; those of [`File::read_at`].
    pub fn read_exact_at(&self, into: &mut [u8], offset: u64) -> Result<(), Error> {
        let len = into.len();
        let mut done = 0;
        while done < len {
            let read = self.read_at(into.get_mut(done..).unwrap_or_default(), beyond(Mid::PREAD, offset, done)?)?;
            if read == 0 {
                return Err(Error::end_of_file());
            }
            done += read;
        }
        Ok(())
    }

    /// Everything from `offset` to the end.
    ///
    /// # Errors
    /// Those of [`File::read_at`].
    pub fn read_to_end_at(&self, offset: u64) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        loop {
            let done = data.len();
            // Small files are most files; large ones are read in steps that grow with them.
            data.resize(done + done.clamp(1 << 16, self.client().max_read()), 0);
            let room = data.get_mut(done..).unwrap_or_default();
            let read = self.read_at(room, beyond(Mid::PREAD, offset, done)?)?;
            let full = read == room.len();
            data.truncate(done + read);
            if !full {
                return Ok(data);
            }
        }
    }

    /// Writes `data` at `offset`, and returns how much of it was written: less than all where an error came up behind
    /// it, which the next call meets.
    ///
    /// # Errors
    /// Those of [`Client::pwrite`], if nothing was written before.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<usize, Error> {
        let step = self.client().max_write();
        transfer(Mid::PWRITE, offset, data.len(), step, |done, len, at| {
            self.client().pwrite(self.id(), at, data.get(done..done + len).unwrap_or_default())
        })
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// Those of [`Client::pwrite`]; some of the data may have been written. [`File::write_at`] says how much.
    pub fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        let mut done = 0;
        while done < data.len() {
            let rest = data.get(done..).unwrap_or_default();
            let written = self.write_at(rest, beyond(Mid::PWRITE, offset, done)?)?;
            if written == 0 {
                return Err(Error::reply(Mid::PWRITE, "it reports neither progress nor an error"));
            }
            done += written;
        }
        Ok(())
    }

    /// Writes `data` at the present end of the file, and returns where that was.
    ///
    /// The protocol has no way to append: this asks for the size, then writes there. **Two appenders that are not kept
    /// apart by other means can overwrite each other's data**, and so can an appender and anyone else who makes the
    /// file longer, be it another client, another thread of this one, or a process on the server's host. `O_APPEND`
    /// does not help, the server drops it.
    ///
    /// # Errors
    /// Those of [`File::stat`] and [`File::write_all_at`].
    pub fn append(&self, data: &[u8]) -> Result<u64, Error> {
        let end = self.stat()?.size;
        self.write_all_at(data, end)?;
        Ok(end)
    }

    /// Writes the file through to its storage.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn sync(&self) -> Result<(), Error> {
        self.client().fsync(&[self.id()])
    }

    /// Makes sure that there is space for `length` bytes from `offset` on.
    ///
    /// # Errors
    /// Those of [`Client::fallocate`].
    pub fn allocate(&self, offset: u64, length: u64) -> Result<(), Error> {
        self.client().fallocate(self.id(), 0, offset, length)
    }

    /// Closes it now.
    ///
    /// # Errors
    /// Those of a lost connection.
    pub fn close(self) -> Result<(), Error> {
        self.fd.close()
    }
}

/// Moves `len` bytes in steps that fit in a message. `one` is given how much is done, how much to do now, and where in
/// the file; a step that does less than it could is the last.
fn transfer(
    mid: Mid,
    offset: u64,
    len: usize,
    step: usize,
    mut one: impl FnMut(usize, usize, u64) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut done = 0;
    loop {
        let now = (len - done).min(step);
        match beyond(mid, offset, done).and_then(|at| one(done, now, at)) {
            Ok(moved) => {
                done += moved;
                if moved < now || done >= len {
                    return Ok(done);
                }
            }
            // What is done is done, and has to be told. The next call meets the error again.
            Err(_) if done > 0 => return Ok(done),
            Err(error) => return Err(error),
        }
    }
}

/// The position `done` bytes behind `offset`.
fn beyond(mid: Mid, offset: u64, done: usize) -> Result<u64, Error> {
    let done = u64::try_from(done).ok();
    done.and_then(|done| offset.checked_add(done))
        .ok_or_else(|| Error::refused(mid, Errno::EINVAL, "there is no such position in a file"))
}
