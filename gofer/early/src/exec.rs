//! Userland exec: the process becomes the payload, without an `execve` and without a file name.
//!
//! PID, descriptors, namespaces, credentials, the executable behind `/proc/self/exe` and the initial stack
//! stay as the kernel made them; only the image changes.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr::{read_volatile, write_volatile};

use crate::elf::{FileHeader, PF_R, PF_W, PF_X, PT_LOAD, SEGMENT_SIZE, Segment, page_ceil, page_floor};
use crate::options::Options;
use crate::payload::{Payload, image_base};
use crate::syscall::{PROT_EXEC, PROT_READ, PROT_WRITE, die, move_mapping, protect, reserve, unmap};

/// Room for the payload's program headers on our stack. Go executables have six or seven.
const MAX_SEGMENTS: usize = 32;

// Entries of the auxiliary vector that describe the image.
const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;

/// Replaces this program by the payload.
///
/// # Safety
///
/// * `stack` is the stack pointer as the kernel left it: argc, argv, envp and the auxiliary vector follow.
/// * The process has one thread, and nothing registered with the kernel refers to our memory: no signal
///   handler, no restartable sequence, no robust list. Before libc has started this holds by itself.
pub(crate) unsafe fn become_payload(stack: *mut u64, payload: Payload) -> ! {
    let header = payload.address as *const FileHeader;
    // SAFETY: the payload begins with its file header.
    let (entry, phoff) = unsafe { ((*header).entry, (*header).phoff) };
    // SAFETY: as above.
    let (count, size) = unsafe { (usize::from((*header).phnum), (*header).phentsize) };
    if count > MAX_SEGMENTS || u64::from(size) != SEGMENT_SIZE {
        die!("the payload's program headers are not as expected");
    }

    // The first segment, with the table in it, is about to move: work on a copy.
    let mut copy: [MaybeUninit<Segment>; MAX_SEGMENTS] = [const { MaybeUninit::uninit() }; MAX_SEGMENTS];
    let segments = copy.as_mut_ptr().cast::<Segment>();
    let (mut lowest, mut highest, mut table_address) = (u64::MAX, 0, 0);
    for i in 0..count {
        let source = (payload.address + phoff) as *const Segment;
        // SAFETY: the table has `count` entries, all inside the mapped payload.
        let segment = unsafe { read_volatile(source.add(i)) };
        // SAFETY: `i < count <= MAX_SEGMENTS`.
        unsafe { write_volatile(segments.add(i), segment) };
        if segment.kind != PT_LOAD {
            continue;
        }
        lowest = lowest.min(segment.vaddr);
        highest = highest.max(segment.vaddr + segment.memsz);
        if segment.offset <= phoff && phoff < segment.offset + segment.filesz {
            table_address = segment.vaddr + phoff - segment.offset;
        }
    }

    // Claim the whole range at once, so that nothing of ours or of the kernel's can be in the way later.
    let (lowest, highest) = (page_floor(lowest), page_ceil(highest));
    if lowest >= highest || !reserve(lowest, highest - lowest) {
        die!("the address range of the payload is not free");
    }
    let mut filled = lowest;
    for i in 0..count {
        // SAFETY: the first `count` entries were written above.
        let segment = unsafe { &*segments.add(i) };
        if segment.kind == PT_LOAD && segment.memsz > 0 {
            // SAFETY: the range was reserved, and everything below `filled` is done.
            filled = unsafe { place(segment, payload, filled) };
        }
    }
    // What no segment claimed, for instance section headers at the end of the file.
    // SAFETY: the headers were copied, and moved pages are no longer in this range.
    unsafe { unmap(payload.address, page_ceil(payload.len)) };

    // SAFETY: `stack` is the kernel's, by the caller's promise.
    unsafe { describe_image(stack, table_address, count as u64, entry) };
    // SAFETY: from here on only code, the stack and registers are used.
    unsafe { drop_own_data() };
    // SAFETY: the payload is in place.
    unsafe { enter(entry, stack) }
}

/// Puts one segment where it wants to be and returns the end of what is now in place.
///
/// # Safety
///
/// The segment's range is reserved and unused, from `filled` upwards.
unsafe fn place(segment: &Segment, payload: Payload, filled: u64) -> u64 {
    let start = page_floor(segment.vaddr);
    let file_end = segment.vaddr + segment.filesz;
    let end = page_ceil(segment.vaddr + segment.memsz);
    let offset = page_floor(segment.offset);
    if start < filled {
        die!("the payload's segments are out of order");
    }
    if start > filled {
        // A hole in the image stays a hole: Go relies on faults there no less than C does.
        // SAFETY: reserved and unused.
        unsafe { unmap(filled, start - filled) };
    }

    let protection = protection(segment.flags);
    let mut backed = start;
    if segment.filesz > 0 {
        backed = page_ceil(file_end);
        if offset + (file_end - start) > payload.len {
            die!("a segment reaches beyond the payload");
        }
        // SAFETY: source pages belong to this segment alone (checked when the file was made); the target
        // is reserved.
        let moved = unsafe { move_mapping(payload.address + offset, backed - start, start) };
        // SAFETY: nothing runs from or uses these pages yet.
        if !moved || !unsafe { protect(start, backed - start, protection) } {
            die!("a segment of the payload cannot be mapped");
        }
        if protection & PROT_WRITE != 0 {
            // The last file page goes on with unrelated bytes of the file where zeros belong.
            // SAFETY: the tail lies in the page just mapped writable.
            unsafe { zero(file_end, backed - file_end) };
        }
    }
    if end > backed {
        // The reservation is anonymous memory: with the right protection it is the zero-initialised part.
        // SAFETY: reserved and unused.
        if !unsafe { protect(backed, end - backed, protection) } {
            die!("the zero-initialised data of the payload cannot be mapped");
        }
    }
    end
}

fn protection(flags: u32) -> u64 {
    let bit = |flag: u32, protection: u64| if flags & flag != 0 { protection } else { 0 };
    bit(PF_R, PROT_READ) | bit(PF_W, PROT_WRITE) | bit(PF_X, PROT_EXEC)
}

/// A `memset` that is not a call.
///
/// # Safety
///
/// The range is writable and nothing live is in it.
unsafe fn zero(address: u64, len: u64) {
    // SAFETY: by the caller's promise; the direction flag is clear by the ABI.
    unsafe {
        asm!(
            "rep stosb",
            inout("rdi") address => _, inout("rcx") len => _, in("al") 0_u8,
            options(nostack, preserves_flags),
        );
    }
}

/// Makes the auxiliary vector describe the payload. All else on the kernel's stack is right as it is:
/// arguments, environment, random bytes, file name, vDSO address, page size, credentials.
///
/// # Safety
///
/// `stack` is the stack as the kernel left it.
unsafe fn describe_image(stack: *mut u64, table_address: u64, count: u64, entry: u64) {
    // SAFETY: argc counts the arguments; a null pointer ends them.
    let mut word = unsafe { stack.add(1 + *stack as usize + 1) };
    // SAFETY: a null pointer ends the environment.
    while unsafe { *word } != 0 {
        // SAFETY: not the terminator yet.
        word = unsafe { word.add(1) };
    }
    // SAFETY: the auxiliary vector follows the environment's terminator.
    word = unsafe { word.add(1) };
    loop {
        // SAFETY: pairs of words up to the one whose key is AT_NULL.
        let key = unsafe { *word };
        let value = match key {
            AT_NULL => return,
            AT_PHDR => Some(table_address),
            AT_PHENT => Some(SEGMENT_SIZE),
            AT_PHNUM => Some(count),
            AT_BASE => Some(0),
            AT_ENTRY => Some(entry),
            _ => None,
        };
        if let Some(value) = value {
            // SAFETY: the second word of the pair.
            unsafe { *word.add(1) = value };
        }
        // SAFETY: not the last pair.
        word = unsafe { word.add(2) };
    }
}

/// Unmaps our own segments, except the code that is running. From last to first, because the table that
/// names them is in the first.
///
/// # Safety
///
/// Nothing outside the stack and the code is used afterwards.
unsafe fn drop_own_data() {
    let base = image_base();
    let header = base as *const FileHeader;
    // SAFETY: the first segment is still mapped.
    let (table, count) = unsafe { (base + (*header).phoff, (*header).phnum) };
    for i in (0..u64::from(count)).rev() {
        let segment = (table + i * SEGMENT_SIZE) as *const Segment;
        // SAFETY: the table is part of the first segment, which goes last.
        let (kind, flags, mark) = unsafe { ((*segment).kind, (*segment).flags, (*segment).paddr) };
        // SAFETY: as above.
        let (vaddr, memsz) = unsafe { ((*segment).vaddr, (*segment).memsz) };
        if kind == PT_LOAD && flags & PF_X == 0 && Options::of(mark).is_none() {
            let start = page_floor(base + vaddr);
            // SAFETY: data that nobody uses any more.
            unsafe { unmap(start, page_ceil(base + vaddr + memsz) - start) };
            if vaddr == 0 {
                return;
            }
        }
    }
}

/// Starts the payload with the registers that the kernel gives a new program: all zero but the stack
/// pointer. In particular `rdx` is zero, or libc-like start code would call it at exit.
///
/// # Safety
///
/// `entry` is the payload's entry point, and the payload is mapped.
unsafe fn enter(entry: u64, stack: *mut u64) -> ! {
    // SAFETY: by the caller's promise. Our frames are gone after this; nothing returns to them.
    unsafe {
        asm!(
            "mov rsp, {stack}",
            "mov rcx, {entry}",
            "xor eax, eax",
            "xor ebx, ebx",
            "xor edx, edx",
            "xor esi, esi",
            "xor edi, edi",
            "xor ebp, ebp",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "xor r10d, r10d",
            "xor r11d, r11d",
            "xor r12d, r12d",
            "xor r13d, r13d",
            "xor r14d, r14d",
            "xor r15d, r15d",
            "jmp rcx",
            stack = in(reg) stack,
            entry = in(reg) entry,
            options(noreturn),
        )
    }
}
