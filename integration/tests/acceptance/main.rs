//! The sentences of the gofer's contract with `runsc`, most of them without a sandbox. Each runs for every
//! generation, on the binary under test or, with `GOFER_UNDER_TEST=stock`, on the gofer of the `runsc` that is there.

mod birth;
mod command_line;
mod confinement;
mod ending;
mod forbidden;
#[allow(dead_code, reason = "another test uses the rest")]
#[path = "../known_faults/fuse.rs"]
mod fuse;
mod globals;
mod hooks;
mod kinds;
mod leftovers;
mod list;
mod logs;
mod loud;
mod mountinfo;
mod mounts;
mod options;
mod places;
mod policy;
mod propagation;
mod races;
mod refusals;
mod robust;
mod rpc;
mod runtime;
mod shakes;
mod subject;
mod through_runsc;
mod user_namespaces;
