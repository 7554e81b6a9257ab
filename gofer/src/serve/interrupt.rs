//! Gets a thread out of a sleep from which no wake-up reaches it.
//!
//! A client that shares a futex with us may have the kernel move our sleeper to another one (`FUTEX_CMP_REQUEUE`). The only
//! thing that finds it there is a signal. Timed sleeps would do without, at the price of a timer for every request.

use std::os::unix::thread::JoinHandleExt;
use std::sync::Once;
use std::thread::JoinHandle;

/// Ignored by default, so that processes that know nothing of it are not harmed by one that comes late.
const SIGNAL: libc::c_int = libc::SIGURG;

/// Has the system call that `thread` sleeps in fail with `EINTR`, if it sleeps in one.
#[allow(unsafe_code, reason = "pthread_kill(3) has no safe form")]
pub(super) fn interrupt(thread: &JoinHandle<()>) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(install_handler);
    // SAFETY: the thread's id must be valid. It is until the thread is joined or detached, which takes its handle by
    // value, and here it is borrowed. The signal has a handler that does nothing, or the program's own.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), SIGNAL) };
}

/// A signal only interrupts if it has a handler. A program that has one for this signal keeps it: it does as well.
#[allow(unsafe_code, reason = "sigaction(2) has no safe form")]
fn install_handler() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction is a valid one: the default handler, an empty mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: reads the present action into a live, exclusively borrowed place.
    let known = unsafe { libc::sigaction(SIGNAL, std::ptr::null(), &raw mut action) };
    if known != 0 || (action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN) {
        return;
    }
    // Not SA_RESTART: the call is to fail.
    action.sa_flags = 0;
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: `action` is initialised, and its handler is async-signal-safe, since it does nothing.
    unsafe { libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) };
}
