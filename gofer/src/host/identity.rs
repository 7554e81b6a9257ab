//! The ids of a thread: what a peer sees that is connected to, and what a socket's mode is checked against.
//!
//! For threads that end soon: nothing here is taken back.

use gofer_protocol::{Gid, Uid};
use rustix::io::{Errno, Result};
use rustix::process::{getegid, geteuid, getgid, getgroups, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Sets the calling thread's effective ids, and leaves the server's supplementary groups behind: they are no more the
/// client's than its ids. First the groups, then the group, because a user that is not root may set neither.
pub(super) fn take(uid: Uid, gid: Gid) -> Result<()> {
    let change = Change::to(uid, gid);
    change.take_groups()?;
    change.take_user()?;
    if change.uid.is_some_and(|uid| uid != 0) {
        // The kernel takes capabilities away only from who was root. They would open sockets that the ids may not.
        let kept = capabilities(None)?;
        set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..kept })?;
    }
    Ok(())
}

/// As [`take`], where `capset(2)` would be the end of the process, and without the capabilities the other calls as well:
/// those are held exactly where the system call filter lets them through.
///
/// # Errors
/// `EPERM` without `CAP_SETUID` and `CAP_SETGID`, and for another user's ids where the process is not root: it would
/// keep its capabilities.
pub(super) fn take_confined(uid: Uid, gid: Gid) -> Result<()> {
    let change = Change::to(uid, gid);
    if change.is_none() {
        return Ok(());
    }
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let was_root = geteuid().is_root();
    if !capabilities(None)?.effective.contains(needed) || (change.uid.is_some() && !was_root) {
        return Err(Errno::PERM);
    }
    change.take_groups()?;
    change.take_user()
}

/// Ids that differ from those that the thread has.
struct Change {
    uid: Option<u32>,
    gid: Option<u32>,
}

impl Change {
    fn to(uid: Uid, gid: Gid) -> Self {
        Self {
            uid: Some(uid.0).filter(|&id| uid != Uid::NONE && id != geteuid().as_raw()),
            gid: Some(gid.0).filter(|&id| gid != Gid::NONE && id != getegid().as_raw()),
        }
    }

    fn is_none(&self) -> bool {
        (self.uid, self.gid) == (None, None)
    }

    fn take_groups(&self) -> Result<()> {
        if !self.is_none() && !getgroups()?.is_empty() {
            set_thread_groups(&[])?;
        }
        let Some(gid) = self.gid else { return Ok(()) };
        let (real, saved) = (getgid(), getegid());
        set_thread_res_gid(real, rustix::thread::Gid::from_raw(gid), saved)
    }

    fn take_user(&self) -> Result<()> {
        let Some(uid) = self.uid else { return Ok(()) };
        let (real, saved) = (getuid(), geteuid());
        set_thread_res_uid(real, rustix::thread::Uid::from_raw(uid), saved)
    }
}
