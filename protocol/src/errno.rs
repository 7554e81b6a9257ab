//! Error numbers, as they travel in an Error message (MID 0).

use std::fmt;

/// A Linux errno, never zero: zero in an Error message would mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(u16);

/// The largest value that Linux reserves for errors (`MAX_ERRNO`).
const MAX: u32 = 4095;

impl Errno {
    /// An errno that the peer sent. What no kernel could have returned becomes `EIO`.
    #[must_use]
    pub fn from_wire(raw: u32) -> Self {
        match u16::try_from(raw) {
            Ok(small) if small != 0 && raw <= MAX => Self(small),
            _ => Self::EIO,
        }
    }

    /// The number, as the wire and `errno(3)` have it.
    #[must_use]
    pub fn raw(self) -> u32 {
        u32::from(self.0)
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::from_wire(errno.raw_os_error().unsigned_abs())
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        rustix::io::Errno::from_io_error(&error).map_or(Self::EIO, Self::from)
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(i32::from(errno.0))
    }
}

macro_rules! errnos {
    ($($name:ident = $value:literal)*) => {
        #[allow(missing_docs, reason = "the kernel's own names, see errno(3)")]
        impl Errno {
            $(pub const $name: Self = Self($value);)*

            /// The kernel's name, or none for a number that this table lacks.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM = 1
    ENOENT = 2
    EINTR = 4
    EIO = 5
    ENXIO = 6
    E2BIG = 7
    EBADF = 9
    EAGAIN = 11
    ENOMEM = 12
    EACCES = 13
    EBUSY = 16
    EEXIST = 17
    EXDEV = 18
    ENODEV = 19
    ENOTDIR = 20
    EISDIR = 21
    EINVAL = 22
    ENFILE = 23
    EMFILE = 24
    ENOTTY = 25
    EFBIG = 27
    ENOSPC = 28
    ESPIPE = 29
    EROFS = 30
    EMLINK = 31
    EPIPE = 32
    ERANGE = 34
    ENAMETOOLONG = 36
    ENOSYS = 38
    ENOTEMPTY = 39
    ELOOP = 40
    ENODATA = 61
    EOVERFLOW = 75
    ENOTSOCK = 88
    EPROTOTYPE = 91
    EOPNOTSUPP = 95
    EADDRINUSE = 98
    ECONNRESET = 104
    ENOBUFS = 105
    ETOOMANYREFS = 109
    ECONNREFUSED = 111
    ESTALE = 116
    EREMOTEIO = 121
    EDQUOT = 122
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Display for Errno {
    /// The C library's sentence, as `strerror(3)` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&std::io::Error::from(*self), f)
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_that_no_kernel_returns_is_eio() {
        assert_eq!(Errno::from_wire(0), Errno::EIO);
        assert_eq!(Errno::from_wire(4096), Errno::EIO);
        assert_eq!(Errno::from_wire(u32::MAX), Errno::EIO);
        assert_eq!(Errno::from_wire(17), Errno::EEXIST);
    }

    #[test]
    fn names_have_the_numbers_of_the_host() {
        assert_eq!(Errno::from(rustix::io::Errno::ROFS), Errno::EROFS);
        assert_eq!(Errno::from(rustix::io::Errno::REMOTEIO), Errno::EREMOTEIO);
        assert_eq!(Errno::from(rustix::io::Errno::NOTEMPTY), Errno::ENOTEMPTY);
    }
}
