//! A client that writes beyond `RLIMIT_FSIZE` gets `EFBIG`.
//!
//! By default the kernel also sends the thread `SIGXFSZ`, which ends the process: one client would end the service of all.

/// Has the calling thread take no notice of `SIGXFSZ`. Only the thread: the process around it may be somebody else's.
#[allow(unsafe_code, reason = "pthread_sigmask(3) has no safe form")]
pub(super) fn is_an_errno() {
    // SAFETY: an all-zero sigset_t is a valid place for sigemptyset(3) to write to.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: initialises a live, exclusively borrowed place.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: adds a signal that exists to the set that was just initialised.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGXFSZ) };
    // SAFETY: reads the initialised set; the old mask is not asked for. One that is pending stays so until the thread ends.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}
