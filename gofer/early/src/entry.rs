//! The first instructions of the process, and the decision they make.

use core::arch::naked_asm;
use core::ptr::read_volatile;

use crate::exec::become_payload;
use crate::options::Mode;
use crate::payload::Payload;

/// ELF entry point. Comes back only if this process is to be our own program; then libc starts as usual.
///
/// The kernel aligns the stack to 16 bytes, so one push plus eight bytes keeps the alignment that the ABI
/// wants at a call. `rdx` is an argument of `_start`.
///
/// # Safety
///
/// Only the kernel comes here, with the stack of a new program.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn shim_start() -> ! {
    naked_asm!(
        "mov rdi, rsp",
        "push rdx",
        "sub rsp, 8",
        "call {decide}",
        "add rsp, 8",
        "pop rdx",
        "jmp _start",
        decide = sym decide,
    )
}

/// Becomes the payload unless there is none, or `runsc` wants its gofer and gets this one.
///
/// # Safety
///
/// `stack` is the stack pointer as the kernel left it, and nothing has run in this process yet.
unsafe extern "C" fn decide(stack: *mut u64) {
    // SAFETY: our own program headers are mapped; the kernel has just loaded us by them.
    let Some(payload) = (unsafe { Payload::find() }) else {
        return;
    };
    // SAFETY: argv follows argc on the kernel's initial stack.
    let argv = unsafe { stack.add(1) }.cast::<*const u8>();
    // Capped or not, the payload's own gofer needs its environment changed by a program that has a libc.
    let stock = matches!(payload.options.mode, Mode::Stock);
    // SAFETY: as above; the kernel terminates argv with a null pointer and each argument with a zero byte.
    if stock || !unsafe { wants_gofer(argv) } {
        // SAFETY: `stack` is untouched, and no libc state exists that could go stale.
        unsafe { become_payload(stack, payload) }
    }
}

/// Whether this is how `runsc` starts a gofer: `argv[0]` is the name it gives that process, and the first argument that
/// is not a flag is the sub-command `gofer`. Values of global flags are never separate arguments there, so the first
/// word without a dash is the sub-command.
///
/// No `runsc` starts a gofer with a flag of [`continues_stock`]: the payload's own gofer, which got its turn by another
/// `argv[0]`, continues itself so.
///
/// # Safety
///
/// `argv` points to a null-terminated array of pointers to zero-terminated strings.
unsafe fn wants_gofer(argv: *const *const u8) -> bool {
    // SAFETY: the array has at least its terminator.
    let name = unsafe { *argv };
    // SAFETY: a non-null entry is a zero-terminated string.
    if name.is_null() || !unsafe { begins(name, b"runsc-gofer\0") } {
        return false;
    }
    let mut gofer = false;
    let mut next = argv;
    loop {
        // SAFETY: `next` is an entry before the terminator, so the one after it exists.
        next = unsafe { next.add(1) };
        // SAFETY: as above.
        let argument = unsafe { *next };
        if argument.is_null() {
            return gofer;
        }
        // SAFETY: a non-null entry is a zero-terminated string.
        if gofer && unsafe { continues_stock(argument) } {
            return false;
        }
        // SAFETY: a non-null entry is a zero-terminated string, so it has a first byte.
        if !gofer && unsafe { *argument } != b'-' {
            // SAFETY: as above.
            if !unsafe { begins(argument, b"gofer\0") } {
                return false;
            }
            gofer = true;
        }
    }
}

/// Whether the argument is one that only the original gofer gives itself.
///
/// # Safety
///
/// `argument` is zero-terminated.
unsafe fn continues_stock(argument: *const u8) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        begins(argument, b"--apply-caps=false\0")
            || begins(argument, b"--setup-root=false\0")
            || begins(argument, b"--proc-mount-sync-fd")
    }
}

/// Whether the zero-terminated `string` begins with the bytes of `word`, whose only zero, if any, is the last. Volatile
/// reads keep the compiler from recognising `strlen` or `memcmp` in the loop.
///
/// # Safety
///
/// `string` is zero-terminated.
unsafe fn begins(string: *const u8, word: &[u8]) -> bool {
    let mut at = string;
    for &expected in word {
        // SAFETY: every earlier byte matched a byte of `word` that is not its last, hence not zero: the string goes on.
        if unsafe { read_volatile(at) } != expected {
            return false;
        }
        // SAFETY: the byte just read is inside the string, so its end or the next byte may be pointed at.
        at = unsafe { at.add(1) };
    }
    true
}
