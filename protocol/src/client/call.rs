//! One request and its reply, over whichever communicator is idle, with everything checked that a server could lie
//! about.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use super::communicator::{Arrived, Communicator, Payload};
use super::link::Link;
use super::{Client, Donated, Error};
use crate::codec::decode;
use crate::message::ErrorReply;
use crate::transport::Ended;
use crate::{Errno, Mid, Request, Wire};

impl Client {
    /// Sends any request, and waits for its reply.
    ///
    /// Descriptors that the reply hands over, in its payload or beside it, are the caller's.
    ///
    /// # Errors
    /// What the server answers; `EOPNOTSUPP` for a message that the server has not announced, and `EIO` for one that is
    /// longer than it allows, both without asking it; `EINVAL` for a reply to another message; `EIO` for a reply that
    /// makes no sense, and when the server is gone.
    pub fn call<'q, Q: Request + Wire<'q>>(&self, request: &Q) -> Result<Reply<Q>, Error> {
        self.check_support(Q::MID)?;
        self.close_overdue();
        perform(&self.connection.link, self.connection.limit, request)
    }

    /// As [`Client::call`], for messages with file data, which is not copied on its way to the communicator and, by
    /// `read`, from it.
    pub(super) fn call_with_data<T>(
        &self,
        request: &Outgoing<'_>,
        read: impl FnOnce(&mut Arrived<'_>) -> Read<T>,
    ) -> Result<T, Error> {
        self.check_support(request.mid)?;
        self.close_overdue();
        exchange(&self.connection.link, self.connection.limit, request, read)
    }

    fn check_support(&self, mid: Mid) -> Result<(), Error> {
        if self.connection.supports(mid) {
            return Ok(());
        }
        Err(Error::refused(mid, Errno::EOPNOTSUPP, "the server has not announced this message"))
    }
}

/// The reply to a `Q`: its bytes, and the descriptors beside it. Those that nobody takes are closed.
pub struct Reply<Q> {
    payload: Payload,
    /// Descriptors that came with the reply.
    pub donated: Donated,
    request: PhantomData<fn(Q)>,
}

impl<Q: Request> Reply<Q> {
    /// What the server says.
    ///
    /// # Errors
    /// `EIO` if the payload is shorter than its layout needs.
    pub fn decode(&self) -> Result<Q::Reply<'_>, Error> {
        decode(self.payload.as_bytes()).map_err(|malformed| Error::malformed(Q::MID, malformed))
    }
}

impl<Q: Request> fmt::Debug for Reply<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("mid", &Q::MID)
            .field("payload", &format_args!("{} bytes", self.payload.as_bytes().len()))
            .field("donated", &self.donated)
            .finish()
    }
}

/// A request on its way. Its payload is `head` and then `data`.
pub(super) struct Outgoing<'r> {
    pub(super) mid: Mid,
    pub(super) head: &'r [u8],
    pub(super) data: &'r [u8],
    pub(super) donations: usize,
}

/// What reading a reply yields; the outer error is the communicator's, the inner one the reply's.
pub(super) type Read<T> = Result<Result<T, Error>, Ended>;

/// Largest buffer that a request leaves behind for the next one of its thread.
const KEPT: usize = 4096;

/// Sends `request` and collects its reply as it is.
pub(super) fn perform<'q, Q: Request + Wire<'q>>(link: &Link, limit: usize, request: &Q) -> Result<Reply<Q>, Error> {
    thread_local! {
        /// Where this thread's requests are encoded, so that a request allocates nothing.
        static HEAD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    HEAD.with_borrow_mut(|head| {
        head.clear();
        head.shrink_to(KEPT);
        request.put(head);
        let request = Outgoing { mid: Q::MID, head, data: &[], donations: Q::DONATIONS };
        exchange(link, limit, &request, |arrived| {
            let payload = arrived.take_all()?;
            Ok(Ok(Reply { payload, donated: std::mem::take(&mut arrived.donated), request: PhantomData }))
        })
    })
}

/// Sends `request`, and has `read` look at the reply if it is a success.
fn exchange<T>(
    link: &Link,
    limit: usize,
    request: &Outgoing<'_>,
    read: impl FnOnce(&mut Arrived<'_>) -> Read<T>,
) -> Result<T, Error> {
    let mid = request.mid;
    if request.head.len() + request.data.len() > limit {
        return Err(Error::refused(mid, Errno::EIO, "the request is longer than the server allows"));
    }
    let mut communicator = link.acquire().map_err(|ended| Error::connection(mid, ended))?;
    match converse(&mut communicator, limit, request, read) {
        Ok(outcome) => {
            link.release(communicator);
            outcome
        }
        Err(ended) => Err(Error::connection(mid, link.discard(communicator, ended))),
    }
}

fn converse<T>(
    communicator: &mut Communicator,
    limit: usize,
    request: &Outgoing<'_>,
    read: impl FnOnce(&mut Arrived<'_>) -> Read<T>,
) -> Read<T> {
    let &Outgoing { mid, head, data, donations } = request;
    let mut arrived = communicator.exchange(mid, head, data, donations)?;
    let outcome = if arrived.left() > limit {
        Err(Error::reply(mid, "it is longer than the server allows"))
    } else if arrived.mid() == Mid::ERROR {
        Err(server_error(mid, &mut arrived)?)
    } else if arrived.mid() == mid {
        read(&mut arrived)?
    } else {
        Err(Error::reply_with(mid, Errno::EINVAL, "it answers another message"))
    };
    // Descriptors that nobody has taken are closed here.
    arrived.finish()?;
    Ok(outcome)
}

fn server_error(mid: Mid, arrived: &mut Arrived<'_>) -> Result<Error, Ended> {
    let mut payload = [0; size_of::<u32>()];
    if arrived.left() < payload.len() {
        return Ok(Error::reply(mid, "it is an error without an errno"));
    }
    arrived.take(&mut payload)?;
    Ok(decode::<ErrorReply>(&payload).map_or_else(
        |malformed| Error::malformed(mid, malformed),
        |error| Error::server(mid, Errno::from_wire(error.errno)),
    ))
}
