//! What the benchmarks share: pinning, interleaving, and statistics that people can check.

pub mod interleave;
pub mod pin;
pub mod stats;
