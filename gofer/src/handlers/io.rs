//! FSync, PWrite, PRead, FAllocate: data behind a held descriptor.
//!
//! They take no lock of the tree. They depend on no position, the kernel's own inode lock keeps writes apart, and they
//! may wait for a disk, or for a network file system that is gone: nothing else must wait with them.

use std::io;

use gofer_protocol::codec::decode;
use gofer_protocol::message::{
    FAllocateRequest, FSyncRequest, PREAD_REPLY_HEAD, PReadRequest, PWriteHead, PWriteReply,
};
use gofer_protocol::transport::Header;
use gofer_protocol::{Ended, Errno, Transport};

use super::{Context, Reply};

/// Bytes of a PRead request.
const PREAD_REQUEST: usize = 24;

/// Writes files through to their storage. All are tried; the first error is returned.
pub(crate) fn fsync(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: FSyncRequest<'_> = decode(payload)?;
    let sync = |fd| cx.connection.fds().open(fd).and_then(|open| Ok(rustix::fs::fsync(&*open)?));
    request.fds.iter().map(sync).fold(Ok(()), Result::and)
}

/// Writes data at an offset: all of it, or as much as goes; an error only if nothing went.
///
/// `EBADF` unless open for writing, `EINVAL` beyond what a file offset can be.
pub(crate) fn pwrite(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    header: Header,
    reply: &mut Reply,
) -> Result<Result<(), Errno>, Ended> {
    let head = decode::<PWriteHead>(transport.payload(PWriteHead::LEN)?);
    Ok(head.map_err(Errno::from).and_then(|head| write(cx, transport, header, head, reply)))
}

fn write(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    header: Header,
    head: PWriteHead,
    reply: &mut Reply,
) -> Result<(), Errno> {
    let len = length(head.num_bytes);
    if len > header.payload_len.saturating_sub(PWriteHead::LEN) {
        return Err(Errno::EIO);
    }
    let open = cx.connection.fds().open(head.fd)?;
    open.writable()?;
    let count = open.data(cx.place, |host| {
        transfer(head.offset, len, |done, offset| {
            transport.write_file(PWriteHead::LEN + done, len - done, host, offset)
        })
    })?;
    reply.put(&PWriteReply { count });
    Ok(())
}

/// Reads data at an offset: all of it, or up to the end of the file, or up to an error.
///
/// `EBADF` unless open for reading, `ENOBUFS` if the reply would not fit, `EINVAL` beyond what a file offset can be.
pub(crate) fn pread(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    _: Header,
    reply: &mut Reply,
) -> Result<Result<(), Errno>, Ended> {
    let request = decode::<PReadRequest>(transport.payload(PREAD_REQUEST)?);
    Ok(request.map_err(Errno::from).and_then(|request| read(cx, transport, request, reply)))
}

fn read(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    request: PReadRequest,
    reply: &mut Reply,
) -> Result<(), Errno> {
    let open = cx.connection.fds().open(request.fd)?;
    open.readable()?;
    let len = length(request.count);
    if PREAD_REPLY_HEAD.saturating_add(len) > cx.connection.max_message_size() {
        return Err(Errno::ENOBUFS);
    }
    let count = open.data(cx.place, |host| {
        transfer(request.offset, len, |done, offset| {
            transport.read_file(PREAD_REPLY_HEAD + done, len - done, host, offset)
        })
    })?;
    reply.put(&count);
    reply.bulk = usize::try_from(count).map_err(|_| Errno::EIO)?;
    Ok(())
}

/// Repeats a host call until `len` bytes went, or it says 0, or it fails. What went before a failure counts.
fn transfer(offset: u64, len: usize, mut call: impl FnMut(usize, u64) -> io::Result<usize>) -> Result<u64, Errno> {
    let mut done = 0;
    if len == 0 {
        return Ok(0);
    }
    let end = u64::try_from(len).ok().and_then(|len| offset.checked_add(len));
    if end.is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(Errno::EINVAL);
    }
    while done < len {
        match call(done, offset + to_u64(done)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(to_u64(done))
}

/// Allocates space. `EOPNOTSUPP` for every mode but 0, `EINVAL` for a length of 0 or offsets that no file has.
pub(crate) fn fallocate(cx: &Context<'_>, payload: &[u8], _: &mut Reply) -> Result<(), Errno> {
    let request: FAllocateRequest = decode(payload)?;
    let open = cx.connection.fds().open(request.fd)?;
    open.writable()?;
    if request.mode != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if request.length == 0 || i64::try_from(request.length).is_err() || i64::try_from(request.offset).is_err() {
        return Err(Errno::EINVAL);
    }
    let mode = rustix::fs::FallocateFlags::empty();
    Ok(rustix::fs::fallocate(&*open, mode, request.offset, request.length)?)
}

fn length(wire: u32) -> usize {
    usize::try_from(wire).unwrap_or(usize::MAX)
}

fn to_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
