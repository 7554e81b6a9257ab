//! Detached copies of mounts under which files have other owners (Linux 5.12), made in a gofer's mount name space.
#![allow(
    unsafe_code,
    reason = "mount_setattr(2) has no safe form yet, and unshare(2) none for the sake of CLONE_FILES"
)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::child::{self, Plan};
use super::{LaunchError, UserNamespace};

/// A user name space with these maps, which no process is in for long.
pub(super) fn user_namespace(maps: &UserNamespace) -> Result<File, LaunchError> {
    let held = child::spawn(&Plan {
        // Never executed.
        path: c"/".to_owned(),
        argv: Vec::new(),
        environment: Vec::new(),
        descriptors: Vec::new(),
        namespaces: libc::CLONE_NEWUSER,
        session: false,
        become_root: false,
        ambient: 0,
        error: None,
    })?;
    let path = format!("/proc/{}/ns/user", held.pid.as_raw_nonzero());
    let opened = maps
        .map(held.pid)
        .and_then(|()| File::open(&path).map_err(|error| LaunchError::new(format_args!("open {path}"), error)));
    held.give_up();
    opened
}

/// What is mounted at `source` in the mount name space `mounts`, attached nowhere, with the ids of `users`.
///
/// `recursive` takes along what is mounted below it, and `all` maps the ids there too. On a thread of its own, since it
/// has to enter the name space.
pub(super) fn mapped_tree(
    mounts: BorrowedFd<'_>,
    users: BorrowedFd<'_>,
    source: &Path,
    (recursive, all): (bool, bool),
) -> Result<OwnedFd, Errno> {
    let make = || {
        leave_siblings()?;
        move_into_link_name_space(mounts, Some(LinkNameSpaceType::Mount))?;
        let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
        let tree = open_tree(CWD, source, flags)?;
        map_ids(tree.as_fd(), users, all)?;
        Ok(tree)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("gofer ids".into()).spawn_scoped(scope, make);
        thread.map_err(|_| Errno::NOMEM)?.join().unwrap_or(Err(Errno::IO))
    })
}

/// Whose working directory and root it shares, a thread may not enter another mount name space (setns(2)).
fn leave_siblings() -> Result<(), Errno> {
    // SAFETY: the call is unsafe because unsharing the descriptor table would let two threads mean different files by
    // one number. `FS` unshares the working directory, root and umask, which no descriptor depends on.
    unsafe { unshare_unsafe(UnshareFlags::FS) }
}

fn map_ids(tree: BorrowedFd<'_>, users: BorrowedFd<'_>, all: bool) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::from(users.as_raw_fd().cast_unsigned()),
    };
    let flags = libc::AT_EMPTY_PATH | if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a string with its end, and `attributes` a live structure of the size that is passed; the
    // kernel reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if result == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}
