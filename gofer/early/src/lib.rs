//! What runs before libc: decide who this process is, and in the usual case become `runsc`.
//!
//! The kernel starts the combined file at `shim_start`. If `runsc` asked for its gofer, control falls through to libc's
//! `_start` and an ordinary program runs. Otherwise the process is handed to the payload, an unmodified `runsc` that is
//! part of the same file, as if the kernel had executed that instead.
//!
//! # Rules for this crate
//!
//! Relocations have not been applied, there is no thread-local storage, and the `memcpy` family of a static glibc are
//! indirect functions that nobody has resolved yet. Hence:
//!
//! * no call leaves the crate: no libc, no formatting, no slice indexing that could fail (a bounds check calls core's
//!   panic code), no copy so large that the compiler turns it into `memcpy`;
//! * no address is read from memory: nothing static that holds a pointer, no access through the global offset table;
//! * nothing is written outside the stack before the decision, so that libc later starts from clean data.
//!
//! `integration/early.sh` enforces the first two on the compiled crate, in each profile.
//!
//! The entry point, the system calls and the hand-over of registers are written for x86-64 Linux. Elsewhere there is
//! nothing but the records, and no program has a payload.

#![no_std]
#![no_builtins]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "reads of one mapped record, under one argument")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "64-bit words")]

pub mod elf;
mod options;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod entry;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod exec;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod payload;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod syscall;

pub use options::{Mode, OnUnknown, Options, PAYLOAD_MARK};

/// What the file says that this process runs from; none for the bare binary, which has no payload.
#[must_use]
pub fn options() -> Option<Options> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: only `become_payload` unmaps our header, and it does not come back.
    return unsafe { payload::Payload::find() }.map(|payload| payload.options);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    return None;
}

/// Gives the payload's part of the address space back: a gofer has no use for it.
pub fn unmap_payload() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: only `become_payload` unmaps our header, and it does not come back.
    if let Some(payload) = unsafe { payload::Payload::find() } {
        // SAFETY: nothing in this process refers to the payload but by the number just read. A second call finds the
        // range free, or in use by a newer mapping only if another thread mapped something between: hence `main` calls
        // this once, first of all.
        unsafe { syscall::unmap(payload.address, elf::page_ceil(payload.len)) };
    }
}
