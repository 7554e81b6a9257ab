//! The sentences of the gofer's contract with `runsc` that can be shown without a sandbox. Each runs for every
//! generation, on the binary under test or, with `GOFER_UNDER_TEST=stock`, on the gofer of the `runsc` that is there.

mod birth;
mod confinement;
mod ending;
#[allow(dead_code, reason = "another test uses the rest")]
#[path = "../known_faults/fuse.rs"]
mod fuse;
mod hooks;
mod kinds;
mod leftovers;
mod list;
mod logs;
mod mounts;
mod policy;
mod robust;
mod rpc;
mod runtime;
mod shakes;
mod subject;
mod through_runsc;
