//! Benchmarks of the gofer.
