//! Files that appear whole or not at all: a half-written one must never be executable under the final name.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file under a temporary name beside its final one. Removed on drop, unless it was published.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Writes `content`, executable and readable by all: the kernel makes a process of an unreadable executable
    /// undumpable, and the sandbox runs it as nobody.
    ///
    /// # Errors
    /// Whatever the file system says; nothing is left.
    pub(crate) fn write(content: &[u8], target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let path = target.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path)?;
        let draft = Self { path };
        fill(file, content)?;
        Ok(draft)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its final name, in the place of whatever had that.
    ///
    /// # Errors
    /// Whatever the file system says; nothing has changed then.
    pub(crate) fn publish(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
        // Dropping now finds nothing under the temporary name.
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The content is on disk before the name can be: otherwise a power failure could leave an empty file under it.
fn fill(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    // The mask of the process does not count here.
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing_and_a_published_one_replaces() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("runsc");
        fs::write(&target, "old").expect("written");
        drop(Draft::write(b"given up", &target).expect("a draft"));
        assert_eq!(fs::read(&target).expect("read"), b"old");
        Draft::write(b"new", &target).expect("a draft").publish(&target).expect("published");
        assert_eq!(fs::read(&target).expect("read"), b"new");
        assert_eq!(fs::metadata(&target).expect("there").permissions().mode() & 0o7777, 0o755);
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 1);
    }
}
