//! The loop that serves one transport: receive, dispatch, reply. Its buffers are reused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gofer_protocol::{Ended, Errno, Transport};

use super::dispatch::dispatch;
use super::tally::Worker;
use super::{Connection, oversize};
use crate::handlers::{Context, Reply};

/// Serves `transport` until it ends; says why it did.
pub(crate) fn serve(connection: &Arc<Connection>, transport: &mut dyn Transport) -> Ended {
    oversize::is_an_errno();
    let place = match connection.server().proc_fd.enter() {
        Ok(place) => place,
        Err(errno) => return Ended::Host(errno.into()),
    };
    let cx = Context { connection, place: &place };
    let mut reply = Reply::default();
    let mut count = connection.server().tally.worker();
    loop {
        if let Err(ended) = serve_one(&cx, transport, &mut reply, &mut count) {
            return ended;
        }
        reply.reset();
    }
}

fn serve_one(
    cx: &Context<'_>,
    transport: &mut dyn Transport,
    reply: &mut Reply,
    count: &mut Worker<'_>,
) -> Result<(), Ended> {
    let header = transport.receive()?;
    // Held until the reply is out: who closes the connection waits for it.
    let closing = cx.connection.running();
    // No input is known that makes a handler panic; if one does, the client gets an errno and the others go on. What
    // the handler held is released by unwinding, and poisoned locks are entered: their data is never half-written.
    let serve = || catch_unwind(AssertUnwindSafe(|| dispatch(cx, transport, header, *closing, reply)));
    let outcome = count.count(header.mid, serve);
    let mid = match outcome {
        Ok(outcome) => outcome?,
        Err(_) => {
            tracing::warn!(mid = ?header.mid, "handler panicked");
            reply.fail(Errno::EREMOTEIO)
        }
    };
    transport.reply(mid, &reply.head, reply.bulk, &mut reply.fds)
}
