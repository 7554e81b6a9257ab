//! The list of mounts that goes back to the runtime: destinations resolved, options appended, the order kept.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::PollFlags;
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, fstatfs, statx};
use rustix::io::Errno;
use serde_json::Value;

use super::plan::Plan;
use super::resolve::{open_root, resolve};
use super::sync::wait;
use crate::process::StartError;
use crate::process::spec::{Mount, Spec};
use gofer::contract::Generation;

const OVERLAYFS: i64 = 0x794c_7630;
const NFS: i64 = 0x6969;
const FUSE: i64 = 0x6573_5546;

/// Puts the resolved destination and the appended options into each served mount of `spec`. Returns the held places: the
/// root's, and one for each of its mounts that is served, in their order.
///
/// What is served is what is held from here on. The root's content may change at any time, and with it where a
/// destination leads; then the place is no mount, and what lies bare there is not what the container was promised.
pub(super) fn settle(
    root: &Path,
    plan: &Plan,
    spec: &mut Spec,
    generation: Generation,
) -> Result<Vec<OwnedFd>, StartError> {
    let root = open_root(root)?;
    let mut places = Vec::new();
    for (mount, access) in spec.mounts.iter_mut().zip(&plan.mounts) {
        if access.is_none() {
            continue;
        }
        let place = resolve(root.as_fd(), &mount.destination)?;
        let shown = mount.destination.display();
        let fail = |cause: Errno| StartError::new(format_args!("look at the mounted {shown}"), cause);
        let held = place.last().ok_or_else(|| fail(Errno::NOENT))?;
        if !is_mount(held).map_err(fail)? {
            return Err(StartError::sentence(format!(
                "the mount on {shown} is not there: its destination was changed"
            )));
        }
        let extra = appended(fstatfs(held).map_err(fail)?.f_type, generation);
        places.push(held.try_clone_to_owned().map_err(|cause| StartError::new("hold a mount", cause))?);
        rewrite(mount, &place.path(), extra);
    }
    if plan.root.is_some() {
        places.insert(0, root);
    }
    Ok(places)
}

/// Whether this is the root of a mount. Before Linux 5.8 there is no telling, and it is taken to be.
fn is_mount(place: BorrowedFd<'_>) -> Result<bool, Errno> {
    let told = statx(place, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    let tells = told.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    Ok(!tells || told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn appended(kind: i64, generation: Generation) -> Option<&'static str> {
    match kind {
        OVERLAYFS => Some("overlayfs_stale_read"),
        NFS if generation >= Generation::E24 => Some("disable_file_handle_sharing"),
        FUSE if generation >= Generation::E26 => Some("disable_file_handle_sharing"),
        _ => None,
    }
}

fn rewrite(mount: &mut Mount, destination: &Path, extra: Option<&str>) {
    mount.destination = destination.to_owned();
    mount.object.insert("destination".to_owned(), Value::from(destination.to_string_lossy()));
    if let Some(extra) = extra {
        mount.options.push(extra.to_owned());
        mount.object.insert("options".to_owned(), Value::from(mount.options.clone()));
    }
}

/// Writes the list and closes the pipe: its end is what the sandbox waits for.
pub(super) fn send(fd: OwnedFd, spec: &Spec) -> Result<(), StartError> {
    let list = Value::Array(spec.mounts.iter().map(|mount| Value::Object(mount.object.clone())).collect()).to_string();
    let mut rest = list.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(&fd, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::AGAIN) => wait(&fd, PollFlags::OUT),
            Err(Errno::INTR) => {}
            Err(cause) => return Err(StartError::new("write the list of mounts", cause)),
        }
    }
    drop(fd);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_appended_by_file_system_and_generation() {
        assert_eq!(appended(OVERLAYFS, Generation::E22), Some("overlayfs_stale_read"));
        assert_eq!(appended(NFS, Generation::E22), None);
        assert!(appended(NFS, Generation::E24).is_some());
        assert_eq!(appended(FUSE, Generation::E24), None);
        assert!(appended(FUSE, Generation::E26).is_some());
    }
}
