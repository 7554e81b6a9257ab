//! How messages travel: over a socket, or through shared memory.

pub mod channel;
pub mod fd_socket;
pub mod flipcall;
pub mod memory;
pub mod window;
