//! What a client's numbers stand for: control, open and bound-socket descriptors.

mod control;
mod open;
mod socket;
mod table;

pub(crate) use control::ControlFd;
pub(crate) use open::OpenFd;
pub(crate) use socket::BoundSocket;
pub(crate) use table::FdTable;

use std::sync::Arc;

/// What one number stands for. The kind never changes.
#[derive(Clone, Debug)]
pub(crate) enum Fd {
    /// A position in the tree.
    Control(Arc<ControlFd>),
    /// An open file.
    Open(Arc<OpenFd>),
    /// A bound socket.
    Bound(Arc<BoundSocket>),
}
