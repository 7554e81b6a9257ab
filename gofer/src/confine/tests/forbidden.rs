//! What a server that was taken over would like to do.

use std::ffi::c_long;

use super::super::Filter;
use super::{killed, scenario, survived};

/// Calls that end the process: a name for each, its number, its arguments.
const CALLS: [(&str, c_long, [c_long; 6]); 27] = [
    ("execve", libc::SYS_execve, [0; 6]),
    ("execveat", libc::SYS_execveat, [-1, 0, 0, 0, 0, 0]),
    ("a process", libc::SYS_clone, [libc::SIGCHLD as c_long, 0, 0, 0, 0, 0]),
    ("a thread in a name space of its own", libc::SYS_clone, [0x3d_0f00 | 0x1000_0000, 0, 0, 0, 0, 0]),
    ("an internet socket", libc::SYS_socket, [2, 1, 0, 0, 0, 0]),
    ("a Unix socket that policy forbids", libc::SYS_socket, [1, 1 | 0o2_004_000, 0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0; 6]),
    ("umount", libc::SYS_umount2, [0; 6]),
    ("pivot_root", libc::SYS_pivot_root, [0; 6]),
    ("chroot", libc::SYS_chroot, [0; 6]),
    ("setns", libc::SYS_setns, [-1, 0, 0, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0; 6]),
    ("capset", libc::SYS_capset, [0; 6]),
    ("ptrace", libc::SYS_ptrace, [0; 6]),
    ("bpf", libc::SYS_bpf, [-1, 0, 0, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0; 6]),
    ("keyctl", libc::SYS_keyctl, [-1, 0, 0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0; 6]),
    ("userfaultfd", libc::SYS_userfaultfd, [-1, 0, 0, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [0; 6]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [-1, 0, 0, 0, 0, 0]),
    // Signal 0 harms nobody, should the filter have a hole.
    ("a signal to another process", libc::SYS_tgkill, [1, 1, 0, 0, 0, 0]),
    ("kill", libc::SYS_kill, [1, 0, 0, 0, 0, 0]),
    ("executable memory", libc::SYS_mmap, [0, 4096, 5, 0x22, -1, 0]),
    ("memory made executable", libc::SYS_mprotect, [0, 4096, 4, 0, 0, 0]),
    ("another user", libc::SYS_setresuid, [-1, -1, -1, 0, 0, 0]),
    ("the owner of signals from files", libc::SYS_fcntl, [0, 8, 1, 0, 0, 0]),
];

/// The scenario: makes one call, on a thread that was there before the filter.
pub(super) fn make(filter: &Filter, wanted: &str) {
    let (_, number, arguments) = *CALLS.iter().find(|(name, ..)| *name == wanted).expect("a known call");
    let (sealed, is_sealed) = std::sync::mpsc::channel();
    let bystander = std::thread::spawn(move || {
        is_sealed.recv().expect("the other thread lives");
        call(number, arguments);
    });
    filter.seal().expect("a filter");
    sealed.send(()).expect("the thread waits");
    bystander.join().expect("it came back");
}

#[allow(unsafe_code, reason = "no library has a safe form of what no program should do")]
fn call(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) {
    // SAFETY: each of the calls above fails without effect, or makes something new that nothing refers to, since its
    // pointers are null and its descriptors are none.
    unsafe { libc::syscall(number, a, b, c, d, e, f) };
}

#[test]
fn what_serving_has_no_use_for_ends_the_process() {
    for (name, ..) in CALLS {
        let output = scenario(name, "none").output().expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(killed(output.status), "{name}: {:?} {said}", output.status);
    }
}

#[test]
fn ids_are_taken_on_only_where_the_grant_says_so() {
    let run = |policy| scenario("another user", policy).output().expect("run").status;
    assert!(killed(run("all")));
    // Not even then with other than the effective ids.
    assert!(killed(run("identities")));
}

#[test]
fn sockets_are_let_through_only_where_policy_says_so() {
    let run = |policy| scenario("a Unix socket that policy forbids", policy).output().expect("run").status;
    assert!(survived(run("all")));
    assert!(killed(run("none")));
}
