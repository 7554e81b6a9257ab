//! Known defects of the reference server, each by its number, and the right behaviour in its place.

mod descriptors;
mod identity;
mod listing;
mod positions;
mod sockets;
mod transport;
mod waiting;
