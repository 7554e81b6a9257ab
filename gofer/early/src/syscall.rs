//! Raw system calls, and the only way to fail.

use core::arch::asm;

pub(crate) const PROT_READ: u64 = 1;
pub(crate) const PROT_WRITE: u64 = 2;
pub(crate) const PROT_EXEC: u64 = 4;

const SYS_WRITE: u64 = 1;
const SYS_MMAP: u64 = 9;
const SYS_MPROTECT: u64 = 10;
const SYS_MUNMAP: u64 = 11;
const SYS_MREMAP: u64 = 25;
const SYS_EXIT_GROUP: u64 = 231;

const MAP_PRIVATE: u64 = 0x02;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;

/// Reserves exactly `[address, address + len)`, inaccessible, or fails. Kernels before 4.17 do not know
/// the flag and treat the address as a hint; the comparison catches what they then return.
pub(crate) fn reserve(address: u64, len: u64) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    // SAFETY: the new mapping replaces nothing.
    let got = unsafe { syscall(SYS_MMAP, address, len, 0, flags, u64::MAX, 0) };
    got as u64 == address
}

/// Moves the mapping of `len` bytes at `from` over whatever is at `to`.
///
/// # Safety
///
/// Nothing in use lies in either range.
pub(crate) unsafe fn move_mapping(from: u64, len: u64, to: u64) -> bool {
    // SAFETY: by the caller's promise.
    let got = unsafe { syscall(SYS_MREMAP, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to, 0) };
    got as u64 == to
}

/// # Safety
///
/// Nothing in use needs the present protection of the range.
pub(crate) unsafe fn protect(address: u64, len: u64, protection: u64) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { syscall(SYS_MPROTECT, address, len, protection, 0, 0, 0) == 0 }
}

/// Failure is harmless everywhere this is used, so it is not reported.
///
/// # Safety
///
/// Nothing in use lies in the range.
pub(crate) unsafe fn unmap(address: u64, len: u64) {
    // SAFETY: by the caller's promise.
    unsafe { syscall(SYS_MUNMAP, address, len, 0, 0, 0, 0) };
}

/// Ends the process with a message on standard error and status 127.
macro_rules! die {
    ($reason:literal) => {
        $crate::syscall::exit_with(concat!("gofer: ", $reason, "\n"))
    };
}
pub(crate) use die;

#[cold]
pub(crate) fn exit_with(message: &str) -> ! {
    // SAFETY: reads the message; a failing write changes nothing.
    unsafe { syscall(SYS_WRITE, 2, message.as_ptr() as u64, message.len() as u64, 0, 0, 0) };
    loop {
        // SAFETY: does not return.
        unsafe { syscall(SYS_EXIT_GROUP, 127, 0, 0, 0, 0, 0) };
    }
}

/// # Safety
///
/// Whatever the call does to the address space must be sound.
#[inline(always)]
unsafe fn syscall(number: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    let result: i64;
    // SAFETY: the kernel's calling convention; it clobbers rcx and r11 and leaves the stack alone.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as i64 => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}
