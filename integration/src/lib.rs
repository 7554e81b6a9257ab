//! Tests that drive the built gofer: raw, hostile and honest clients, a virtual machine.

pub mod child;
pub mod listening;
pub mod mounts;
pub mod process;
pub mod raw;
pub mod requests;
pub mod say;
pub mod served;
pub mod vm;

pub use listening::Listening;
pub use process::Gofer;
pub use raw::{Answer, Raw};
pub use served::Served;
