//! Descriptors of the server that close themselves, a hundred at a time.

use std::fmt;
use std::time::{Duration, Instant};

use super::Client;
use super::Error;
use crate::FdId;
use crate::sync::{Ordering, lock};

/// A descriptor of the server, of any kind. Closed some time after it was dropped: see [`Client::flush_closes`].
pub struct Fd {
    client: Client,
    /// [`FdId::NONE`] once it is somebody else's.
    id: FdId,
}

impl Fd {
    /// Its number, for as long as this lives.
    #[must_use]
    pub fn id(&self) -> FdId {
        self.id
    }

    /// The connection that it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Gives the number away, to be closed with [`Client::close`].
    #[must_use]
    pub fn into_id(mut self) -> FdId {
        std::mem::replace(&mut self.id, FdId::NONE)
    }

    /// Closes it now.
    ///
    /// # Errors
    /// Those of a lost connection.
    pub fn close(self) -> Result<(), Error> {
        let client = self.client.clone();
        client.close(&[self.into_id()])
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        if self.id != FdId::NONE {
            self.client.close_later(self.id);
        }
    }
}

impl fmt::Debug for Fd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl Client {
    /// Takes over a descriptor that a reply handed out.
    #[must_use]
    pub fn own(&self, id: FdId) -> Fd {
        Fd { client: self.clone(), id }
    }

    /// Closes all descriptors that were dropped.
    ///
    /// This happens by itself when a hundred have gathered, with the first call a tenth of a second later, and at the
    /// end of the connection. Who wants the server to let go of a file at once, and makes no further calls, says so.
    ///
    /// # Errors
    /// Those of a lost connection.
    pub fn flush_closes(&self) -> Result<(), Error> {
        let gathered = lock(&self.connection.closing).take();
        self.close(&gathered)
    }

    /// Closes `id` together with others.
    pub(super) fn close_later(&self, id: FdId) {
        lock(&self.connection.closing).push(id);
        self.connection.has_closing.store(true, Ordering::Release);
        self.close_overdue();
    }

    /// Closes what has waited long enough, or has become too much.
    pub(super) fn close_overdue(&self) {
        // Every call asks, and mostly there is nothing: no lock for that. Acquire: pairs with the Release above.
        if !self.connection.has_closing.load(Ordering::Acquire) {
            return;
        }
        let overdue = lock(&self.connection.closing).take_overdue();
        if !overdue.is_empty() {
            // It only fails with the connection, and with that the descriptors are gone.
            let _ = self.close(&overdue);
        }
    }
}

/// Descriptors that were dropped and that the server does not know of yet.
#[derive(Debug, Default)]
pub(super) struct Closing {
    ids: Vec<FdId>,
    /// When the first of them was dropped.
    since: Option<Instant>,
}

impl Closing {
    fn push(&mut self, id: FdId) {
        self.ids.push(id);
        self.since.get_or_insert_with(Instant::now);
    }

    fn take(&mut self) -> Vec<FdId> {
        self.since = None;
        std::mem::take(&mut self.ids)
    }

    fn take_overdue(&mut self) -> Vec<FdId> {
        match self.since {
            Some(since) if self.ids.len() >= BATCH || since.elapsed() >= PATIENCE => self.take(),
            _ => Vec::new(),
        }
    }
}

/// Descriptors that are closed together at most.
pub(super) const BATCH: usize = 100;

/// How long a descriptor waits for others while there are calls.
const PATIENCE: Duration = Duration::from_millis(100);
