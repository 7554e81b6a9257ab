//! Host system calls: relative to a held descriptor, with one checked name, and never through a symlink.
//!
//! Nothing here, nor in `handlers/` and `serve/`, resolves a path with two components: a tenant may swap any of them
//! for a symbolic link at any moment. What has no descriptor form (`connect(2)`, `getxattr(2)`, ...) goes through the
//! descriptor's entry in `/proc/self/fd`, which leads to the held inode and nowhere else.

pub(crate) mod attr;
pub(crate) mod create;
pub(crate) mod dir;
mod identity;
pub(crate) mod mounts;
pub(crate) mod name;
pub(crate) mod open;
pub(crate) mod place;
pub(crate) mod remove;
pub(crate) mod socket;
pub(crate) mod xattr;

pub(crate) use name::FileName;
pub(crate) use place::{Place, ProcFd};
