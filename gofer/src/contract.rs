//! What `runsc` and its gofer agree on beside the protocol: the generations of the command line, and the
//! configuration of a mount.

use std::fmt;

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
    /// Reads one configuration as a `runsc` of `generation` writes it.
    ///
    /// # Errors
    /// [`ConfError`] for a wrong number of parts, an unknown word, or a combination that means nothing.
    pub fn parse(text: &str, generation: Generation) -> Result<Self, ConfError> {
        let refuse = |cause: String| ConfError { conf: text.to_owned(), cause };
        let parts: Vec<&str> = text.split(':').collect();
        let (lower, upper, size) = match parts[..] {
            [lower, upper] => (lower, upper, None),
            [lower, upper, size] if generation == Generation::E26 => (lower, upper, Some(size)),
            _ => return Err(refuse(format!("{} parts", parts.len()))),
        };
        let lower = Lower::named(lower).ok_or_else(|| refuse(format!("unknown lower layer {lower:?}")))?;
        let upper = Upper::named(upper).ok_or_else(|| refuse(format!("unknown upper layer {upper:?}")))?;
        let size = match size {
            None => None,
            Some(word) => Some(word.strip_prefix("size=").ok_or_else(|| refuse(format!("{word:?} is not a size")))?),
        };
        if lower == Lower::None && upper == Upper::None {
            return Err(refuse("both layers are none".to_owned()));
        }
        Ok(Self { lower, upper, size: size.map(str::to_owned) })
    }

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

impl fmt::Display for MountConf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lower.name(), self.upper.name())?;
        self.size.as_ref().map_or(Ok(()), |size| write!(f, ":size={size}"))
    }
}

/// Words are these and no others, in both directions.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* }) => {
        impl $type {
            fn named(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

words!(Lower { None = "none", Lisafs = "lisafs", Erofs = "erofs" });
words!(Upper { None = "none", Memory = "memory", SelfBacked = "self", Anon = "anon" });

/// Why a text is no mount configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfError {
    conf: String,
    cause: String,
}

impl fmt::Display for ConfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount configuration {:?}: {}", self.conf, self.cause)
    }
}

impl std::error::Error for ConfError {}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Generation; 3] = [Generation::E22, Generation::E24, Generation::E26];

    #[test]
    fn bad_mount_confs_are_refused_with_the_word() {
        let bad = [
            ("none:none", "none"),
            ("lisafs", "1 parts"),
            ("lisafs:self:2g", ""),
            ("zfs:none", "zfs"),
            ("lisafs:disk", "disk"),
            ("", ""),
        ];
        for generation in ALL {
            for (text, word) in bad {
                let error = MountConf::parse(text, generation).expect_err(text).to_string();
                assert!(error.contains(text) && error.contains(word), "{error}");
            }
        }
    }

    #[test]
    fn a_size_is_accepted_under_e26_and_refused_under_e24() {
        let text = "lisafs:memory:size=1g";
        let conf = MountConf::parse(text, Generation::E26).unwrap();
        assert_eq!(conf.size.as_deref(), Some("1g"));
        assert_eq!(conf.to_string(), text);
        assert!(MountConf::parse(text, Generation::E24).is_err());
        assert!(MountConf::parse("lisafs:memory:1g", Generation::E26).unwrap_err().to_string().contains("1g"));
    }

    #[test]
    fn every_combination_of_words_is_written_as_it_was_read() {
        for lower in ["none", "lisafs", "erofs"] {
            for upper in ["none", "memory", "self", "anon"] {
                let text = format!("{lower}:{upper}");
                match MountConf::parse(&text, Generation::E24) {
                    Ok(conf) => assert_eq!(conf.to_string(), text),
                    Err(_) => assert_eq!(text, "none:none"),
                }
            }
        }
    }
}
