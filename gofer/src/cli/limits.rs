//! Process-wide settings: as many descriptors as the host allows, and an allocator that keeps little.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the hard one, and the hard one to `fs.nr_open` where the process may
/// (`CAP_SYS_RESOURCE`). Returns the limit that holds now.
pub(super) fn raise_open_files() -> u64 {
    let before = getrlimit(Resource::Nofile);
    if let Some(ceiling) = nr_open().filter(|ceiling| before.maximum.is_some_and(|hard| hard < *ceiling)) {
        let raised = Rlimit { current: Some(ceiling), maximum: Some(ceiling) };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            return ceiling;
        }
    }
    if let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum }) {
        tracing::warn!(%errno, "cannot raise the limit of open descriptors");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn nr_open() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}

/// Sets the allocator up for a process that is small most of the time: one arena, and large buffers that go back to
/// the system when they are freed.
///
/// By default glibc gives each of the first 8 x CPUs threads an arena of its own, so that a process grows with the host.
/// Requests allocate next to nothing, so the lock is not contended. And by default the first large buffer that is freed
/// raises the size up to which buffers are kept, so that a burst of large requests leaves megabytes behind.
#[allow(unsafe_code, reason = "mallopt(3) has no safe form")]
pub(crate) fn set_up_allocator() {
    const LARGE: i32 = 128 << 10;
    for (parameter, value) in [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, LARGE)]
    {
        // SAFETY: mallopt(3) must not run beside other uses of the allocator settings; no thread exists yet. It takes
        // two integers by value, and these are documented pairs.
        let accepted = unsafe { libc::mallopt(parameter, value) };
        debug_assert_eq!(accepted, 1);
    }
}
