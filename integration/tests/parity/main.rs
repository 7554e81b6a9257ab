//! Sandboxes behave the same whoever serves their files: each scenario on stock, then on ours, of every generation.
//!
//! `PARITY_ARMS=stock` leaves ours out, to try scenarios by themselves.

mod arms;
mod cycles;
mod files;
mod identities;
mod lifecycle;
mod mounts;
