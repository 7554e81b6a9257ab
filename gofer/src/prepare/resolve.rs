//! Paths inside a root whose content may change meanwhile.
//!
//! The walk holds a descriptor of each directory on its way, takes one name at a time without following links, and goes up
//! by forgetting the last descriptor. So it cannot leave the root, whoever swaps whatever.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use crate::process::StartError;

const MAX_LINKS: usize = 255;

/// A place inside a root.
#[derive(Debug)]
pub(super) struct Place {
    root: OwnedFd,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: OsString,
    /// None: it is not there, and nothing after it is.
    fd: Option<OwnedFd>,
}

/// What to make of a place that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

/// Opens `path` as a place for later calls, not for reading.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, StartError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|cause| StartError::new(format_args!("open the root {}", path.display()), cause))
}

/// Walks `path` inside `root`; also the last component is followed.
pub(super) fn resolve(root: BorrowedFd<'_>, path: &Path) -> Result<Place, StartError> {
    let fail = |cause: &dyn std::fmt::Display| {
        StartError::new(format_args!("resolve {} inside the root", path.display()), cause)
    };
    let root = root.try_clone_to_owned().map_err(|cause| fail(&cause))?;
    let mut place = Place { root, steps: Vec::new() };
    // Like the original, which cleans the path before it walks it.
    let mut rest = VecDeque::from(cleaned(path));
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            place.steps.pop();
            continue;
        }
        let Some(parent) = place.last() else {
            place.steps.push(Step { name, fd: None });
            continue;
        };
        let fd = match openat(parent, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => {
                place.steps.push(Step { name, fd: None });
                continue;
            }
            Err(cause) => return Err(fail(&cause)),
        };
        let stat = fstat(&fd).map_err(|cause| fail(&cause))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            place.steps.push(Step { name, fd: Some(fd) });
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(fail(&"too many symbolic links"));
        }
        let target = readlinkat(&fd, "", Vec::new()).map_err(|cause| fail(&cause))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            place.steps.clear();
        }
        for name in names(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    Ok(place)
}

impl Place {
    /// Absolute, below the root, free of links.
    pub(super) fn path(&self) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(self.steps.iter().map(|step| &step.name));
        path
    }

    /// The object itself, if it is there.
    pub(super) fn last(&self) -> Option<BorrowedFd<'_>> {
        self.steps.last().map_or_else(|| Some(self.root.as_fd()), |step| step.fd.as_ref().map(AsFd::as_fd))
    }

    /// Creates what is missing; directories with `mode` less the umask. What is there is left alone.
    pub(super) fn create(&mut self, kind: Kind, mode: Mode) -> Result<BorrowedFd<'_>, StartError> {
        let shown = self.path();
        let fail = |cause: Errno| StartError::new(format_args!("create the mount point {}", shown.display()), cause);
        for at in 0..self.steps.len() {
            if self.steps[at].fd.is_some() {
                continue;
            }
            let last = at + 1 == self.steps.len();
            let parent =
                if at == 0 { Some(self.root.as_fd()) } else { self.steps[at - 1].fd.as_ref().map(AsFd::as_fd) };
            let parent = parent.ok_or_else(|| fail(Errno::NOENT))?;
            let name = &self.steps[at].name;
            let made = if last && kind == Kind::File {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                openat(parent, name, flags, Mode::from_raw_mode(0o777)).map(drop)
            } else {
                mkdirat(parent, name, mode)
            };
            match made {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(cause) => return Err(fail(cause)),
            }
            let mut flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            flags.set(OFlags::DIRECTORY, !last || kind == Kind::Directory);
            let fd = openat(parent, name, flags, Mode::empty()).map_err(fail)?;
            let stat = fstat(&fd).map_err(fail)?;
            // Somebody else made it meanwhile.
            if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                return Err(fail(Errno::LOOP));
            }
            self.steps[at].fd = Some(fd);
        }
        self.last().ok_or_else(|| fail(Errno::NOENT))
    }
}

/// Names of a path, `..` already taken away with what it follows.
fn cleaned(path: &Path) -> Vec<OsString> {
    let mut clean = Vec::new();
    for name in names(path) {
        if name == ".." {
            clean.pop();
        } else {
            clean.push(name);
        }
    }
    clean
}

fn names(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn path_of(root: &Path, path: &str) -> PathBuf {
        resolve(open_root(root).unwrap().as_fd(), Path::new(path)).unwrap().path()
    }

    #[test]
    fn links_and_dots_stay_inside_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        symlink("../a", root.path().join("a/up")).unwrap();
        symlink("/a/b", root.path().join("abs")).unwrap();
        symlink("../../../../etc", root.path().join("out")).unwrap();
        assert_eq!(path_of(root.path(), "/a/up/b/x"), Path::new("/a/b/x"));
        assert_eq!(path_of(root.path(), "/abs"), Path::new("/a/b"));
        assert_eq!(path_of(root.path(), "/out/passwd"), Path::new("/etc/passwd"));
        assert_eq!(path_of(root.path(), "/../../a"), Path::new("/a"));
        assert_eq!(path_of(root.path(), "/"), Path::new("/"));
    }

    #[test]
    fn a_loop_and_a_file_used_as_a_directory_are_refused() {
        let root = tempfile::tempdir().unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        let fd = open_root(root.path()).unwrap();
        assert!(resolve(fd.as_fd(), Path::new("/loop")).is_err());
        assert!(resolve(fd.as_fd(), Path::new("/file/x")).is_err());
    }

    #[test]
    fn what_is_missing_is_created_and_a_swapped_in_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let fd = open_root(root.path()).unwrap();
        let mut place = resolve(fd.as_fd(), Path::new("/x/y/file")).unwrap();
        place.create(Kind::File, Mode::from_raw_mode(0o777)).unwrap();
        assert!(root.path().join("x/y/file").is_file());

        let mut place = resolve(fd.as_fd(), Path::new("/evil/y")).unwrap();
        symlink(outside.path(), root.path().join("evil")).unwrap();
        assert!(place.create(Kind::Directory, Mode::from_raw_mode(0o777)).is_err());
        assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    }
}
