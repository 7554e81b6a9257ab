//! The model: inodes, names, and what each descriptor of a client stands for.

use std::collections::BTreeMap;

use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, FdId};

/// Index of an inode. Inodes are never forgotten, since descriptors may outlive their names.
pub(crate) type Id = usize;

/// The root's.
pub(crate) const ROOT: Id = 0;

/// Everything that the host has, and everything that was removed from it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) inodes: Vec<Inode>,
}

#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) kind: Kind,
    pub(crate) mode: u16,
    pub(crate) xattrs: BTreeMap<&'static str, u8>,
    /// The host's number, once it was seen.
    pub(crate) number: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    File(Vec<u8>),
    Dir(BTreeMap<&'static str, Id>),
    Link(&'static str),
}

/// Where a descriptor's node is: it follows renames, and never comes back from a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    At(Id, &'static str),
    Deleted,
}

/// A control descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub(crate) fd: FdId,
    pub(crate) inode: Id,
    pub(crate) place: Place,
}

/// An open descriptor, with the place of the control descriptor that it keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) fd: FdId,
    pub(crate) access: u32,
    pub(crate) control: Control,
}

impl Control {
    pub(crate) fn root(fd: FdId) -> Self {
        Self { fd, inode: ROOT, place: Place::Root }
    }

    pub(crate) fn alive(&self) -> Result<(), Errno> {
        if self.place == Place::Deleted { Err(Errno::EINVAL) } else { Ok(()) }
    }
}

impl Kind {
    pub(crate) fn file_type(&self) -> FileType {
        match self {
            Self::File(_) => FileType::Regular,
            Self::Dir(_) => FileType::Directory,
            Self::Link(_) => FileType::Symlink,
        }
    }
}

/// What became of names, for descriptors to follow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Nothing that moves a node.
    None,
    Removed(Entry),
    Moved {
        old: Entry,
        new: Entry,
    },
    Swapped {
        old: Entry,
        new: Entry,
    },
}

/// A name in a directory.
pub(crate) type Entry = (Id, &'static str);

impl Change {
    /// Where a node is that was at `place`.
    pub(crate) fn follow(self, place: Place) -> Place {
        let Place::At(dir, name) = place else { return place };
        let at = |(dir, name)| Place::At(dir, name);
        match self {
            Self::Removed(gone) if gone == (dir, name) => Place::Deleted,
            Self::Moved { old, new } if old == (dir, name) => at(new),
            Self::Moved { new, .. } if new == (dir, name) => Place::Deleted,
            Self::Swapped { old, new } if old == (dir, name) => at(new),
            Self::Swapped { old, new } if new == (dir, name) => at(old),
            _ => place,
        }
    }
}

impl Tree {
    /// An empty directory, whose mode the host chose.
    pub(crate) fn new(mode: u16) -> Self {
        let mut tree = Self { inodes: Vec::new() };
        tree.make(Kind::Dir(BTreeMap::new()), mode);
        tree
    }

    fn make(&mut self, kind: Kind, mode: u16) -> Id {
        self.inodes.push(Inode { kind, mode, xattrs: BTreeMap::new(), number: None });
        self.inodes.len() - 1
    }

    pub(crate) fn entries(&self, dir: Id) -> Result<&BTreeMap<&'static str, Id>, Errno> {
        match &self.inodes[dir].kind {
            Kind::Dir(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn entries_mut(&mut self, dir: Id) -> &mut BTreeMap<&'static str, Id> {
        match &mut self.inodes[dir].kind {
            Kind::Dir(entries) => entries,
            other => panic!("no directory but {other:?}"),
        }
    }

    pub(crate) fn find(&self, (dir, name): Entry) -> Option<Id> {
        self.entries(dir).ok().and_then(|entries| entries.get(name).copied())
    }

    pub(crate) fn is_dir(&self, id: Id) -> bool {
        matches!(self.inodes[id].kind, Kind::Dir(_))
    }

    /// Names of an inode; of a directory's, one.
    pub(crate) fn links(&self, id: Id) -> usize {
        let names = |inode: &Inode| match &inode.kind {
            Kind::Dir(entries) => entries.values().filter(|entry| **entry == id).count(),
            _ => 0,
        };
        self.inodes.iter().map(names).sum()
    }

    /// The checks that precede every change of a directory.
    pub(crate) fn changeable(&self, dir: &Control, name: &str) -> Result<(), Errno> {
        safe(name)?;
        self.entries(dir.inode)?;
        dir.alive()
    }

    /// Makes a new inode with a name.
    pub(crate) fn add(&mut self, entry: Entry, kind: Kind, mode: u16) -> Result<Id, Errno> {
        if self.find(entry).is_some() {
            return Err(Errno::EEXIST);
        }
        let id = self.make(kind, mode);
        self.entries_mut(entry.0).insert(entry.1, id);
        Ok(id)
    }

    /// Gives an inode one more name.
    pub(crate) fn link(&mut self, entry: Entry, id: Id) -> Result<Id, Errno> {
        if self.find(entry).is_some() {
            return Err(Errno::EEXIST);
        }
        self.entries_mut(entry.0).insert(entry.1, id);
        Ok(id)
    }

    pub(crate) fn remove(&mut self, entry: Entry, directory: bool) -> Result<Change, Errno> {
        let id = self.find(entry).ok_or(Errno::ENOENT)?;
        match (&self.inodes[id].kind, directory) {
            (Kind::Dir(_), false) => return Err(Errno::EISDIR),
            (Kind::Dir(entries), true) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
            (Kind::File(_) | Kind::Link(_), true) => return Err(Errno::ENOTDIR),
            _ => {}
        }
        self.entries_mut(entry.0).remove(entry.1);
        Ok(Change::Removed(entry))
    }

    /// As rename(2) has it, errors in its order.
    pub(crate) fn rename(&mut self, old: Entry, new: Entry, replace: bool) -> Result<Change, Errno> {
        let source = self.find(old).ok_or(Errno::ENOENT)?;
        let target = self.find(new);
        if target.is_some() && !replace {
            return Err(Errno::EEXIST);
        }
        if old.0 != new.0 && self.contains(source, new.0) {
            return Err(Errno::EINVAL);
        }
        if old.0 != new.0 && target.is_some_and(|target| self.contains(target, old.0)) {
            return Err(Errno::ENOTEMPTY);
        }
        if target == Some(source) {
            return Ok(Change::None);
        }
        if let Some(target) = target {
            match (self.is_dir(source), self.is_dir(target)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) if !self.entries(target)?.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => {}
            }
        }
        self.entries_mut(old.0).remove(old.1);
        self.entries_mut(new.0).insert(new.1, source);
        Ok(Change::Moved { old, new })
    }

    /// As renameat2(2) has it with `RENAME_EXCHANGE`.
    pub(crate) fn exchange(&mut self, old: Entry, new: Entry) -> Result<Change, Errno> {
        let source = self.find(old).ok_or(Errno::ENOENT)?;
        let target = self.find(new).ok_or(Errno::ENOENT)?;
        if old.0 != new.0 && (self.contains(source, new.0) || self.contains(target, old.0)) {
            return Err(Errno::EINVAL);
        }
        if source == target {
            return Ok(Change::None);
        }
        self.entries_mut(old.0).insert(old.1, target);
        self.entries_mut(new.0).insert(new.1, source);
        Ok(Change::Swapped { old, new })
    }

    /// Whether `inner` is `outer` or somewhere below it.
    fn contains(&self, outer: Id, inner: Id) -> bool {
        outer == inner
            || match &self.inodes[outer].kind {
                Kind::Dir(entries) => entries.values().any(|entry| self.contains(*entry, inner)),
                _ => false,
            }
    }
}

/// Names that stay in their directory.
pub(crate) fn safe(name: &str) -> Result<(), Errno> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) { Err(Errno::EINVAL) } else { Ok(()) }
}
