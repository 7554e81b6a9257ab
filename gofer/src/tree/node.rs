//! One position of the tree: where it is, what is tracked below it, and whether the server removed it.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use hashbrown::HashTable;

use super::name::StoredName;
use crate::host::FileName;

/// A position that some descriptor refers to.
#[derive(Debug)]
pub(crate) struct Node {
    /// What the guarantees Read and Write are made of; see `guard.rs`.
    pub(super) operation: RwLock<()>,
    /// Set while write(node) or global is held, and never cleared: a new file at the same name is a new node.
    deleted: AtomicBool,
    links: Mutex<Links>,
}

/// The node's place among others. `parent`, `name` and `hash` change only under the exclusive rename lock.
#[derive(Debug)]
struct Links {
    /// None for the root, and once the node is being released. A deleted node keeps its parent.
    parent: Option<Arc<Node>>,
    name: StoredName,
    hash: u64,
    /// None while nothing is tracked below, which is most nodes.
    children: Option<Box<HashTable<Child>>>,
}

/// A tracked entry of a directory. It does not keep the node, which removes it on its way out; the hash stands here
/// because an entry may have to move while its node is already gone.
#[derive(Debug)]
struct Child {
    hash: u64,
    node: Weak<Node>,
}

impl Node {
    pub(super) fn root() -> Self {
        // The root has no name; this one is never looked at.
        Self::new(None, StoredName::Long(Box::default()), 0)
    }

    fn new(parent: Option<Arc<Self>>, name: StoredName, hash: u64) -> Self {
        Self {
            operation: RwLock::new(()),
            deleted: AtomicBool::new(false),
            links: Mutex::new(Links { parent, name, hash, children: None }),
        }
    }

    /// Whether the server removed what was here. Then nothing may be looked up by this position again: the client may
    /// have put something else there.
    pub(crate) fn is_deleted(&self) -> bool {
        // Acquire: pairs with the Release in `mark_deleted`, for readers that hold no lock.
        self.deleted.load(Ordering::Acquire)
    }

    /// Marks the node and everything tracked below it.
    pub(super) fn mark_deleted(self: Arc<Self>) {
        // Not recursive: a client decides how deep the tree is.
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            node.deleted.store(true, Ordering::Release);
            let links = node.links();
            pending.extend(links.children.iter().flat_map(|children| children.iter()).filter_map(|c| c.node.upgrade()));
            drop(links);
        }
    }

    pub(super) fn child(&self, hash: u64, name: FileName<'_>) -> Option<Arc<Self>> {
        let mut strays = Vec::new();
        let found = self.links().find(hash, name, &mut strays);
        // `strays` goes now, after the lock: one of them may be the last reference to its node.
        found
    }

    pub(super) fn child_or_insert(self: &Arc<Self>, hash: u64, name: FileName<'_>) -> Arc<Self> {
        let mut strays = Vec::new();
        let mut links = self.links();
        let found = links.find(hash, name, &mut strays);
        let child = found.unwrap_or_else(|| {
            let child = Arc::new(Self::new(Some(Arc::clone(self)), name.into(), hash));
            links.insert(hash, &child);
            child
        });
        drop(links);
        child
    }

    /// Takes the entry out of the directory; the node lives on, and still refers to its parent.
    pub(super) fn detach(&self, hash: u64, name: FileName<'_>) -> Option<Arc<Self>> {
        let child = self.child(hash, name)?;
        self.links().remove(hash, &*child);
        Some(child)
    }

    /// Puts a detached node at a new position.
    ///
    /// Where another process moved directories about, the new parent may be below the node in *our* tree, though the
    /// host has just shown that it is not. Then the node becomes one that was deleted: clients walk to it again.
    pub(super) fn attach(self: &Arc<Self>, node: &Arc<Self>, hash: u64, name: FileName<'_>) {
        if node.tracked_children() > 0 && self.is_below(node) {
            return Arc::clone(node).mark_deleted();
        }
        let mut links = node.links();
        let old_parent = links.parent.replace(Arc::clone(self));
        links.name = name.into();
        links.hash = hash;
        drop(links);
        // It may be the last reference to the old parent, so it goes after the lock.
        drop(old_parent);
        self.links().insert(hash, node);
    }

    /// Whether `ancestor` is this node or above it.
    fn is_below(self: &Arc<Self>, ancestor: &Arc<Self>) -> bool {
        let mut position = Some(Arc::clone(self));
        while let Some(node) = position {
            if Arc::ptr_eq(&node, ancestor) {
                return true;
            }
            position = node.links().parent.clone();
        }
        false
    }

    /// Entries of the directory that someone holds.
    pub(super) fn tracked_children(&self) -> usize {
        self.links().children.as_ref().map_or(0, |children| children.len())
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the parent's table, where it is known as `itself`, and hands over the reference to the parent.
    fn leave(&mut self, itself: *const Self) -> Option<Arc<Self>> {
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        let parent = links.parent.take()?;
        parent.links().remove(links.hash, itself);
        Some(parent)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let itself: *const Self = self;
        // A loop over what would otherwise be a recursion as deep as the tree.
        let mut parent = self.leave(itself);
        while let Some(above) = parent.take() {
            // Taken out of its allocation, the node has another address than the one that its parent knows.
            let known_as = Arc::as_ptr(&above);
            parent = Arc::into_inner(above).and_then(|mut last| last.leave(known_as));
        }
    }
}

impl Links {
    /// The entry's node, unless it is on its way out. Nodes that only share the hash go to `strays`, to be dropped
    /// when the lock is no longer held.
    fn find(&self, hash: u64, name: FileName<'_>, strays: &mut Vec<Arc<Node>>) -> Option<Arc<Node>> {
        let mut found = None;
        self.children.as_ref()?.find(hash, |child| {
            let Some(node) = Some(child).filter(|child| child.hash == hash).and_then(|child| child.node.upgrade())
            else {
                return false;
            };
            let same = node.links().name.as_bytes() == name.as_bytes();
            if same {
                found = Some(node);
            } else {
                strays.push(node);
            }
            same
        });
        found
    }

    fn insert(&mut self, hash: u64, node: &Arc<Node>) {
        let child = Child { hash, node: Arc::downgrade(node) };
        self.children.get_or_insert_default().insert_unique(hash, child, |child| child.hash);
    }

    /// Removes the entry that is this very node; whatever else has its name by now stays.
    fn remove(&mut self, hash: u64, node: *const Node) {
        let Some(children) = self.children.as_mut() else { return };
        if let Ok(entry) = children.find_entry(hash, |child| ptr::eq(child.node.as_ptr(), node)) {
            entry.remove();
        }
        if children.is_empty() {
            self.children = None;
        } else if children.len() * 8 < children.capacity() {
            // A directory that was walked whole once does not keep the room for it.
            children.shrink_to(children.len() * 2, |child| child.hash);
        }
    }
}

const _: () = assert!(size_of::<Node>() <= 88, "a node and its two counts fill one allocation of 112 bytes");
