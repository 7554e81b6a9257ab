//! What `runsc` and its gofer agree on beside the protocol: the generations of the command line, and the configuration of
//! a mount.

/// A generation of `runsc`, told by the arguments that it gives its gofer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// As release 20221219.0, Debian 12's.
    E22,
    /// As release 20240729.0, Debian 13's.
    E24,
    /// As the upstream of September 2026.
    E26,
}

/// What a mount is made of: `lower:upper`, and from E26 on `lower:upper:size=TEXT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountConf {
    /// Where its files come from.
    pub lower: Lower,
    /// Where its changes go.
    pub upper: Upper,
    /// Size of the upper layer; a gofer has no use for it.
    pub size: Option<String>,
}

/// Where the files of a mount come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// Nowhere: a tmpfs in the sandbox.
    None,
    /// This gofer.
    Lisafs,
    /// An image that the sandbox reads itself.
    Erofs,
}

/// Where the changes of a mount go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upper {
    /// To the lower layer.
    None,
    /// To the sandbox's memory.
    Memory,
    /// To a file in the mount itself.
    SelfBacked,
    /// To an unnamed file of the host.
    Anon,
}

impl MountConf {
    /// A connection and a bind mount of this gofer serve it.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.lower == Lower::Lisafs
    }

    /// Changes go to the sandbox's own layer, so that the host's mount and the connection are read-only.
    #[must_use]
    pub fn is_overlaid(&self) -> bool {
        self.lower != Lower::None && self.upper != Upper::None
    }
}
