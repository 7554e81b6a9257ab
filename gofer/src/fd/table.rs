//! A connection's numbers. Look-ups clone a reference; the lock is a leaf, and nothing is dropped under it.

use std::sync::{Arc, PoisonError, RwLock};

use gofer_protocol::{Errno, FdId};
use hashbrown::HashMap;

use super::{BoundSocket, ControlFd, Fd, OpenFd};
use crate::memory;

/// Descriptors that have to go before it is worth giving their memory back.
const WORTH_GIVING_BACK: usize = 4096;

/// Numbers of one page. Since numbers count up, a page of them costs little more than the references in it.
const PAGE: u64 = 64;

/// The numbers of one connection. They count up from 1 and are never used twice.
#[derive(Debug)]
pub(crate) struct FdTable {
    state: RwLock<State>,
    limit: usize,
}

#[derive(Debug)]
struct State {
    pages: HashMap<u64, Box<Page>>,
    live: usize,
    /// Most that were live since memory was given back.
    peak: usize,
    next: u64,
}

#[derive(Debug)]
struct Page {
    slots: [Option<Fd>; 64],
    live: usize,
}

impl FdTable {
    /// An empty table that holds at most `limit` descriptors.
    pub(crate) fn new(limit: usize) -> Self {
        Self { state: RwLock::new(State { pages: HashMap::new(), live: 0, peak: 0, next: 1 }), limit }
    }

    /// `EMFILE` unless `more` descriptors still fit. For use before a host call that would have to be undone.
    pub(crate) fn room_for(&self, more: usize) -> Result<(), Errno> {
        let live = self.state.read().unwrap_or_else(PoisonError::into_inner).live;
        if live.saturating_add(more) > self.limit { Err(Errno::EMFILE) } else { Ok(()) }
    }

    /// Gives each descriptor a number, or none of them: `EMFILE` if they do not all fit.
    pub(crate) fn insert_all(&self, fds: &mut Vec<Fd>, mut numbered: impl FnMut(FdId)) -> Result<(), Errno> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.live.saturating_add(fds.len()) > self.limit {
            return Err(Errno::EMFILE);
        }
        for fd in fds.drain(..) {
            numbered(state.insert(fd));
        }
        Ok(())
    }

    /// Gives a descriptor a number; `EMFILE` if the table is full.
    pub(crate) fn insert(&self, fd: Fd) -> Result<FdId, Errno> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.live >= self.limit {
            // The caller's reference outlives this one, or the lock would be held while it goes.
            drop(state);
            return Err(Errno::EMFILE);
        }
        Ok(state.insert(fd))
    }

    /// Gives two descriptors numbers, or neither: `EMFILE` if there is no room for both.
    pub(crate) fn insert_pair(&self, first: Fd, second: Fd) -> Result<(FdId, FdId), Errno> {
        let (mut pair, mut ids) = (vec![first, second], [FdId::NONE; 2]);
        let mut free = ids.iter_mut();
        self.insert_all(&mut pair, |id| free.next().map(|slot| *slot = id).unwrap_or_default())?;
        let [first, second] = ids;
        Ok((first, second))
    }

    /// What `id` stands for; `EBADF` if nothing.
    pub(crate) fn find(&self, id: FdId) -> Result<Fd, Errno> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let (page, slot) = place(id);
        let slots = &state.pages.get(&page).ok_or(Errno::EBADF)?.slots;
        slots.get(slot).and_then(Option::as_ref).cloned().ok_or(Errno::EBADF)
    }

    /// `EINVAL` if `id` stands for something else than a control descriptor.
    pub(crate) fn control(&self, id: FdId) -> Result<Arc<ControlFd>, Errno> {
        match self.find(id)? {
            Fd::Control(control) => Ok(control),
            Fd::Open(_) | Fd::Bound(_) => Err(Errno::EINVAL),
        }
    }

    /// `EINVAL` if `id` stands for something else than an open descriptor.
    pub(crate) fn open(&self, id: FdId) -> Result<Arc<OpenFd>, Errno> {
        match self.find(id)? {
            Fd::Open(open) => Ok(open),
            Fd::Control(_) | Fd::Bound(_) => Err(Errno::EINVAL),
        }
    }

    /// `EINVAL` if `id` stands for something else than a bound socket.
    pub(crate) fn bound(&self, id: FdId) -> Result<Arc<BoundSocket>, Errno> {
        match self.find(id)? {
            Fd::Bound(bound) => Ok(bound),
            Fd::Control(_) | Fd::Open(_) => Err(Errno::EINVAL),
        }
    }

    /// Frees numbers; unknown ones are passed over. What they stood for goes outside the lock: closing may take time.
    pub(crate) fn remove_all(&self, ids: impl Iterator<Item = FdId>) {
        for id in ids {
            drop(self.state.write().unwrap_or_else(PoisonError::into_inner).remove(id));
        }
        if self.state.write().unwrap_or_else(PoisonError::into_inner).has_fallen() {
            memory::give_back();
        }
    }

    /// Frees every number.
    pub(crate) fn clear(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let pages = std::mem::take(&mut state.pages);
        state.live = 0;
        drop(state);
        drop(pages);
        memory::give_back();
    }
}

impl State {
    fn insert(&mut self, fd: Fd) -> FdId {
        let id = FdId(self.next);
        self.next += 1;
        self.live += 1;
        self.peak = self.peak.max(self.live);
        let (page, slot) = place(id);
        let page = self.pages.entry(page).or_insert_with(|| Box::new(Page::empty()));
        if let Some(free) = page.slots.get_mut(slot) {
            *free = Some(fd);
            page.live += 1;
        }
        id
    }

    fn remove(&mut self, id: FdId) -> Option<Fd> {
        let (number, slot) = place(id);
        let page = self.pages.get_mut(&number)?;
        let fd = page.slots.get_mut(slot)?.take()?;
        page.live -= 1;
        self.live -= 1;
        if page.live == 0 {
            self.pages.remove(&number);
            if self.pages.len() * 8 < self.pages.capacity() {
                self.pages.shrink_to_fit();
            }
        }
        Some(fd)
    }

    /// Whether most of what was live is gone. Says so once; a client that opens and closes all the time is no reason.
    fn has_fallen(&mut self) -> bool {
        let fallen = self.peak - self.live >= WORTH_GIVING_BACK && self.live <= self.peak / 2;
        if fallen {
            self.peak = self.live;
        }
        fallen
    }
}

impl Page {
    fn empty() -> Self {
        Self { slots: [const { None }; 64], live: 0 }
    }
}

/// Page of a number, and its slot there.
fn place(id: FdId) -> (u64, usize) {
    // A remainder of 64 always fits.
    (id.0 / PAGE, usize::try_from(id.0 % PAGE).unwrap_or(0))
}
