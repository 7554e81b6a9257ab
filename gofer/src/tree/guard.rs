//! Proofs that a lock is held, so that a precondition is an argument.

use std::sync::{Arc, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use super::Node;

/// Proof that no position changes meanwhile.
pub(crate) trait Positions {}

/// No rename runs on the tree while this lives.
#[derive(Debug)]
pub(crate) struct RenameShared<'t>(#[allow(dead_code, reason = "held for its drop")] RwLockReadGuard<'t, ()>);

/// Nothing that depends on a position runs on the tree while this lives.
#[derive(Debug)]
pub(crate) struct RenameExclusive<'t>(#[allow(dead_code, reason = "held for its drop")] RwLockWriteGuard<'t, ()>);

impl<'t> RenameShared<'t> {
    pub(super) fn new(guard: RwLockReadGuard<'t, ()>) -> Self {
        Self(guard)
    }
}

impl<'t> RenameExclusive<'t> {
    pub(super) fn new(guard: RwLockWriteGuard<'t, ()>) -> Self {
        Self(guard)
    }
}

impl Positions for RenameShared<'_> {}
impl Positions for RenameExclusive<'_> {}

/// No one changes the node while this lives.
#[derive(Debug)]
pub(crate) struct NodeRead<'n>(#[allow(dead_code, reason = "held for its drop")] RwLockReadGuard<'n, ()>);

/// No one else uses or changes the node while this lives.
#[derive(Debug)]
pub(crate) struct NodeWrite<'n>(#[allow(dead_code, reason = "held for its drop")] RwLockWriteGuard<'n, ()>);

impl Node {
    /// Excludes [`Node::write`]. Asking for the rename proof makes "rename before node" the only order that compiles.
    pub(crate) fn read<'n>(self: &'n Arc<Self>, _: &'n RenameShared<'_>) -> NodeRead<'n> {
        NodeRead(self.operation.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Node::read`], for an operation on what a descriptor holds, wherever it is: it depends on no position, so
    /// renames need not wait for it. No other lock of the tree is taken while it lives.
    pub(crate) fn read_alone(&self) -> NodeRead<'_> {
        NodeRead(self.operation.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Node::write`], under the terms of [`Node::read_alone`].
    pub(crate) fn write_alone(&self) -> NodeWrite<'_> {
        NodeWrite(self.operation.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Excludes every other operation on this node.
    pub(crate) fn write<'n>(self: &'n Arc<Self>, _: &'n RenameShared<'_>) -> NodeWrite<'n> {
        NodeWrite(self.operation.write().unwrap_or_else(PoisonError::into_inner))
    }
}
