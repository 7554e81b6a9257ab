//! Giving memory back: the allocator keeps what is freed below what lives on, and a gofer is idle most of its life.

/// Returns the heap's free pages to the system; what is allocated stays where it is. Takes time in proportion to the
/// heap, so it is for moments when much was freed.
#[allow(unsafe_code, reason = "malloc_trim(3) has no safe form")]
pub fn give_back() {
    // SAFETY: malloc_trim(3) may be called at any time and by any thread. It takes an integer by value, and releases
    // only pages in which nothing is allocated.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
