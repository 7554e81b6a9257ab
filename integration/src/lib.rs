//! Tests that drive the built gofer: raw, hostile and honest clients, a virtual machine.
//!
//! A test starts from [`Served`], a directory with a server and one client, or from [`Listening`], which takes many
//! clients. [`over_both`] runs it once over the socket and once over a channel. Requests are methods of [`Ask`] on
//! whatever carries them ([`Exchange`]); what no honest client sends goes through [`Raw`] and [`HostileChannel`].

pub mod actor;
pub mod ask;
pub mod child;
pub mod exchange;
pub mod footprint;
pub mod hostile;
pub mod lease;
pub mod listening;
pub mod mounts;
pub mod offer;
pub mod outside;
pub mod parts;
pub mod plant;
pub mod process;
pub mod random;
pub mod raw;
pub mod runsc;
pub mod sandbox;
pub mod say;
pub mod served;
pub mod specimen;
pub mod trial;
pub mod vm;
pub mod wait;

pub use actor::Actor;
pub use ask::{Ask, Entry};
pub use exchange::{Answer, Exchange};
pub use hostile::HostileChannel;
pub use lease::Lease;
pub use listening::Listening;
pub use offer::ChannelOffer;
pub use outside::Outside;
pub use parts::{change, encoded, new_in, string};
pub use plant::fifo;
pub use process::Gofer;
pub use random::Random;
pub use raw::Raw;
pub use served::Served;
pub use trial::{Trial, nothing, over_both, over_both_on, over_both_unprivileged};
pub use wait::eventually;
