//! From the runtime's name spaces to the container's root: waits, mounts, the pivot, the list of mounts.

mod devices;
mod hooks;
mod identity;
mod mount_list;
mod mounts;
mod options;
mod plan;
mod resolve;
mod root;
mod rpc;
mod sync;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{UnmountFlags, unmount};

use self::plan::Plan;
use self::rpc::Rpc;
use crate::process::StartError;
use crate::process::args::Args;
use crate::process::spec::Spec;

/// What is left of start-up when the root is built and the mounts' list is written.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// `/proc/self/fd`, by its own bind mount, open; `/proc` itself is out of sight.
    pub(crate) descriptors: OwnedFd,
    /// `/proc/self/mountinfo`, opened after the pivot.
    pub(crate) mountinfo: File,
    /// The container's root, to be chrooted to: `/root`, or the root's own path where nothing was pivoted.
    pub(crate) root: PathBuf,
    /// One for each of `Donated::io`, in its order.
    pub(crate) connections: Vec<Connection>,
}

/// What a connection serves.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Absolute, below the container's root, free of symbolic links.
    pub(crate) path: PathBuf,
    /// What was there when the list of mounts was written.
    pub(crate) place: OwnedFd,
    pub(crate) read_only: bool,
}

/// Waits for the runtime, builds the root and tells the sandbox what is mounted. Takes the descriptors that are of no
/// use afterwards. Must be called while there is one thread: ids are a thread's own.
///
/// # Errors
/// A sentence that names the step and its object. Mounts are of this process's own name space and go with it.
pub(crate) fn run(args: &mut Args, spec: &mut Spec) -> Result<Prepared, StartError> {
    let plan = Plan::new(args, spec)?;
    for (fd, name) in
        [(args.donated.sync_chroot.take(), "sync-chroot-fd"), (args.donated.sync_nvproxy.take(), "sync-nvproxy-fd")]
    {
        if let Some(fd) = fd {
            sync::wait_for_eof(&fd, name)?;
        }
    }
    if let Some(fd) = args.donated.sync_userns.take() {
        sync::wait_for_eof(&fd, "sync-userns-fd")?;
        identity::take_on(args.uid, args.gid)?;
    }
    let rpc = args.donated.rpc.take().map(Rpc::new);
    let root = root::build(args, spec, &plan, rpc.as_ref())?;
    drop(rpc);
    let places = mount_list::settle(&root, &plan, spec, args.generation)?;
    if let Some(fd) = args.donated.mounts.take() {
        mount_list::send(fd, spec)?;
    }
    rustix::process::umask(Mode::empty());
    let (descriptors, mountinfo) = leave_proc(args.unsafe_nonroot)?;
    Ok(Prepared { descriptors, mountinfo, root, connections: plan.connections(spec, places) })
}

/// Opens what serving needs of procfs, and takes the rest out of sight: somebody who takes over this process shall find
/// no way from a descriptor to the host's processes.
fn leave_proc(not_pivoted: bool) -> Result<(OwnedFd, File), StartError> {
    let at = Path::new(if not_pivoted { "/proc/self/fd" } else { "/proc/fs" });
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptors = rustix::fs::open(at, flags, Mode::empty())
        .map_err(|cause| StartError::new(format_args!("open {}", at.display()), cause))?;
    let mountinfo =
        File::open("/proc/self/mountinfo").map_err(|cause| StartError::new("open /proc/self/mountinfo", cause))?;
    if not_pivoted {
        return Ok((descriptors, mountinfo));
    }
    // Learned from procfs on older kernels, and needed for the first channel.
    let _ = rustix::param::page_size();
    unmount("/proc", UnmountFlags::DETACH).map_err(|cause| StartError::new("unmount /proc", cause))?;
    if Path::new("/proc/self").symlink_metadata().is_ok() {
        return Err(StartError::sentence("/proc is still there after it was unmounted"));
    }
    Ok((descriptors, mountinfo))
}
