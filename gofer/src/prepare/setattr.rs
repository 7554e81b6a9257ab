//! Attributes of a mount and of all that is mounted below it, at once.
#![allow(unsafe_code, reason = "no crate wraps mount_setattr(2)")]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mount::MountFlags;

/// Which flags an attribute stands for.
const ATTRIBUTES: [(MountFlags, u64); 4] = [
    (MountFlags::RDONLY, libc::MOUNT_ATTR_RDONLY),
    (MountFlags::NOSUID, libc::MOUNT_ATTR_NOSUID),
    (MountFlags::NODEV, libc::MOUNT_ATTR_NODEV),
    (MountFlags::NOEXEC, libc::MOUNT_ATTR_NOEXEC),
];

/// Adds those of `flags` that restrict what can be done; nothing is taken away, which a user namespace may not do.
///
/// # Errors
/// Those of `mount_setattr(2)`; `ENOSYS` before Linux 5.12.
pub(super) fn restrict_all(mount: BorrowedFd<'_>, flags: MountFlags) -> Result<(), Errno> {
    let wanted = ATTRIBUTES.iter().filter(|(flag, _)| flags.contains(*flag));
    let attributes = libc::mount_attr {
        attr_set: wanted.fold(0, |all, (_, attribute)| all | attribute),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let how = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a string that ends with zero, and `attributes` is a mount_attr of the size that is passed; the
    // kernel reads both during the call, which touches nothing else of this process.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            how,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}
