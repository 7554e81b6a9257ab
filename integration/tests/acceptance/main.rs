//! The sentences of the gofer's contract with `runsc` that can be shown without a sandbox. Each runs for every
//! generation, on the binary under test or, with `GOFER_UNDER_TEST=stock`, on the gofer of the `runsc` that is there.

mod birth;
mod command_line;
mod confinement;
mod ending;
mod forbidden;
mod globals;
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
mod shakes;
mod subject;
mod user_namespaces;
