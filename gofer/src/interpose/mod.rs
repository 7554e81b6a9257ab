//! The combined file: this program, padding, and a `runsc` byte for byte, which is what every process becomes that is
//! not to be a gofer.
//!
//! ```text
//! | this program | zeros, record, length, magic | runsc |
//!   one PT_NOTE is a read-only PT_LOAD over ------^-----^
//! ```
//!
//! `gofer_early` is the other half: it finds the payload by the mark in that program header, and relies on what
//! [`check`] has seen to.
//!
//! * `elf`: headers out of bytes
//! * `check`: whether a `runsc` can be a payload
//! * `combine`: the file as bytes, and the parts of one
//! * `record`: what the installer knew, for `gofer status`
//! * `release`: which release of `runsc` a file is
//! * `publish`: files appear whole or not at all
//! * `sha256`

mod check;
mod combine;
mod elf;
mod publish;
mod record;
mod release;
mod sha256;

pub(crate) use check::check;
pub(crate) use combine::{Parts, combine, is_combined};
pub(crate) use publish::Draft;
pub(crate) use record::Record;
pub(crate) use release::{BuildInfo, Release};
pub(crate) use sha256::sha256;
