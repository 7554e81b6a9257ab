//! Attributes of a file, as `statx(2)` has them, and the times that SetStat takes.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codec::records;

/// `st_mode`: type in the upper four bits, then setuid, setgid, sticky and the nine permission bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct FileMode(pub u16);

/// The file types of Linux; numbers as in the upper four bits of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// Named pipe.
    Fifo,
    /// Character device.
    CharDevice,
    /// Directory.
    Directory,
    /// Block device; never served.
    BlockDevice,
    /// Regular file.
    Regular,
    /// Symbolic link.
    Symlink,
    /// Socket.
    Socket,
}

impl FileMode {
    /// Mask of the type.
    pub const TYPE: u16 = 0xf000;

    /// A mode from a type and permissions; bits of `permissions` beyond 0o7777 are dropped.
    #[must_use]
    pub fn new(file_type: FileType, permissions: u16) -> Self {
        Self(file_type.bits() | permissions & !Self::TYPE)
    }

    /// None for type bits that Linux does not have, such as 0.
    #[must_use]
    pub fn file_type(self) -> Option<FileType> {
        FileType::ALL.into_iter().find(|file_type| file_type.bits() == self.0 & Self::TYPE)
    }

    /// setuid, setgid, sticky and the nine permission bits.
    #[must_use]
    pub fn permissions(self) -> u16 {
        self.0 & !Self::TYPE
    }
}

impl fmt::Debug for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0o{:o}", self.0)
    }
}

impl FileType {
    const ALL: [Self; 7] =
        [Self::Fifo, Self::CharDevice, Self::Directory, Self::BlockDevice, Self::Regular, Self::Symlink, Self::Socket];

    /// The type's place in a mode.
    #[must_use]
    pub const fn bits(self) -> u16 {
        match self {
            Self::Fifo => 0x1000,
            Self::CharDevice => 0x2000,
            Self::Directory => 0x4000,
            Self::BlockDevice => 0x6000,
            Self::Regular => 0x8000,
            Self::Symlink => 0xa000,
            Self::Socket => 0xc000,
        }
    }

    /// The type's place in a directory entry (`DT_*`).
    #[must_use]
    pub const fn dirent_type(self) -> u8 {
        self.bits().to_be_bytes()[0] >> 4
    }

    /// None for `DT_UNKNOWN` and what Linux does not have.
    #[must_use]
    pub fn from_dirent_type(raw: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|file_type| file_type.dirent_type() == raw)
    }
}

/// `STATX_*`: which fields of a [`Statx`] are valid, or which a SetStat changes.
#[derive(Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct StatxMask(pub u32);

#[allow(missing_docs, reason = "the kernel's own names, see statx(2)")]
impl StatxMask {
    pub const TYPE: Self = Self(0x1);
    pub const MODE: Self = Self(0x2);
    pub const NLINK: Self = Self(0x4);
    pub const UID: Self = Self(0x8);
    pub const GID: Self = Self(0x10);
    pub const ATIME: Self = Self(0x20);
    pub const MTIME: Self = Self(0x40);
    pub const CTIME: Self = Self(0x80);
    pub const INO: Self = Self(0x100);
    pub const SIZE: Self = Self(0x200);
    pub const BLOCKS: Self = Self(0x400);
    pub const BTIME: Self = Self(0x800);
    /// All of the above.
    pub const ALL: Self = Self(0xfff);
    /// What a SetStat may change.
    pub const SETTABLE: Self = Self(0x27a);

    /// Whether every bit of `other` is set here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set here.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits that both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The bits that one of the two has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for StatxMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// A moment: seconds since 1970 and nanoseconds, as `statx(2)` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timestamp {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanoseconds: u32,
    padding: u32,
}

impl Timestamp {
    /// A moment.
    #[must_use]
    pub const fn new(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds, padding: 0 }
    }
}

/// A moment to set, as `utimensat(2)` takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timespec {
    /// Seconds since 1970.
    pub seconds: i64,
    /// 0 to 999,999,999, or one of the two constants.
    pub nanoseconds: i64,
}

impl Timespec {
    /// The server's present time.
    pub const NOW: Self = Self { seconds: 0, nanoseconds: 0x3fff_ffff };
    /// Leave this time as it is.
    pub const OMIT: Self = Self { seconds: 0, nanoseconds: 0x3fff_fffe };
}

/// Attributes of a file: byte for byte the first 144 bytes of the kernel's `struct statx`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "the kernel's own names, see statx(2)")]
pub struct Statx {
    /// Which of the fields are valid. Bits beyond [`StatxMask::ALL`] may be set and mean nothing here.
    pub mask: StatxMask,
    /// Preferred size of a read or write; 0 is unknown.
    pub blksize: u32,
    pub attributes: u64,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub mode: FileMode,
    padding: u16,
    pub ino: u64,
    pub size: u64,
    /// In units of 512 bytes.
    pub blocks: u64,
    pub attributes_mask: u64,
    pub atime: Timestamp,
    pub btime: Timestamp,
    pub ctime: Timestamp,
    pub mtime: Timestamp,
    pub rdev_major: u32,
    pub rdev_minor: u32,
    pub dev_major: u32,
    pub dev_minor: u32,
}

const _: () = assert!(size_of::<Timestamp>() == 16);
const _: () = assert!(size_of::<Timespec>() == 16);
const _: () = assert!(size_of::<Statx>() == 144);

records!(FileMode, StatxMask, Timespec, Statx);
