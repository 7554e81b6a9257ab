//! One request in terms that mean the same to both gofers: descriptors by the slot that holds them.

use std::os::fd::OwnedFd;

use gofer::contract::Generation;
use gofer_integration::{Ask, Entry, Random, Raw, change, new_in};
use gofer_protocol::record::{FileType, Statx, StatxMask, Timespec};
use gofer_protocol::{Errno, FdId};

/// How many descriptors a stream juggles; slot 0 is the root.
pub(crate) const SLOTS: usize = 24;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    slot: usize,
    other: usize,
    /// Where a new descriptor goes.
    pub(crate) into: usize,
    name: &'static str,
    second: &'static str,
    number: u64,
    permissions: u16,
}

/// Its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages' own names")]
pub(crate) enum Kind {
    Walk,
    WalkStat,
    FStat,
    Open,
    Create,
    Mkdir,
    Mknod,
    Symlink,
    Link,
    Unlink,
    Rename,
    Rename2,
    SetStat,
    PWrite,
    PRead,
    FAllocate,
    FSync,
    ReadLink,
    ListXattr,
    SetXattr,
    GetXattr,
    Getdents,
    Close,
}

const KINDS: [Kind; 28] = [
    Kind::Walk,
    Kind::Walk,
    Kind::Walk,
    Kind::WalkStat,
    Kind::FStat,
    Kind::Open,
    Kind::Open,
    Kind::Create,
    Kind::Create,
    Kind::Mkdir,
    Kind::Mkdir,
    Kind::Mknod,
    Kind::Symlink,
    Kind::Link,
    Kind::Unlink,
    Kind::Rename,
    Kind::Rename2,
    Kind::SetStat,
    Kind::PWrite,
    Kind::PRead,
    Kind::FAllocate,
    Kind::FSync,
    Kind::ReadLink,
    Kind::ListXattr,
    Kind::SetXattr,
    Kind::GetXattr,
    Kind::Getdents,
    Kind::Close,
];

impl Kind {
    /// Whether the generation's original announces the message.
    fn is_of(self, generation: Generation) -> bool {
        match self {
            Self::Rename2 | Self::ListXattr | Self::SetXattr | Self::GetXattr => generation == Generation::E26,
            _ => true,
        }
    }
}

/// What came back, without what differs between two trees anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) result: Result<String, Errno>,
    /// Type and flags of each donated descriptor.
    pub(crate) donated: Vec<(u32, u32)>,
}

impl Step {
    /// Any request of a message that the original of the generation has.
    pub(crate) fn random(random: &mut Random, generation: Generation) -> Self {
        let kinds: Vec<_> = KINDS.into_iter().filter(|kind| kind.is_of(generation)).collect();
        let slots: Vec<usize> = (0..SLOTS).collect();
        Self {
            kind: *random.one_of(&kinds),
            // The root is asked more often than the others.
            slot: if random.below(3) == 0 { 0 } else { *random.one_of(&slots) },
            other: *random.one_of(&slots),
            into: *random.one_of(&slots[1..]),
            name: *random.one_of::<&'static str>(&NAMES),
            second: *random.one_of::<&'static str>(&NAMES),
            number: random.number(),
            permissions: *random.one_of(permissions(generation)),
        }
    }

    /// Sends it; what it makes takes the place of what was in its slot.
    pub(crate) fn ask(&self, client: &Raw, slots: &mut [FdId; SLOTS]) -> Outcome {
        let (fd, other) = (slots[self.slot], slots[self.other]);
        let (name, second, number) = (self.name, self.second, self.number);
        let permissions = self.permissions;
        let mut donated = Vec::new();
        let mut made = None;
        let mut with = |inode: gofer_protocol::record::Inode| {
            made = Some(inode.control_fd);
            stat(&inode.stat)
        };
        let result = match self.kind {
            Kind::Walk => {
                client.walk(fd, &[name, second][..1 + usize::from(number % 3 == 0)]).map(|(status, inodes)| {
                    let text: Vec<_> = inodes.iter().map(|inode| stat(&inode.stat)).collect();
                    let mut inodes = inodes;
                    let last = inodes.pop();
                    client.close(&inodes.iter().map(|inode| inode.control_fd).collect::<Vec<_>>());
                    last.map(&mut with);
                    format!("{status:?} {text:?}")
                })
            }
            Kind::WalkStat => {
                let stats = client.walk_stat(fd, &[name, second]);
                stats.map(|stats| format!("{:?}", stats.iter().map(stat).collect::<Vec<_>>()))
            }
            Kind::FStat => client.fstat(fd).map(|of| stat(&of)),
            Kind::Open => {
                let flags = [0, 1, 2, 0x200 | 2][usize::try_from(number % 4).expect("small")];
                client.open(fd, flags).map(|(open, fds)| {
                    made = Some(open);
                    donated = fds;
                    String::new()
                })
            }
            Kind::Create => {
                let new = new_in(fd, FileType::Regular, permissions);
                client.open_create(new, 2, name).map(|(inode, open, fds)| {
                    let text = with(inode);
                    client.close(&[open]);
                    donated = fds;
                    text
                })
            }
            Kind::Mkdir => client.mkdir(new_in(fd, FileType::Directory, 0o755), name).map(with),
            Kind::Mknod => client.mknod(new_in(fd, FileType::Regular, permissions), (0, 0), name).map(with),
            Kind::Symlink => client.symlink(fd, name, second).map(with),
            Kind::Link => client.link(fd, other, name).map(with),
            Kind::Unlink => {
                let flags = if number % 2 == 0 { 0 } else { 0x200 };
                client.unlink_with(fd, name, flags).map(|()| String::new())
            }
            Kind::Rename => client.rename((fd, name), (other, second)).map(|()| String::new()),
            Kind::Rename2 => {
                let flags = u32::try_from(number % 2).expect("small");
                client.rename2((fd, name), (other, second), flags).map(|()| String::new())
            }
            Kind::SetStat => client.set_stat(&self.change(fd)).map(|reply| format!("{reply:?}")),
            Kind::PWrite => client.pwrite(fd, number % 5_000, &number.to_le_bytes()).map(|count| count.to_string()),
            Kind::PRead => client.pread(fd, number % 5_000, 64).map(|data| format!("{data:?}")),
            Kind::FAllocate => client.fallocate(fd, 0, number % 4_096, 1_000).map(|()| String::new()),
            Kind::FSync => client.fsync(&[fd]).map(|()| String::new()),
            Kind::ReadLink => client.read_link(fd).map(|target| format!("{target:?}")),
            Kind::ListXattr => client.list_xattr(fd, 4_096).map(|names| format!("{names:?}")),
            Kind::SetXattr => client.set_xattr(fd, 0, "user.x", name.as_bytes()).map(|()| String::new()),
            Kind::GetXattr => client.get_xattr(fd, 256, "user.x").map(|value| format!("{value:?}")),
            Kind::Getdents => client.getdents(fd, -65_536).map(|entries| listing(&entries)),
            Kind::Close => {
                if self.slot != 0 && fd != FdId(0) {
                    client.close(&[fd]);
                    slots[self.slot] = FdId(0);
                }
                Ok(String::new())
            }
        };
        if let Some(made) = made {
            if slots[self.into] != FdId(0) {
                client.close(&[slots[self.into]]);
            }
            slots[self.into] = made;
        }
        Outcome { result, donated: donated.iter().map(kind_and_flags).collect() }
    }

    fn change(&self, fd: FdId) -> gofer_protocol::message::SetStatRequest {
        let seconds = i64::try_from(self.number % 1_000_000).expect("small");
        let time = Timespec { seconds, nanoseconds: 5 };
        match self.number % 4 {
            0 => gofer_protocol::message::SetStatRequest { mode: 0o640, ..change(fd, StatxMask::MODE) },
            1 => gofer_protocol::message::SetStatRequest { size: self.number % 9_000, ..change(fd, StatxMask::SIZE) },
            2 => gofer_protocol::message::SetStatRequest { mtime: time, ..change(fd, StatxMask::MTIME) },
            _ => gofer_protocol::message::SetStatRequest { uid: gofer_protocol::Uid(7), ..change(fd, StatxMask::UID) },
        }
    }
}

/// Permissions of new files. The originals of E22 and E24 lose set-user-id to the chown that follows a creation.
fn permissions(generation: Generation) -> &'static [u16] {
    match generation {
        Generation::E22 | Generation::E24 => &[0o644, 0o600, 0o755],
        Generation::E26 => &[0o644, 0o600, 0o755, 0o4711],
    }
}

/// Attributes but for inode, device, times and blocks, which differ between twins.
fn stat(stat: &Statx) -> String {
    format!("{:?} {} {} {} {}", stat.mode, stat.nlink, stat.uid, stat.gid, stat.size)
}

fn listing(entries: &[Entry]) -> String {
    let mut names: Vec<_> =
        entries.iter().map(|entry| (String::from_utf8_lossy(&entry.name), entry.entry_type)).collect();
    names.sort();
    format!("{names:?}")
}

/// Without `O_NOFOLLOW`, which tells how a descriptor was opened and does nothing afterwards: ours has it.
fn kind_and_flags(fd: &OwnedFd) -> (u32, u32) {
    let kind = rustix::fs::fstat(fd).expect("attributes").st_mode & 0o170_000;
    (kind, rustix::fs::fcntl_getfl(fd).expect("flags").bits() & !rustix::fs::OFlags::NOFOLLOW.bits())
}
