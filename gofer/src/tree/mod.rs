//! Positions of the served tree that some connection holds, and the locks that keep them true.
//!
//! A [`Node`] is a *position*, not an inode: two hard links are two nodes, and two descriptors on one path share one,
//! across connections too. Nodes exist only while something refers to them. They exist to say, of an operation, what it
//! excludes; no host call is ever made with a path built from them.
//!
//! Lock order, outer first. A thread takes them only downwards:
//!
//! ```text
//! Tree::rename                shared by everything that depends on a position, exclusive for renames
//! +- Node::operation          an ancestor before a descendant; a directory before a file elsewhere
//!    +- Node::links           an ancestor before a descendant; held for a look-up or an update, never over a host call
//! ```
//!
//! The last reference to a node takes the `links` of its parent when it goes, so no reference to a node is dropped
//! while a `links` is held. `docs/locking.md` has the guarantees by name and a race for each rule.

mod guard;
mod name;
mod node;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use guard::{NodeWrite, Positions, RenameExclusive, RenameShared};
pub(crate) use node::Node;

use crate::host::FileName;
use crate::host::remove::Collision;

/// All positions of one served tree, for all its connections.
#[derive(Debug)]
pub(crate) struct Tree {
    rename: RwLock<()>,
    root: Arc<Node>,
    /// Keyed, so that a client cannot choose names that collide.
    hasher: RandomState,
}

/// One entry of a directory: the directory's position and a name in it.
pub(crate) type Entry<'a> = (&'a Arc<Node>, FileName<'a>);

impl Tree {
    /// A tree of which only the root is known.
    pub(crate) fn new() -> Self {
        Self { rename: RwLock::new(()), root: Arc::new(Node::root()), hasher: RandomState::new() }
    }

    /// The position that everything else is below.
    pub(crate) fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// Keeps every position where it is. Must not be taken twice by one thread: a rename that waits in between would
    /// wait for ever.
    pub(crate) fn shared(&self) -> RenameShared<'_> {
        RenameShared::new(self.rename.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Excludes everything that depends on a position.
    pub(crate) fn exclusive(&self) -> RenameExclusive<'_> {
        RenameExclusive::new(self.rename.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node of an entry, new if no one holds it yet. Two threads that ask at once get the same.
    pub(crate) fn child(&self, (parent, name): Entry<'_>, _: &impl Positions) -> Arc<Node> {
        parent.child_or_insert(self.hash(name), name)
    }

    /// The node of an entry, if someone holds it.
    pub(crate) fn tracked_child(&self, (parent, name): Entry<'_>, _: &impl Positions) -> Option<Arc<Node>> {
        parent.child(self.hash(name), name)
    }

    /// After a name was removed from the host: what was there is deleted, and so is whatever is tracked below it.
    pub(crate) fn removed(&self, (parent, name): Entry<'_>, _: &NodeWrite<'_>) {
        if let Some(node) = parent.detach(self.hash(name), name) {
            node.mark_deleted();
        }
    }

    /// After a name was moved on the host: the nodes follow.
    pub(crate) fn renamed(&self, old: Entry<'_>, new: Entry<'_>, collision: Collision, _: &RenameExclusive<'_>) {
        let (old_hash, new_hash) = (self.hash(old.1), self.hash(new.1));
        let replaced = new.0.detach(new_hash, new.1);
        let moved = old.0.detach(old_hash, old.1);
        match (replaced, collision) {
            (Some(swapped), Collision::Exchange) => old.0.attach(&swapped, old_hash, old.1),
            (Some(replaced), _) => replaced.mark_deleted(),
            (None, _) => {}
        }
        if let Some(moved) = moved {
            new.0.attach(&moved, new_hash, new.1);
        }
    }

    fn hash(&self, name: FileName<'_>) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FileName<'_> {
        FileName::new(text.as_bytes()).expect("a safe name")
    }

    #[test]
    fn two_holders_of_one_position_share_a_node() {
        let tree = Tree::new();
        let proof = tree.shared();
        let first = tree.child((tree.root(), name("a")), &proof);
        let second = tree.child((tree.root(), name("a")), &proof);
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &tree.child((tree.root(), name("b")), &proof)));
    }

    #[test]
    fn a_position_that_no_one_holds_is_forgotten() {
        let tree = Tree::new();
        let proof = tree.shared();
        drop(tree.child((tree.root(), name("a")), &proof));
        assert!(tree.tracked_child((tree.root(), name("a")), &proof).is_none());
        assert_eq!(tree.root().tracked_children(), 0);
    }

    #[test]
    fn releasing_a_deleted_node_leaves_its_successor_tracked() {
        let tree = Tree::new();
        let proof = tree.shared();
        let old = tree.child((tree.root(), name("a")), &proof);
        tree.removed((tree.root(), name("a")), &tree.root().write(&proof));
        let new = tree.child((tree.root(), name("a")), &proof);
        drop(old);
        let found = tree.tracked_child((tree.root(), name("a")), &proof).expect("still tracked");
        assert!(Arc::ptr_eq(&new, &found));
    }

    #[test]
    fn a_removed_directory_takes_what_is_below_it_along() {
        let tree = Tree::new();
        let proof = tree.shared();
        let dir = tree.child((tree.root(), name("d")), &proof);
        let file = tree.child((&dir, name("f")), &proof);
        tree.removed((tree.root(), name("d")), &tree.root().write(&proof));
        assert!(dir.is_deleted() && file.is_deleted());
    }

    #[test]
    fn a_renamed_node_is_found_at_its_new_name_and_what_it_replaced_is_deleted() {
        let tree = Tree::new();
        let (dir, file, target) = {
            let proof = tree.shared();
            let dir = tree.child((tree.root(), name("d")), &proof);
            let target = tree.child((&dir, name("t")), &proof);
            (dir, tree.child((tree.root(), name("f")), &proof), target)
        };
        let proof = tree.exclusive();
        tree.renamed((tree.root(), name("f")), (&dir, name("t")), Collision::Replace, &proof);
        assert!(target.is_deleted() && !file.is_deleted());
        assert!(tree.tracked_child((tree.root(), name("f")), &proof).is_none());
        let found = tree.tracked_child((&dir, name("t")), &proof).expect("moved");
        assert!(Arc::ptr_eq(&file, &found));
    }

    #[test]
    fn exchanged_nodes_swap_places_and_both_live() {
        let tree = Tree::new();
        let (a, b) = {
            let proof = tree.shared();
            (tree.child((tree.root(), name("a")), &proof), tree.child((tree.root(), name("b")), &proof))
        };
        let proof = tree.exclusive();
        tree.renamed((tree.root(), name("a")), (tree.root(), name("b")), Collision::Exchange, &proof);
        let at_a = tree.tracked_child((tree.root(), name("a")), &proof).expect("tracked");
        let at_b = tree.tracked_child((tree.root(), name("b")), &proof).expect("tracked");
        assert!(Arc::ptr_eq(&at_a, &b) && Arc::ptr_eq(&at_b, &a));
        assert!(!a.is_deleted() && !b.is_deleted());
    }

    #[test]
    fn a_directory_moved_below_itself_behind_our_back_makes_no_cycle() {
        let tree = Tree::new();
        let (outer, inner) = {
            let proof = tree.shared();
            let outer = tree.child((tree.root(), name("outer")), &proof);
            let inner = tree.child((&outer, name("inner")), &proof);
            (outer, inner)
        };
        let proof = tree.exclusive();
        tree.renamed((tree.root(), name("outer")), (&inner, name("x")), Collision::Replace, &proof);
        assert!(outer.is_deleted());
        drop(proof);
        let weak = (Arc::downgrade(&outer), Arc::downgrade(&inner));
        drop((outer, inner));
        assert!(weak.0.upgrade().is_none() && weak.1.upgrade().is_none());
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_directories_is_released_without_recursion() {
        let tree = Tree::new();
        let proof = tree.shared();
        let mut deepest = Arc::clone(tree.root());
        for _ in 0..100_000 {
            deepest = tree.child((&deepest, name("d")), &proof);
        }
        drop(deepest);
        assert_eq!(tree.root().tracked_children(), 0);
    }
}
