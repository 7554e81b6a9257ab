//! The ids to go on with once the user namespace is mapped.

use rustix::process::{Gid, Uid};

use crate::process::StartError;

/// Takes on `uid`, then `gid`, in the original's order. The process has one thread, so that the thread's ids are its own.
pub(super) fn take_on(uid: u32, gid: u32) -> Result<(), StartError> {
    rustix::thread::set_thread_uid(Uid::from_raw(uid))
        .map_err(|cause| StartError::new(format_args!("take on uid {uid}"), cause))?;
    rustix::thread::set_thread_gid(Gid::from_raw(gid))
        .map_err(|cause| StartError::new(format_args!("take on gid {gid}"), cause))
}
