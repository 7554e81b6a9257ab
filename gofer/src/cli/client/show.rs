//! How values look: for people, and as JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use gofer_protocol::record::{FileMode, FileType, Statx, Timestamp};
use serde_json::{Value, json};

use super::super::Failure;

/// A name that cannot do anything to a terminal: other than printable UTF-8 is escaped.
pub(super) fn name(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.into(),
        _ => bytes.escape_ascii().to_string().into(),
    }
}

/// A name as JSON: a string, and the bytes in hexadecimal too where a string cannot hold them.
pub(super) fn json_name(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "name": text }),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "name": String::from_utf8_lossy(bytes), "name_hex": hex })
        }
    }
}

/// One word for a type.
pub(super) fn kind(file_type: Option<FileType>) -> &'static str {
    match file_type {
        Some(FileType::Regular) => "file",
        Some(FileType::Directory) => "directory",
        Some(FileType::Symlink) => "symlink",
        Some(FileType::Fifo) => "fifo",
        Some(FileType::Socket) => "socket",
        Some(FileType::CharDevice) => "character device",
        Some(FileType::BlockDevice) => "block device",
        None => "unknown",
    }
}

/// A mode as `ls -l` has it.
pub(super) fn mode(mode: FileMode) -> String {
    let letter = match mode.file_type() {
        Some(FileType::Directory) => 'd',
        Some(FileType::Symlink) => 'l',
        Some(FileType::Fifo) => 'p',
        Some(FileType::Socket) => 's',
        Some(FileType::CharDevice) => 'c',
        Some(FileType::BlockDevice) => 'b',
        Some(FileType::Regular) => '-',
        None => '?',
    };
    let bits = mode.permissions();
    let mut text = String::from(letter);
    for (shift, special, set, unset) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')] {
        let part = bits >> shift;
        text.push(if part & 4 != 0 { 'r' } else { '-' });
        text.push(if part & 2 != 0 { 'w' } else { '-' });
        text.push(match (part & 1 != 0, bits & special != 0) {
            (true, true) => set,
            (false, true) => unset,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Attributes as JSON; times in seconds and nanoseconds since 1970.
pub(super) fn json_stat(stat: &Statx) -> Value {
    json!({
        "type": kind(stat.mode.file_type()),
        "mode": format!("{:04o}", stat.mode.permissions()),
        "uid": stat.uid,
        "gid": stat.gid,
        "nlink": stat.nlink,
        "size": stat.size,
        "blocks": stat.blocks,
        "ino": stat.ino,
        "dev": format!("{}:{}", stat.dev_major, stat.dev_minor),
        "atime": json_time(stat.atime),
        "mtime": json_time(stat.mtime),
        "ctime": json_time(stat.ctime),
    })
}

fn json_time(time: Timestamp) -> Value {
    json!([time.seconds, time.nanoseconds])
}

/// Seconds since 1970, as people who compare two files need them.
pub(super) fn time(time: Timestamp) -> String {
    format!("{}.{:09}", time.seconds, time.nanoseconds)
}

/// Prints a line. Standard output may be a full disk, or a pipe that no one reads any more: `println!` would panic.
pub(super) fn line(text: impl Display) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}").map_err(|error| Failure::new("write to standard output", error))
}

/// Puts the members of `more` into `object`.
pub(super) fn with(mut object: Value, more: &Value) -> Value {
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        object.extend(more.clone());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_look_like_those_of_ls() {
        assert_eq!(mode(FileMode::new(FileType::Regular, 0o4755)), "-rwsr-xr-x");
        assert_eq!(mode(FileMode::new(FileType::Directory, 0o1777)), "drwxrwxrwt");
        assert_eq!(mode(FileMode::new(FileType::Fifo, 0o2640)), "prw-r-S---");
        assert_eq!(mode(FileMode(0)), "?---------");
    }

    #[test]
    fn a_name_cannot_drive_a_terminal() {
        assert_eq!(name(b"a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(name("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(json_name(b"\xff"), json!({ "name": "\u{fffd}", "name_hex": "ff" }));
    }
}
