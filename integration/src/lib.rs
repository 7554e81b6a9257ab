//! Tests that drive the built gofer: raw, hostile and honest clients, a virtual machine.

pub mod ask;
pub mod child;
pub mod listening;
pub mod mounts;
pub mod process;
pub mod raw;
pub mod requests;
pub mod say;
pub mod served;
pub mod specimen;
pub mod trial;
pub mod vm;

pub use ask::{Ask, Exchange};
pub use listening::Listening;
pub use process::Gofer;
pub use raw::{Answer, Raw};
pub use served::Served;
pub use trial::{Trial, over_both, over_both_unprivileged};
