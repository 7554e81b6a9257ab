//! FSync, PWrite, PRead, FAllocate: one message each. Data of any length: [`crate::client::File`].

use super::open::too_many;
use crate::client::call::Outgoing;
use crate::client::{Client, Error};
use crate::codec::{Array, decode};
use crate::message::{
    FAllocateRequest, FSyncRequest, PREAD_REPLY_HEAD, PReadRequest, PWriteHead, PWriteReply, PWriteRequest,
};
use crate::{Errno, FdId, Mid, Request, Wire};

impl Client {
    /// Bytes that one [`Client::pread`] may ask for.
    #[must_use]
    pub fn max_read(&self) -> usize {
        self.connection.limit - PREAD_REPLY_HEAD
    }

    /// Bytes that one [`Client::pwrite`] may carry.
    #[must_use]
    pub fn max_write(&self) -> usize {
        self.connection.limit - PWriteHead::LEN
    }

    /// Writes files through to their storage. All are tried.
    ///
    /// # Errors
    /// The first that a file met.
    pub fn fsync(&self, fds: &[FdId]) -> Result<(), Error> {
        let fds = Array::new(fds).ok_or_else(|| too_many(Mid::FSYNC))?;
        self.call(&FSyncRequest { fds })?.decode().map(drop)
    }

    /// Writes `data` at `offset`, and returns how much of it was written.
    ///
    /// # Errors
    /// `EBADF` if the file is not open for writing; `EIO` for more than [`Client::max_write`]; those of pwrite(2).
    pub fn pwrite(&self, fd: FdId, offset: u64, data: &[u8]) -> Result<usize, Error> {
        const MID: Mid = PWriteRequest::MID;
        let too_long = || Error::refused(MID, Errno::EIO, "there is more data than the server allows");
        let num_bytes = u32::try_from(data.len()).map_err(|_| too_long())?;
        let mut head = Vec::with_capacity(PWriteHead::LEN);
        PWriteHead { offset, fd, num_bytes }.put(&mut head);
        let request = Outgoing { mid: MID, head: &head, data, donations: PWriteRequest::DONATIONS };
        let reply = self.call_with_data(&request, |arrived| Ok(Ok(arrived.take_all()?)))?;
        let PWriteReply { count } = decode(reply.as_bytes()).map_err(|malformed| Error::malformed(MID, malformed))?;
        let count = usize::try_from(count).ok().filter(|count| *count <= data.len());
        count.ok_or_else(|| Error::reply(MID, "it counts more bytes than were sent"))
    }

    /// Reads at `offset` into `into`, and returns how much there was: less than `into` has room for, or nothing, at the
    /// end of the file.
    ///
    /// # Errors
    /// `EBADF` if the file is not open for reading; `ENOBUFS` for more than [`Client::max_read`]; those of pread(2).
    pub fn pread(&self, fd: FdId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        const MID: Mid = PReadRequest::MID;
        let too_long = || Error::refused(MID, Errno::ENOBUFS, "more is wanted than the server allows");
        let count = u32::try_from(into.len()).ok().filter(|_| into.len() <= self.max_read()).ok_or_else(too_long)?;
        let mut head = Vec::new();
        PReadRequest { offset, fd, count }.put(&mut head);
        let request = Outgoing { mid: MID, head: &head, data: &[], donations: PReadRequest::DONATIONS };
        self.call_with_data(&request, |arrived| {
            let mut num_bytes = [0; PREAD_REPLY_HEAD];
            if arrived.left() < num_bytes.len() {
                return Ok(Err(Error::reply(MID, "it is shorter than its layout needs")));
            }
            arrived.take(&mut num_bytes)?;
            let announced = usize::try_from(u64::from_le_bytes(num_bytes)).unwrap_or(usize::MAX);
            if announced > arrived.left() {
                return Ok(Err(Error::reply(MID, "it announces more bytes than it has")));
            }
            let Some(room) = into.get_mut(..announced) else {
                return Ok(Err(Error::reply(MID, "it has more bytes than were wanted")));
            };
            arrived.take(room)?;
            Ok(Ok(announced))
        })
    }

    /// Allocates space.
    ///
    /// # Errors
    /// `EBADF` if the file is not open for writing; `EOPNOTSUPP` for a mode that the server does not do; those of
    /// fallocate(2).
    pub fn fallocate(&self, fd: FdId, mode: u64, offset: u64, length: u64) -> Result<(), Error> {
        self.call(&FAllocateRequest { fd, mode, offset, length })?.decode().map(drop)
    }
}
