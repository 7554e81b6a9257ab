//! Finding the payload: our own program headers say where the kernel mapped it.

use core::arch::asm;

use crate::elf::{FileHeader, PT_LOAD, Segment};
use crate::options::Options;
use crate::syscall::die;

/// The payload as the kernel mapped it: read-only, page-aligned, byte for byte the runsc file.
#[derive(Clone, Copy)]
pub(crate) struct Payload {
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) options: Options,
}

impl Payload {
    /// The payload of this executable, if it has one.
    ///
    /// # Safety
    ///
    /// The page with our ELF header is still mapped (it is, until [`crate::exec::become_payload`] runs).
    pub(crate) unsafe fn find() -> Option<Self> {
        let base = image_base();
        let header = base as *const FileHeader;
        // SAFETY: the header is mapped, by the caller's promise.
        let (phoff, count) = unsafe { ((*header).phoff, (*header).phnum) };
        let mut segment = (base + phoff) as *const Segment;
        for _ in 0..count {
            // SAFETY: the table lies in the first page, together with the header.
            let (kind, mark, vaddr, len) =
                unsafe { ((*segment).kind, (*segment).paddr, (*segment).vaddr, (*segment).filesz) };
            if kind == PT_LOAD
                && let Some(options) = Options::of(mark)
            {
                if len == 0 {
                    die!("the payload is missing; was this file stripped?");
                }
                return Some(Self { address: base + vaddr, len, options });
            }
            // SAFETY: `count` entries exist, and one past the last is a valid pointer to form.
            segment = unsafe { segment.add(1) };
        }
        None
    }
}

/// Where the kernel put us. Our first segment has virtual address zero, so this is also the load bias.
///
/// The linker's symbol is taken relative to the instruction pointer by hand: the compiler would go through
/// the global offset table, whose entry is not relocated yet.
pub(crate) fn image_base() -> u64 {
    let base: u64;
    // SAFETY: computes an address; touches neither memory nor flags.
    unsafe { asm!("lea {}, [rip + __ehdr_start]", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}
