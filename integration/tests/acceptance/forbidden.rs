//! What the serving process may not do, shown on the process itself: a debugger has it make the call.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, reason = "no crate has a safe form of ptrace(2)")]

use std::ffi::{c_long, c_uint, c_void};
use std::io;
use std::mem::MaybeUninit;

use gofer::launch::{Ended, Launched};
use gofer_integration::Ask;

use crate::subject::{clients, each};

/// 16.
#[test]
fn calling_execve_or_mount_or_making_an_internet_socket_kills_it() {
    const CALLS: [(&str, c_long, [u64; 2]); 3] = [
        ("execve", libc::SYS_execve, [0, 0]),
        ("socket", libc::SYS_socket, [2, 1]),
        ("mount", libc::SYS_mount, [0, 0]),
    ];
    each(|subject| {
        for (name, number, arguments) in CALLS {
            let mut gofer = subject.start(&subject.bundle());
            // Held: the gofer ends with its last client.
            let held = clients(&mut gofer);
            held[0].mount();
            make_it_call(&gofer, number, arguments);
            assert_eq!(gofer.wait().expect("an end"), Ended::Killed(libc::SIGSYS), "{:?} {name}", subject.generation);
        }
    });
}

/// The same way to a call that it may make: otherwise the test above would prove nothing.
#[test]
fn calling_what_it_may_call_does_not_kill_it() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        let held = clients(&mut gofer);
        held[0].mount();
        make_it_call(&gofer, libc::SYS_sched_yield, [0, 0]);
        held[0].mount();
        assert_eq!(gofer.ended().expect("alive"), None);
    });
}

/// Has the first thread, which waits in a system call, make another one instead.
fn make_it_call(gofer: &Launched, number: c_long, [first, second]: [u64; 2]) {
    let pid = libc::pid_t::try_from(gofer.pid()).expect("a number");
    trace(libc::PTRACE_SEIZE, pid, 0, 0);
    trace(libc::PTRACE_INTERRUPT, pid, 0, 0);
    let mut status = 0;
    // SAFETY: `status` has room for what the call writes.
    let stopped = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
    assert!(stopped == pid && libc::WIFSTOPPED(status), "{status:#x}");
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    trace(libc::PTRACE_GETREGS, pid, 0, registers.as_mut_ptr().expose_provenance());
    // SAFETY: the call has succeeded, and has written all of them.
    let mut registers = unsafe { registers.assume_init() };
    // The instruction that has brought it into the kernel is two bytes long.
    registers.rip -= 2;
    registers.rax = number.cast_unsigned();
    // Or the kernel would restart the call that it waits in.
    registers.orig_rax = u64::MAX;
    (registers.rdi, registers.rsi, registers.rdx) = (first, second, 0);
    trace(libc::PTRACE_SETREGS, pid, 0, (&raw const registers).expose_provenance());
    trace(libc::PTRACE_DETACH, pid, 0, 0);
}

fn trace(request: c_uint, pid: libc::pid_t, address: usize, data: usize) {
    let pointer = std::ptr::with_exposed_provenance_mut::<c_void>;
    // SAFETY: of the requests above two have `data` point to registers, and both get a pointer to such a structure that
    // lives on; the others take no pointer.
    let result = unsafe { libc::ptrace(request, pid, pointer(address), pointer(data)) };
    assert_eq!(result, 0, "ptrace request {request:#x}: {}", io::Error::last_os_error());
}
