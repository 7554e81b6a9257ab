//! Which descriptors this process has open, told by what they name: tests that run beside each other do not disturb.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// How many descriptors of this process name the same file as `fd`, itself included.
pub(crate) fn copies_of(fd: impl AsFd) -> usize {
    let wanted = rustix::fs::fstat(fd).unwrap();
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::metadata(entry.unwrap().path()).ok())
        .filter(|found| (found.dev(), found.ino()) == (wanted.st_dev, wanted.st_ino))
        .count()
}
