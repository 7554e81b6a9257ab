//! Tests that drive the built gofer: raw, hostile and honest clients, a virtual machine.

pub mod vm;
