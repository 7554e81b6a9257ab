//! Which names are mount points: what a listing has to know to tell each entry's device without asking for it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The mounts of the process's namespace, read again whenever the kernel says that they changed (`proc(5)`: the file
/// polls as `POLLERR | POLLPRI` then).
#[derive(Debug)]
pub(crate) struct MountTable(Mutex<State>);

#[derive(Debug)]
struct State {
    /// None where `/proc` is not mounted: then nothing is known.
    mountinfo: Option<File>,
    names: Option<Arc<MountNames>>,
}

/// For each mount, by its id: last components of the mount points directly on it.
///
/// More than the mount points of one directory, which would take paths to tell apart, and that is safe: a name too many
/// costs one `statx(2)`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MountNames(HashMap<u64, HashSet<Vec<u8>>>);

impl MountNames {
    /// Whether an entry `name` of a directory on mount `id` may be a mount point.
    pub(crate) fn may_be_mount_point(&self, id: u64, name: &[u8]) -> bool {
        self.0.get(&id).is_some_and(|names| names.contains(name))
    }
}

impl MountTable {
    /// Opens the table while `/proc` is in sight.
    pub(crate) fn open() -> Self {
        Self::over(File::open("/proc/self/mountinfo").ok())
    }

    /// The table that `mountinfo` holds.
    pub(crate) fn over(mountinfo: Option<File>) -> Self {
        Self(Mutex::new(State { mountinfo, names: None }))
    }

    /// The table as it is now; none where it cannot be told.
    pub(crate) fn current(&self) -> Option<Arc<MountNames>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changed(state.mountinfo.as_ref()?);
        if changed || state.names.is_none() {
            let mut text = Vec::new();
            let file = state.mountinfo.as_mut()?;
            file.rewind().ok()?;
            state.names = file.read_to_end(&mut text).ok().map(|_| Arc::new(parse(&text)));
        }
        state.names.clone()
    }
}

/// Asking takes the event away, so that the caller must read the table if it is told so.
fn changed(mountinfo: &File) -> bool {
    let mut polled = [PollFd::new(mountinfo, PollFlags::PRI)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) => false,
        Ok(_) | Err(_) => true,
    }
}

/// `proc_pid_mountinfo(5)`: mount id, parent id, device, root, mount point, ...
fn parse(mountinfo: &[u8]) -> MountNames {
    let mut all = MountNames::default();
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ').skip(1);
        let parent = fields.next().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let name = fields.nth(2).and_then(|path| path.rsplit(|byte| *byte == b'/').next());
        if let (Some(parent), Some(name)) = (parent, name) {
            all.0.entry(parent).or_default().insert(unescape(name));
        }
    }
    all
}

/// Space, tab, newline and backslash are written as three octal digits behind a backslash.
fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.first_chunk::<3>().filter(|_| first == b'\\');
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_under_the_mount_that_they_are_on() {
        let names = parse(
            b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
              30 22 0:5 / /dev rw - devtmpfs none rw\n\
              31 30 0:6 / /dev/shm rw shared:2 - tmpfs none rw\n\
              32 22 254:0 /x /srv/a\\040b\\134 rw - ext4 /dev/vda rw\n",
        );
        assert!(names.may_be_mount_point(22, b"dev"));
        assert!(names.may_be_mount_point(30, b"shm"));
        assert!(!names.may_be_mount_point(22, b"shm"));
        assert!(names.may_be_mount_point(22, b"a b\\"));
        assert!(!names.may_be_mount_point(99, b"dev"));
    }

    #[test]
    fn lines_that_make_no_sense_are_passed_over() {
        for text in [&b""[..], b"\n\n", b"1", b"1 x 0:1 / /a", b"1 2 0:1 /", b"\xff \xff \xff"] {
            parse(text);
        }
    }

    #[test]
    fn the_host_has_mounts() {
        let table = MountTable::open();
        let first = table.current().expect("/proc is mounted");
        assert!(!first.0.is_empty());
        assert_eq!(table.current().as_deref(), Some(&*first));
    }
}
