//! The message table: number, name, guarantee. Everything else that depends on a message derives from it.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A message's number. Unknown numbers survive, to be logged and refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Mid(pub u16);

/// What a server excludes while it handles a message. `docs/locking.md` has one heading for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Nothing: the message touches no position in the tree, or only data behind a held descriptor.
    None,
    /// No one changes the node meanwhile.
    Read,
    /// No one uses or changes the node meanwhile.
    Write,
    /// Nothing else happens on the server: positions move.
    Global,
}

macro_rules! messages {
    ($($(#[doc = $doc:literal])* $number:literal $name:ident: $guarantee:ident $($changes:ident)?;)*) => {
        impl Mid {
            $($(#[doc = $doc])* pub const $name: Self = Self($number);)*

            /// Every message of the protocol, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The constant's name, or none for an unknown number.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// What the server excludes while it handles this message.
            #[must_use]
            pub fn guarantee(self) -> Guarantee {
                match self {
                    $(Self::$name => Guarantee::$guarantee,)*
                    _ => Guarantee::None,
                }
            }

            /// Whether a read-only connection refuses this message before it looks at the payload.
            #[must_use]
            pub fn changes_files(self) -> bool {
                match self {
                    $(Self::$name => messages!(@changes $($changes)?),)*
                    _ => false,
                }
            }
        }
    };
    (@changes changes) => { true };
    (@changes) => { false };
}

messages! {
    /// A reply that carries an errno; never a request.
    0 ERROR: None;
    /// The root of the connection, the size limit, the messages that the server knows.
    1 MOUNT: Read;
    /// One more communicator, over shared memory.
    2 CHANNEL: None;
    /// Attributes of a control or open descriptor.
    3 FSTAT: Read;
    /// Mode, size, times, owner.
    4 SET_STAT: Write changes;
    /// Walks components from a directory, stopping at the first symlink.
    5 WALK: Read;
    /// As Walk, but returns attributes and leaves no descriptor behind.
    6 WALK_STAT: Read;
    /// Opens what a control descriptor names.
    7 OPEN_AT: Read;
    /// Creates and opens a regular file.
    8 OPEN_CREATE_AT: Write changes;
    /// Gives descriptors back.
    9 CLOSE: None;
    /// Writes files through to their storage.
    10 FSYNC: None;
    /// Writes data at an offset.
    11 PWRITE: None changes;
    /// Reads data at an offset.
    12 PREAD: None;
    /// Creates a directory.
    13 MKDIR_AT: Write changes;
    /// Creates a regular file or an overlay whiteout.
    14 MKNOD_AT: Write changes;
    /// Creates a symbolic link.
    15 SYMLINK_AT: Write changes;
    /// Creates a hard link.
    16 LINK_AT: Write changes;
    /// Attributes of the file system.
    17 FSTAT_FS: Read;
    /// Allocates space.
    18 FALLOCATE: None changes;
    /// The target of a symbolic link.
    19 READ_LINK_AT: Read;
    /// Tells that a handle closes; no server of today advertises it.
    20 FLUSH: None;
    /// Connects to a socket of the host.
    21 CONNECT: Read;
    /// Removes a name.
    22 UNLINK_AT: Write changes;
    /// Moves a name.
    23 RENAME_AT: Global changes;
    /// Lists a directory.
    24 GETDENTS64: Read;
    /// Value of an extended attribute.
    25 FGET_XATTR: Read;
    /// Sets an extended attribute.
    26 FSET_XATTR: Write changes;
    /// Names of the extended attributes.
    27 FLIST_XATTR: Read;
    /// Removes an extended attribute.
    28 FREMOVE_XATTR: Write changes;
    /// Creates a bound socket of the host.
    29 BIND_AT: Write changes;
    /// Makes a bound socket accept connections.
    30 LISTEN: Read;
    /// Takes a waiting connection.
    31 ACCEPT: Read;
    /// As Connect, with the ids that the peer shall see.
    32 CONNECT_WITH_CREDS: Read;
    /// As RenameAt, with flags.
    33 RENAME_AT2: Global changes;
}

impl fmt::Debug for Mid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "MID {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_dense_and_in_order() {
        let numbers: Vec<u16> = Mid::ALL.iter().map(|mid| mid.0).collect();
        assert_eq!(numbers, (0..=33).collect::<Vec<u16>>());
    }

    #[test]
    fn the_messages_that_a_read_only_connection_refuses() {
        let refused: Vec<u16> = Mid::ALL.iter().filter(|mid| mid.changes_files()).map(|mid| mid.0).collect();
        assert_eq!(refused, [4, 8, 11, 13, 14, 15, 16, 18, 22, 23, 26, 28, 29, 33]);
    }
}
