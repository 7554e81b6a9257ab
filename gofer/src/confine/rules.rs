//! Which system calls serving makes, with which arguments, and what for. Everything else is the end of the process.
//!
//! The list is the same with and without directfs: a client that works on the host's files itself still sends any
//! message, and each is served, not died of.

use std::iter::{Once, once};

use gofer::HostSockets;
use libc::{c_int, c_long};

use self::Arg::{Int, IntBits, Is};
use super::Grant;

/// A call, and the forms in which it is let through; none: any.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) call: i64,
    pub(super) forms: Vec<Vec<Arg>>,
}

/// What an argument has to be, by its index. `int` arguments are compared as the kernel takes them, without the upper
/// half of the register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// An `int` of this value.
    Int(u8, c_int),
    /// An `int` with no bits but these.
    IntBits(u8, c_int),
    /// A whole register of this value.
    Is(u8, u64),
    /// A whole register with the `required` bits, any of the `optional` ones, and no others.
    Bits { index: u8, required: u64, optional: u64 },
}

/// All rules for a process with this grant.
pub(super) fn of(grant: &Grant) -> Vec<Rule> {
    let mut rules = Vec::new();
    rules.extend(threads());
    rules.extend(memory());
    rules.extend(time_and_end());
    rules.extend(transports());
    rules.extend(finding());
    rules.extend(reading());
    rules.extend(changing());
    rules.extend(sockets(grant.host_sockets));
    if grant.identities {
        rules.extend(identities());
    }
    rules
}

fn any<const N: usize>(calls: [c_long; N]) -> impl Iterator<Item = Rule> {
    calls.into_iter().map(|call| Rule { call: number(call), forms: Vec::new() })
}

fn only<const N: usize>(call: c_long, forms: [&[Arg]; N]) -> Once<Rule> {
    once(Rule { call: number(call), forms: forms.into_iter().map(<[Arg]>::to_vec).collect() })
}

#[allow(clippy::useless_conversion, reason = "c_long is i64 here, and i32 elsewhere")]
fn number(call: c_long) -> i64 {
    call.into()
}

/// An argument that the kernel takes as `unsigned long`, from a constant that is none.
const fn wide(value: c_int) -> u64 {
    value.cast_unsigned() as u64
}

/// Threads come and go with connections, channels and connects under other ids. The C library starts them with exactly
/// these flags: a process or a name space takes others. Signals reach this process only, to get a thread out of a sleep
/// that its client arranged, and to abort.
fn threads() -> impl Iterator<Item = Rule> {
    const THREAD: c_int = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    const HOW: c_int = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    let futex = [libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET]
        .map(|operation| [Arg::Bits { index: 1, required: wide(operation), optional: wide(HOW) }]);
    let itself = rustix::process::getpid().as_raw_nonzero().get();
    only(libc::SYS_clone, [&[Is(0, wide(THREAD))]])
        // Answered by the other filter, before this one's leave counts.
        .chain(any([libc::SYS_clone3]))
        .chain(only(libc::SYS_futex, [&futex[0], &futex[1], &futex[2]]))
        .chain(any([libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_sched_yield, libc::SYS_sched_getaffinity]))
        .chain(any([libc::SYS_gettid, libc::SYS_getpid]))
        .chain(only(
            libc::SYS_prctl,
            [&[Int(0, libc::PR_SET_NAME)], &[Int(0, PR_SET_VMA), Is(1, 0)], &[Int(0, PR_GET_AUXV)]],
        ))
        .chain(any([libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_sigaltstack]))
        .chain(only(libc::SYS_tgkill, [&[Int(0, itself)]]))
}

/// The page size and the like, for packet windows (Linux 6.4).
const PR_GET_AUXV: c_int = 0x4155_5856;

/// Names anonymous memory, with 0 as its second argument (Linux 5.17).
const PR_SET_VMA: c_int = 0x5356_4d41;

/// The allocator, stacks, packet windows. Nothing becomes executable.
fn memory() -> impl Iterator<Item = Rule> {
    const DATA: Arg = protection(2);
    const ANONYMOUS: Arg = Arg::Bits {
        index: 3,
        required: wide(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        optional: wide(libc::MAP_FIXED | libc::MAP_NORESERVE | libc::MAP_STACK),
    };
    const WINDOW: Arg = Is(3, wide(libc::MAP_SHARED));
    /// A panic's backtrace, from the executable.
    const FILE: [Arg; 2] = [Is(2, wide(libc::PROT_READ)), Is(3, wide(libc::MAP_PRIVATE))];
    /// State of the vDSO's random numbers (Linux 6.11).
    const DROPPABLE: Arg = Is(3, wide(0x08 | libc::MAP_ANONYMOUS));
    const ADVICE: [c_int; 5] = [
        libc::MADV_DONTNEED,
        libc::MADV_FREE,
        libc::MADV_REMOVE,
        // MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, for stacks (Linux 6.13).
        102,
        103,
    ];
    let advice = ADVICE.map(|advice| [Int(2, advice)]);
    only(libc::SYS_mmap, [&[DATA, ANONYMOUS], &[DATA, WINDOW], &[DATA, DROPPABLE], &FILE])
        .chain(only(libc::SYS_mprotect, [&[protection(2)]]))
        .chain(only(libc::SYS_madvise, [&advice[0], &advice[1], &advice[2], &advice[3], &advice[4]]))
        .chain(only(libc::SYS_mremap, [&[Arg::Bits { index: 3, required: 0, optional: wide(libc::MREMAP_MAYMOVE) }]]))
        .chain(any([libc::SYS_munmap, libc::SYS_brk, libc::SYS_getrandom]))
}

/// Any protection without execution.
const fn protection(index: u8) -> Arg {
    Arg::Bits { index, required: 0, optional: wide(libc::PROT_READ | libc::PROT_WRITE) }
}

/// Sleeping, log lines' times where the vDSO has none, and the end.
fn time_and_end() -> impl Iterator<Item = Rule> {
    any([
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ])
}

/// Messages over sockets and packet windows, and descriptors beside them; the wait for the sandbox's end.
fn transports() -> impl Iterator<Item = Rule> {
    const RECEIVE: c_int = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    const FD_SOCKET: c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    const COMMANDS: [c_int; 6] =
        [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_GETFL, libc::F_SETFL, libc::F_ADD_SEALS, libc::F_GET_SEALS];
    let commands = COMMANDS.map(|command| [Int(1, command)]);
    let [a, b, c, d, e, f] = &commands;
    only(libc::SYS_recvmsg, [&[IntBits(2, RECEIVE)]])
        .chain(only(libc::SYS_sendmsg, [&[IntBits(2, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)]]))
        // Without an address.
        .chain(only(libc::SYS_recvfrom, [&[IntBits(3, RECEIVE), Is(4, 0), Is(5, 0)]]))
        .chain(only(libc::SYS_socketpair, [&[Int(0, libc::AF_UNIX), Int(1, FD_SOCKET), Int(2, 0)]]))
        .chain(any([libc::SYS_shutdown, libc::SYS_ppoll, libc::SYS_memfd_create, libc::SYS_ftruncate]))
        .chain(only(libc::SYS_fcntl, [a, b, c, d, e, f]))
        .chain(old_calls())
}

/// Calls that newer architectures do without: `poll(2)`, and what a panic's backtrace asks for the executable's path.
#[cfg(target_arch = "x86_64")]
fn old_calls() -> impl Iterator<Item = Rule> {
    any([libc::SYS_poll, libc::SYS_readlink])
}

/// There are none here.
#[cfg(not(target_arch = "x86_64"))]
fn old_calls() -> impl Iterator<Item = Rule> {
    std::iter::empty()
}

/// Walks, opens and attributes. Which of `fstat(2)` and its successors the C library takes for its own is its business.
/// `openat2(2)` is for mount points, `getcwd(2)` for a panic's backtrace.
fn finding() -> impl Iterator<Item = Rule> {
    any([
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_statx,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_fstatfs,
        libc::SYS_readlinkat,
        libc::SYS_getcwd,
        libc::SYS_close,
    ])
}

/// Data, listings and extended attributes, and log lines with them.
fn reading() -> impl Iterator<Item = Rule> {
    any([
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_lseek,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_fsync,
        libc::SYS_getdents64,
        libc::SYS_getxattr,
        libc::SYS_listxattr,
    ])
}

/// Changes, each by held descriptor. Extended attributes are changed through the descriptor's entry in `/proc/self/fd`.
fn changing() -> impl Iterator<Item = Rule> {
    any([
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_symlinkat,
        libc::SYS_linkat,
        libc::SYS_unlinkat,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_setxattr,
        libc::SYS_removexattr,
    ])
    .chain(only(libc::SYS_fallocate, [&[Int(1, 0)]]))
}

/// Sockets of the host: only Unix ones, and only as `--host-uds` has it.
fn sockets(policy: HostSockets) -> Vec<Rule> {
    const FLAGS: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let kinds = [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET]
        .map(|kind| [Int(0, libc::AF_UNIX), Int(1, kind | FLAGS), Int(2, 0)]);
    let new = only(libc::SYS_socket, [&kinds[0], &kinds[1], &kinds[2]]);
    // To tell whether the ids that a client wants can be had.
    let own = [libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups];
    let open = any([libc::SYS_connect, libc::SYS_capget]).chain(any(own));
    let create = any([libc::SYS_bind, libc::SYS_listen, libc::SYS_accept4]);
    match policy {
        HostSockets::None => Vec::new(),
        HostSockets::Open => new.chain(open).collect(),
        HostSockets::Create => new.chain(create).collect(),
        HostSockets::All => new.chain(open).chain(create).collect(),
    }
}

/// Connects under a client's ids, on a thread of their own: of the three ids of each kind only the effective one
/// changes, and groups only go.
fn identities() -> impl Iterator<Item = Rule> {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    let id = |index, id: u32| Int(index, id.cast_signed());
    let user = [id(0, getuid().as_raw()), id(2, geteuid().as_raw())];
    let group = [id(0, getgid().as_raw()), id(2, getegid().as_raw())];
    only(libc::SYS_setresuid, [&user])
        .chain(only(libc::SYS_setresgid, [&group]))
        .chain(only(libc::SYS_setgroups, [&[Int(0, 0)]]))
}
