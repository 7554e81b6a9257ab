//! Attaching mounts inside the container's root: always a held tree onto a held place, so that no name is looked up twice.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use gofer::contract::Generation;
use rustix::fs::{Access as Mode, AtFlags, CWD, FileType, StatVfsMountFlags, accessat, fstat, fstatvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, mount_remount, move_mount,
    open_tree,
};

use super::options;
use super::plan::Access;
use super::resolve::{Kind, resolve};
use super::rpc::Rpc;
use super::setattr::restrict_all;
use crate::process::StartError;
use crate::process::spec::Mount;

/// Directories and files that are made for mounts, less the umask.
const MOUNT_POINT: rustix::fs::Mode = rustix::fs::Mode::from_raw_mode(0o777);

/// A mount that is in place, but for what has to wait until all are.
#[derive(Debug)]
pub(super) struct Attached {
    tree: OwnedFd,
    flags: MountFlags,
}

/// Puts the source of `mount` at its destination inside `root`.
pub(super) fn attach(
    root: BorrowedFd<'_>,
    mount: &Mount,
    access: Access,
    generation: Generation,
    rpc: Option<&Rpc>,
) -> Result<Attached, StartError> {
    let options = options::parse(&mount.options);
    let mut flags = options.flags;
    flags.set(MountFlags::RDONLY, flags.contains(MountFlags::RDONLY) || access.overlaid);
    let tree = source(mount, flags, generation, rpc)?;
    place(root, &tree, &mount.destination)?;
    let attached = Attached { tree, flags };
    for word in options.propagation {
        if word.contains(MountPropagationFlags::UNBINDABLE) {
            // Unbindable only when no further bind has to take the mount along.
            attached.propagate((word - MountPropagationFlags::UNBINDABLE) | MountPropagationFlags::PRIVATE, mount)?;
        } else {
            attached.propagate(word, mount)?;
        }
    }
    let (from, to) = (mount.source.display(), mount.destination.display());
    tracing::info!("mounted {from} on {to}, flags {:#x}", flags.bits());
    Ok(attached)
}

/// Puts a detached tree at `destination` inside `root`, with a mount point made for it where there is none.
pub(super) fn place(root: BorrowedFd<'_>, tree: &OwnedFd, destination: &Path) -> Result<(), StartError> {
    let fail = |cause: Errno| StartError::new(format_args!("mount on {}", destination.display()), cause);
    let directory = FileType::from_raw_mode(fstat(tree).map_err(fail)?.st_mode) == FileType::Directory;
    let mut place = resolve(root, destination)?;
    let onto = place.create(if directory { Kind::Directory } else { Kind::File }, MOUNT_POINT)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, c"", onto, c"", flags).map_err(fail)
}

/// A copy of the mounts at `path`, attached nowhere yet.
pub(super) fn clone_tree(path: &Path, recursive: bool) -> Result<OwnedFd, Errno> {
    open_tree(CWD, path, clone_flags(recursive))
}

fn clone_flags(recursive: bool) -> OpenTreeFlags {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if recursive { flags | OpenTreeFlags::AT_RECURSIVE } else { flags }
}

fn source(mount: &Mount, flags: MountFlags, generation: Generation, rpc: Option<&Rpc>) -> Result<OwnedFd, StartError> {
    let shown = mount.source.display();
    let fail = |cause: Errno| StartError::new(format_args!("bind the mount source {shown}"), cause);
    let recursive = flags.contains(MountFlags::REC);
    if generation < Generation::E26 {
        return clone_tree(&mount.source, recursive).map_err(fail);
    }
    let unreadable = accessat(CWD, &mount.source, Mode::READ_OK, AtFlags::EACCESS);
    let rpc = match (unreadable, rpc) {
        (Ok(()), _) if !mount.id_mapped => return clone_tree(&mount.source, recursive).map_err(fail),
        (_, Some(rpc)) => rpc,
        (Err(cause), None) => return Err(fail(cause)),
        (Ok(()), None) => return Err(fail(Errno::PERM)),
    };
    let opened = rpc.open_mount(&mount.object, flags.bits(), &shown.to_string())?;
    if mount.id_mapped {
        return Ok(opened);
    }
    open_tree(opened, c"", clone_flags(recursive) | OpenTreeFlags::AT_EMPTY_PATH).map_err(fail)
}

impl Attached {
    fn propagate(&self, word: MountPropagationFlags, mount: &Mount) -> Result<(), StartError> {
        mount_change(name_of(&self.tree).as_str(), word)
            .map_err(|cause| StartError::new(format_args!("propagate {}", mount.destination.display()), cause))
    }

    /// Gives the mount the flags that its options ask for; `nosuid` always. Deferred until all mounts are attached: one
    /// of them may have needed a mount point inside this one.
    pub(super) fn settle(&self, mount: &Mount) -> Result<(), StartError> {
        let asked = (self.flags - MountFlags::BIND - MountFlags::REC) | MountFlags::NOSUID;
        remount(self.tree.as_fd(), asked)
            .and_then(|()| if self.flags.contains(MountFlags::REC) { self.restrict(mount, asked) } else { Ok(()) })
            .map_err(|cause| StartError::new(format_args!("remount {}", mount.destination.display()), cause))
    }

    /// What came along with a recursive bind, for which a remount does nothing: the original gofer restricts it where ids
    /// are mapped. Else it leaves it writable below a read-only mount, for whoever takes over a sandbox with directfs.
    fn restrict(&self, mount: &Mount, asked: MountFlags) -> Result<(), Errno> {
        let asked = if mount.id_mapped { asked } else { asked & MountFlags::RDONLY };
        match restrict_all(self.tree.as_fd(), asked) {
            Err(Errno::NOSYS) if !mount.id_mapped => Ok(()),
            result => result,
        }
    }
}

/// Sets the flags of one mount; those that the mount has already stay. In a user namespace they are locked, the way of
/// keeping access times too (`mount_namespaces(7)`), so that one is given up where the kernel insists.
pub(super) fn remount(mount: BorrowedFd<'_>, asked: MountFlags) -> Result<(), Errno> {
    let (locked, own_times) = present(mount)?;
    let times = MountFlags::NOATIME | MountFlags::NODIRATIME | MountFlags::RELATIME | MountFlags::STRICTATIME;
    let keep = MountFlags::BIND | locked;
    let target = name_of(mount);
    // Asked for by name; otherwise what the mount has.
    let wanted = if asked.intersects(times) { asked } else { asked | own_times };
    match mount_remount(target.as_str(), strict_by_default(wanted | keep), c"") {
        Err(Errno::PERM) if asked.intersects(times) => {
            tracing::warn!("this user namespace may not change how access times are kept; the mount's own way stays");
            mount_remount(target.as_str(), strict_by_default((asked - times) | own_times | keep), c"")
        }
        result => result,
    }
}

/// Without a word the kernel takes relatime, which is a change as well.
fn strict_by_default(flags: MountFlags) -> MountFlags {
    if flags.intersects(MountFlags::NOATIME | MountFlags::RELATIME) { flags } else { flags | MountFlags::STRICTATIME }
}

/// The flags of a mount, and those of its access times.
fn present(mount: BorrowedFd<'_>) -> Result<(MountFlags, MountFlags), Errno> {
    let flags = fstatvfs(mount)?.f_flag;
    let of = |table: &[(StatVfsMountFlags, MountFlags)]| {
        let held = table.iter().filter(|(reported, _)| flags.contains(*reported));
        held.fold(MountFlags::empty(), |all, (_, flag)| all | *flag)
    };
    let locked = of(&[
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ]);
    let times = of(&[
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ]);
    Ok((locked, times))
}

/// A path to what `fd` holds, mount included.
pub(super) fn name_of(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}
