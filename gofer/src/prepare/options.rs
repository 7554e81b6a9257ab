//! Mount options as flags. Left to right, the later one wins; a word that undoes another clears it, in each generation.

use rustix::mount::{MountFlags, MountPropagationFlags};

/// What a mount's options ask for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) flags: MountFlags,
    /// In the order given.
    pub(super) propagation: Vec<MountPropagationFlags>,
}

const POSIXACL: u32 = 1 << 16;
const MANDLOCK: u32 = 1 << 6;
const I_VERSION: u32 = 1 << 23;

pub(super) fn parse(options: &[String]) -> Options {
    let mut flags = MountFlags::BIND;
    let mut words = Vec::new();
    for option in options {
        if let Some((flag, on)) = flag(option) {
            flags.set(flag, on);
        } else if let Some(change) = propagation(option) {
            words.push(change);
        }
    }
    flags.insert(MountFlags::BIND);
    Options { flags, propagation: words }
}

/// A flag, and whether the word sets it.
fn flag(option: &str) -> Option<(MountFlags, bool)> {
    let raw = MountFlags::from_bits_retain;
    Some(match option {
        "acl" => (raw(POSIXACL), true),
        "noacl" => (raw(POSIXACL), false),
        "bind" => (MountFlags::BIND, true),
        "rbind" => (MountFlags::BIND | MountFlags::REC, true),
        "ro" => (MountFlags::RDONLY, true),
        "rw" => (MountFlags::RDONLY, false),
        "noexec" => (MountFlags::NOEXEC, true),
        "exec" => (MountFlags::NOEXEC, false),
        "nodev" => (MountFlags::NODEV, true),
        "dev" => (MountFlags::NODEV, false),
        "nosuid" => (MountFlags::NOSUID, true),
        "suid" => (MountFlags::NOSUID, false),
        "sync" => (MountFlags::SYNCHRONOUS, true),
        "async" => (MountFlags::SYNCHRONOUS, false),
        "dirsync" => (MountFlags::DIRSYNC, true),
        "noatime" => (MountFlags::NOATIME, true),
        "atime" => (MountFlags::NOATIME, false),
        "nodiratime" => (MountFlags::NODIRATIME, true),
        "diratime" => (MountFlags::NODIRATIME, false),
        "relatime" => (MountFlags::RELATIME, true),
        "norelatime" => (MountFlags::RELATIME, false),
        "strictatime" => (MountFlags::STRICTATIME, true),
        "nostrictatime" => (MountFlags::STRICTATIME, false),
        "mand" => (raw(MANDLOCK), true),
        "nomand" => (raw(MANDLOCK), false),
        "iversion" => (raw(I_VERSION), true),
        "noiversion" => (raw(I_VERSION), false),
        "silent" => (MountFlags::SILENT, true),
        "loud" => (MountFlags::SILENT, false),
        _ => return None,
    })
}

/// One propagation word; also those of `linux.rootfsPropagation`.
pub(super) fn propagation(word: &str) -> Option<MountPropagationFlags> {
    let (recursive, word) = word.strip_prefix('r').map_or((false, word), |rest| (true, rest));
    let flag = match word {
        "private" => MountPropagationFlags::PRIVATE,
        "slave" => MountPropagationFlags::DOWNSTREAM,
        "unbindable" => MountPropagationFlags::UNBINDABLE,
        _ => return None,
    };
    Some(if recursive { flag | MountPropagationFlags::REC } else { flag })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Options {
        parse(&words.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_later_word_wins_and_an_undoing_one_never_sets() {
        assert_eq!(of("rbind,rw,nodev").flags, MountFlags::BIND | MountFlags::REC | MountFlags::NODEV);
        assert_eq!(of("ro,rw").flags, MountFlags::BIND);
        assert_eq!(of("rw,ro,defaults").flags, MountFlags::BIND | MountFlags::RDONLY);
        assert_eq!(of("nosuid,suid,noatime,atime").flags, MountFlags::BIND);
    }

    #[test]
    fn propagation_words_keep_their_order_and_shared_ones_are_none() {
        assert_eq!(
            of("rslave,private").propagation,
            [MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC, MountPropagationFlags::PRIVATE]
        );
        assert_eq!(propagation("shared"), None);
        assert_eq!(propagation("ro"), None);
    }
}
