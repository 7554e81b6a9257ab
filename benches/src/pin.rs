//! One CPU for everything that a measurement involves.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread, and all threads that it starts from now on, on the last CPU that it may use.
///
/// Left to the scheduler, two sides of a ping-pong run on two CPUs, the wake-ups cross between them, and the figures
/// say more about the machine than about the code.
///
/// # Errors
/// Those of `sched_setaffinity(2)`.
pub fn to_one_cpu() -> rustix::io::Result<usize> {
    let allowed = sched_getaffinity(None)?;
    let cpu = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one)?;
    Ok(cpu)
}
