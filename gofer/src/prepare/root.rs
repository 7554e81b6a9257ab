//! The container's root: a tmpfs of our own beside it, everything bound below, then the pivot.
//!
//! ```text
//! /           tmpfs, nothing else
//! /root       the container's root, with its mounts
//! /proc       the host's procfs, until the serving process needs it no more
//! /proc/fs    this process's descriptors, by a mount of their own: no way from there into procfs
//! ```

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use gofer::contract::Generation;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change, unmount,
};

use super::mounts::{Attached, attach, remount};
use super::plan::Plan;
use super::resolve::{Kind, open_root, resolve};
use super::rpc::Rpc;
use super::{devices, hooks, options};
use crate::process::StartError;
use crate::process::args::Args;
use crate::process::spec::{Mount, Spec};

/// Where the tmpfs lies before the pivot: a directory that every procfs has.
const NEW: &str = "/proc/fs";
const NEW_ROOT: &str = "/proc/fs/root";

/// Builds the root and makes it this process's; returns where in it the container's is.
pub(super) fn build(args: &Args, spec: &Spec, plan: &Plan, rpc: Option<&Rpc>) -> Result<PathBuf, StartError> {
    if !args.setup_root {
        return Ok("/root".into());
    }
    // Mounts are placed by what the kernel says a path is, so links go first.
    let source = std::fs::canonicalize(&spec.root.path)
        .map_err(|cause| StartError::new(format_args!("find the root {}", spec.root.path.display()), cause))?;
    if args.unsafe_nonroot {
        fill(args, spec, plan, rpc, &source)?;
        return Ok(source);
    }
    step(
        "keep mounts from the host",
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC),
    )?;
    make_tmpfs()?;
    bind_proc()?;
    // A hook may want to pivot to the root, which has to be a mount for that, under the path that the hook knows.
    if plan.root.is_some() && hooks::wanted(args, spec) && source != Path::new("/") {
        bind_root(spec, &source, &source)?;
        fill(args, spec, plan, rpc, &source)?;
        bind_root(spec, &source, Path::new(NEW_ROOT))?;
    } else {
        if plan.root.is_some() {
            bind_root(spec, &source, Path::new(NEW_ROOT))?;
        }
        fill(args, spec, plan, rpc, Path::new(NEW_ROOT))?;
    }
    finish(args, spec, plan)?;
    pivot()?;
    Ok("/root".into())
}

fn make_tmpfs() -> Result<(), StartError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    step("mount a tmpfs on /proc/fs", mount("runsc-root", NEW, "tmpfs", flags, None::<&CStr>))?;
    // Or binding a root of "/" would take it along, into itself.
    step("make the tmpfs unbindable", mount_change(NEW, MountPropagationFlags::UNBINDABLE))?;
    for name in ["proc", "root", "etc"] {
        let path = format!("{NEW}/{name}");
        step(&format!("create {path}"), rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)))?;
    }
    Ok(())
}

fn bind_proc() -> Result<(), StartError> {
    step("bind /proc", mount_bind_recursive("/proc", "/proc/fs/proc"))?;
    step("bind /proc/self/fd", mount_bind("/proc/fs/proc/self/fd", "/proc/fs/proc/fs"))
}

fn bind_root(spec: &Spec, source: &Path, target: &Path) -> Result<(), StartError> {
    let shown = format!("{} to {}", source.display(), target.display());
    step(&format!("bind the root {shown}"), mount_bind_recursive(source, target))?;
    let asked = options::propagation(&spec.rootfs_propagation);
    let change = asked.unwrap_or(MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC);
    step("set the root's propagation", mount_change(target, change))?;
    tracing::info!("root {shown}");
    Ok(())
}

/// Everything below the root, which is at `root` for now.
fn fill(args: &Args, spec: &Spec, plan: &Plan, rpc: Option<&Rpc>, root: &Path) -> Result<(), StartError> {
    let inside = open_root(root)?;
    let mut attached: Vec<(&Mount, Attached)> = Vec::new();
    for (mount, access) in spec.mounts.iter().zip(&plan.mounts) {
        if let Some(access) = *access {
            attached.push((mount, attach(inside.as_fd(), mount, access, args.generation, rpc)?));
        }
    }
    if args.donated.dev.is_some() {
        devices::bind(args, spec, inside.as_fd())?;
    }
    // E22 applies no options to mounts, and containers rely on it.
    if args.generation >= Generation::E24 {
        for (mount, attached) in attached.iter().rev() {
            attached.settle(mount)?;
        }
    }
    if args.generation < Generation::E26 && !spec.cwd.as_os_str().is_empty() {
        resolve(inside.as_fd(), &spec.cwd)?.create(Kind::Directory, Mode::from_raw_mode(0o755))?;
    }
    if args.generation >= Generation::E26 {
        if plan.root.is_some() {
            hooks::run(args, spec)?;
        } else if !spec.create_container.is_empty() {
            tracing::warn!("createContainer hooks are skipped: the root is not served here");
        }
    }
    Ok(())
}

/// What no further bind may take along, and what would be in the way of mount points.
fn finish(args: &Args, spec: &Spec, plan: &Plan) -> Result<(), StartError> {
    let inside = open_root(Path::new(NEW_ROOT))?;
    for (mount, access) in spec.mounts.iter().zip(&plan.mounts) {
        let words = options::parse(&mount.options).propagation;
        let unbindable = words.into_iter().rfind(|word| word.contains(MountPropagationFlags::UNBINDABLE));
        let (Some(_), Some(word)) = (access, unbindable) else { continue };
        let place = resolve(inside.as_fd(), &mount.destination)?;
        let at = place.last().ok_or_else(|| StartError::new("find a mount again", Errno::NOENT))?;
        step("make a mount unbindable", mount_change(super::mounts::name_of(at).as_str(), word))?;
    }
    if plan.root.is_some() && plan.root_read_only(spec) {
        let flags = match args.generation {
            Generation::E22 => MountFlags::RDONLY,
            _ => MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
        };
        step("remount the root read-only", remount(inside.as_fd(), flags))?;
        tracing::info!("root is read-only");
    }
    Ok(())
}

fn pivot() -> Result<(), StartError> {
    step("enter the new root", rustix::process::chdir(NEW))?;
    step("pivot to the new root", rustix::process::pivot_root(".", "."))?;
    step("let go of the host's root", unmount(".", UnmountFlags::DETACH))?;
    step("enter the new root", rustix::process::chdir("/"))
}

fn step<T>(action: &str, result: Result<T, Errno>) -> Result<T, StartError> {
    result.map_err(|cause| StartError::new(action, cause))
}
