//! What clients do, as data. Descriptors are indices into what a client holds, so that every sequence makes sense.

use proptest::prelude::*;

/// One request. Indices count modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Walk { client: usize, dir: usize, path: Vec<usize> },
    WalkStat { client: usize, dir: usize, itself: bool, path: Vec<usize> },
    Stat { client: usize, file: usize },
    StatOpen { client: usize, open: usize },
    SetMode { client: usize, file: usize, mode: u16 },
    SetSize { client: usize, file: usize, size: u64 },
    Mkdir { client: usize, dir: usize, name: usize, mode: u16 },
    Mknod { client: usize, dir: usize, name: usize, mode: u16 },
    Symlink { client: usize, dir: usize, name: usize, target: usize },
    Link { client: usize, dir: usize, target: usize, name: usize },
    Create { client: usize, dir: usize, name: usize, mode: u16, access: u32 },
    Open { client: usize, file: usize, flags: u32 },
    Close { client: usize, file: usize },
    CloseOpen { client: usize, open: usize },
    Write { client: usize, open: usize, offset: u64, data: Vec<u8> },
    Read { client: usize, open: usize, offset: u64, count: u32 },
    List { client: usize, open: usize },
    ReadLink { client: usize, file: usize },
    Unlink { client: usize, dir: usize, name: usize, directory: bool },
    Rename { client: usize, old: (usize, usize), new: (usize, usize) },
    NoReplace { client: usize, old: (usize, usize), new: (usize, usize) },
    Exchange { client: usize, old: (usize, usize), new: (usize, usize) },
    SetXattr { client: usize, file: usize, name: usize, value: u8 },
    Xattr { client: usize, file: usize, name: usize },
    RemoveXattr { client: usize, file: usize, name: usize },
    ListXattr { client: usize, file: usize },
}

/// Names of files. The last is no name at all.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", ".."];

/// Names of extended attributes.
pub(crate) const XATTRS: [&str; 2] = ["user.one", "user.two"];

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    use Operation as Op;
    prop_oneof![
        6 => (client(), index(), path()).prop_map(|(client, dir, path)| Op::Walk { client, dir, path }),
        2 => (client(), index(), any::<bool>(), path())
            .prop_map(|(client, dir, itself, path)| Op::WalkStat { client, dir, itself, path }),
        2 => (client(), index()).prop_map(|(client, file)| Op::Stat { client, file }),
        1 => (client(), index()).prop_map(|(client, open)| Op::StatOpen { client, open }),
        2 => (client(), index(), mode()).prop_map(|(client, file, mode)| Op::SetMode { client, file, mode }),
        2 => (client(), index(), 0..40u64).prop_map(|(client, file, size)| Op::SetSize { client, file, size }),
        6 => (client(), index(), name(), mode()).prop_map(|(client, dir, name, mode)| Op::Mkdir { client, dir, name, mode }),
        2 => (client(), index(), name(), mode()).prop_map(|(client, dir, name, mode)| Op::Mknod { client, dir, name, mode }),
        2 => (client(), index(), name(), name())
            .prop_map(|(client, dir, name, target)| Op::Symlink { client, dir, name, target }),
        4 => (client(), index(), index(), name())
            .prop_map(|(client, dir, target, name)| Op::Link { client, dir, target, name }),
        6 => (client(), index(), name(), mode(), 0..4u32)
            .prop_map(|(client, dir, name, mode, access)| Op::Create { client, dir, name, mode, access }),
        4 => (client(), index(), flags()).prop_map(|(client, file, flags)| Op::Open { client, file, flags }),
        3 => (client(), index()).prop_map(|(client, file)| Op::Close { client, file }),
        1 => (client(), index()).prop_map(|(client, open)| Op::CloseOpen { client, open }),
        3 => (client(), index(), 0..40u64, prop::collection::vec(any::<u8>(), 0..16))
            .prop_map(|(client, open, offset, data)| Op::Write { client, open, offset, data }),
        2 => (client(), index(), 0..40u64, 0..50u32)
            .prop_map(|(client, open, offset, count)| Op::Read { client, open, offset, count }),
        2 => (client(), index()).prop_map(|(client, open)| Op::List { client, open }),
        1 => (client(), index()).prop_map(|(client, file)| Op::ReadLink { client, file }),
        5 => (client(), index(), name(), any::<bool>())
            .prop_map(|(client, dir, name, directory)| Op::Unlink { client, dir, name, directory }),
        5 => (client(), entry(), entry()).prop_map(|(client, old, new)| Op::Rename { client, old, new }),
        2 => (client(), entry(), entry()).prop_map(|(client, old, new)| Op::NoReplace { client, old, new }),
        4 => (client(), entry(), entry()).prop_map(|(client, old, new)| Op::Exchange { client, old, new }),
        2 => (client(), index(), xattr(), any::<u8>())
            .prop_map(|(client, file, name, value)| Op::SetXattr { client, file, name, value }),
        1 => (client(), index(), xattr()).prop_map(|(client, file, name)| Op::Xattr { client, file, name }),
        1 => (client(), index(), xattr()).prop_map(|(client, file, name)| Op::RemoveXattr { client, file, name }),
        1 => (client(), index()).prop_map(|(client, file)| Op::ListXattr { client, file }),
    ]
}

fn client() -> impl Strategy<Value = usize> {
    0..2usize
}

/// The first are the oldest, and the root is the first.
fn index() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), 0..40usize]
}

fn name() -> impl Strategy<Value = usize> {
    prop_oneof![40 => 0..NAMES.len() - 1, 1 => Just(NAMES.len() - 1)]
}

fn entry() -> impl Strategy<Value = (usize, usize)> {
    (index(), name())
}

fn path() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(name(), 0..4)
}

/// Without setuid, setgid and sticky, which the host clears at times of its own.
fn mode() -> impl Strategy<Value = u16> {
    0..0o1000u16
}

fn flags() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..3u32, 1 => Just(0o1002u32), 1 => Just(0o1000u32)]
}

fn xattr() -> impl Strategy<Value = usize> {
    0..XATTRS.len()
}
