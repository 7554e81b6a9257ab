//! Writes the archive that a Linux kernel unpacks as its first root: cpio in the "newc" format.
//!
//! Each entry is a header of hexadecimal text, a name and the data, the latter two padded to four bytes. An entry named
//! `TRAILER!!!` ends the archive.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const TRAILER: &str = "TRAILER!!!";

/// An archive that is being written to `W`.
pub(super) struct Archive<W> {
    out: W,
    /// Directories that have been written; the kernel makes none by itself.
    directories: BTreeSet<String>,
    /// Entries with the same inode number would be hard links, so each gets its own.
    last_inode: u32,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, directories: BTreeSet::new(), last_inode: 0 }
    }

    /// Adds the file `host` as `guest`, an absolute path, with its permissions and the directories above it.
    pub(super) fn add(&mut self, host: &Path, guest: &str) -> io::Result<()> {
        let name = guest.strip_prefix('/').ok_or_else(|| invalid("the guest's path must begin with a slash"))?;
        self.add_directories_above(name)?;
        let file = File::open(host)?;
        let status = file.metadata()?;
        let size = u32::try_from(status.len()).map_err(|_| invalid("the format ends at 4 GiB"))?;
        self.header(name, REGULAR | (status.permissions().mode() & 0o777), size)?;
        if io::copy(&mut file.take(size.into()), &mut self.out)? != u64::from(size) {
            return Err(invalid("the file became shorter while it was read"));
        }
        self.pad(size)
    }

    /// Ends the archive and hands it on to the file system.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.header(TRAILER, 0, 0)?;
        self.out.flush()
    }

    fn add_directories_above(&mut self, name: &str) -> io::Result<()> {
        for (end, _) in name.match_indices('/') {
            let directory = &name[..end];
            if self.directories.insert(directory.to_owned()) {
                self.header(directory, DIRECTORY, 0)?;
            }
        }
        Ok(())
    }

    fn header(&mut self, name: &str, mode: u32, size: u32) -> io::Result<()> {
        self.last_inode += 1;
        let name_size = u32::try_from(name.len() + 1).map_err(|_| invalid("the name is too long"))?;
        let inode = if name == TRAILER { 0 } else { self.last_inode };
        let links = 1;
        let (user, group, modified, device, special, checksum) = (0, 0, 0, 0, 0, 0);
        self.out.write_all(b"070701")?;
        for field in
            [inode, mode, user, group, links, modified, size, device, device, special, special, name_size, checksum]
        {
            write!(self.out, "{field:08x}")?;
        }
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(b"\0")?;
        self.pad(HEADER_SIZE + name_size)
    }

    /// Fills up to a multiple of four, counted from a place that is one.
    fn pad(&mut self, written: u32) -> io::Result<()> {
        (written..written.next_multiple_of(4)).try_for_each(|_| self.out.write_all(b"\0"))
    }
}

/// The magic and 13 fields of eight digits.
const HEADER_SIZE: u32 = 6 + 13 * 8;

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("file");
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        for (guest, data) in files {
            std::fs::write(&host, data).unwrap();
            std::fs::set_permissions(&host, std::fs::Permissions::from_mode(0o750)).unwrap();
            archive.add(&host, guest).unwrap();
        }
        archive.finish().unwrap();
        bytes
    }

    #[test]
    fn an_archive_of_one_file_is_these_bytes() {
        // Magic, inode, mode, user, group, links, time, size, then the device of the file and the one that it stands
        // for, major and minor each, the length of the name with its zero, and a checksum that this format leaves out.
        let expected = concat!(
            "070701000000010000",
            "41ed0000000000000000000000010000000000000000",
            "000000000000000000000000000000000000000400000000",
            "bin\0\0\0",
            "070701000000020000",
            "81e80000000000000000000000010000000000000005",
            "000000000000000000000000000000000000000600000000",
            "bin/x\0hello\0\0\0",
            "070701000000000000",
            "00000000000000000000000000010000000000000000",
            "000000000000000000000000000000000000000b00000000",
            "TRAILER!!!\0\0\0\0",
        );
        assert_eq!(String::from_utf8(archive_of(&[("/bin/x", b"hello")])).unwrap(), expected);
    }

    #[test]
    fn a_directory_is_written_once_and_before_what_is_in_it() {
        let archive = archive_of(&[("/a/b/one", b"1"), ("/a/two", b""), ("/three", b"333")]);
        let text = String::from_utf8(archive).unwrap();
        let places: Vec<usize> = ["a\0", "a/b\0", "a/b/one\0", "a/two\0", "three\0", "TRAILER!!!\0"]
            .iter()
            .map(|name| text.find(&format!("00000000{name}")).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), places.len());
        assert_eq!(text.len() % 4, 0);
    }

    #[test]
    fn a_relative_guest_path_is_refused() {
        let mut archive = Archive::new(Vec::new());
        assert!(archive.add(Path::new("/etc/passwd"), "etc/passwd").is_err());
    }
}
