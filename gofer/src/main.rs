//! The `gofer` command.
fn main() {}
