//! Tests that drive the built gofer: raw, hostile and honest clients, a virtual machine.

pub mod actor;
pub mod ask;
pub mod child;
pub mod client;
pub mod hostile;
pub mod lease;
pub mod listening;
pub mod mounts;
pub mod outside;
pub mod process;
pub mod random;
pub mod raw;
pub mod requests;
pub mod say;
pub mod served;
pub mod specimen;
pub mod trial;
pub mod vm;

pub use actor::Actor;
pub use ask::{Ask, Exchange};
pub use client::{Client, RawChannel, Requests, each_way};
pub use hostile::HostileChannel;
pub use lease::Lease;
pub use listening::Listening;
pub use outside::Outside;
pub use process::{Gofer, eventually};
pub use random::Random;
pub use raw::{Answer, Raw};
pub use served::Served;
pub use trial::{Trial, over_both, over_both_unprivileged};
