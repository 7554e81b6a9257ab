//! One component of a path, checked.

use gofer_protocol::Errno;
use gofer_protocol::codec::SizedString;

/// A name that stays in its directory: not empty, not `.`, not `..`, without `/` and without NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileName<'a>(&'a [u8]);

impl<'a> FileName<'a> {
    /// `EINVAL` if `bytes` is no safe name. Its length is the host's to judge.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Errno> {
        match bytes {
            b"" | b"." | b".." => Err(Errno::EINVAL),
            _ if bytes.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Errno::EINVAL),
            _ => Ok(Self(bytes)),
        }
    }

    /// The name as the kernel takes it.
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl<'a> TryFrom<SizedString<'a>> for FileName<'a> {
    type Error = Errno;

    fn try_from(name: SizedString<'a>) -> Result<Self, Errno> {
        Self::new(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_their_directory_are_refused() {
        for bad in [&b""[..], b".", b"..", b"/", b"a/b", b"/etc", b"../x", b"a\0b", b"\0"] {
            assert_eq!(FileName::new(bad), Err(Errno::EINVAL), "{bad:?}");
        }
        for good in [&b"a"[..], b"...", b".a", b"a b", b"\xff\xfe", b"-"] {
            assert!(FileName::new(good).is_ok(), "{good:?}");
        }
    }
}
