//! Descriptors that the runtime left for us, taken over by their numbers.
#![allow(unsafe_code, reason = "numbers on the command line are all there is to own such descriptors by")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::FdFlags;

/// Something is open under this number.
pub(super) fn is_open(number: RawFd) -> bool {
    number >= 0 && rustix::io::fcntl_getfd(borrow(number)).is_ok()
}

/// A copy of descriptor `number`, close-on-exec, at 3 or above. The original stays as it is.
pub(super) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(borrow(number), 3)?)
}

/// Numbers that are nobody's yet: open, not a standard stream, each there once.
#[derive(Debug)]
pub(super) struct Unowned(Vec<RawFd>);

impl Unowned {
    /// Claims numbers. The error is the one that cannot be claimed, and why; nothing has been done then.
    ///
    /// Calling it while anything else in the process owns one of the numbers would end in a double close: the one
    /// caller is the parser of the command line, before the process has opened anything.
    pub(super) fn claim(numbers: Vec<RawFd>) -> Result<Self, (RawFd, &'static str)> {
        for (index, &number) in numbers.iter().enumerate() {
            if number <= 2 {
                return Err((number, "is a standard stream"));
            }
            if numbers[..index].contains(&number) {
                return Err((number, "is named twice"));
            }
            if !is_open(number) {
                return Err((number, "is not open"));
            }
        }
        for &number in &numbers {
            if rustix::io::fcntl_setfd(borrow(number), FdFlags::CLOEXEC).is_err() {
                return Err((number, "cannot be kept from programs that are executed"));
            }
        }
        Ok(Self(numbers))
    }

    /// Takes one of them over; `None` if it is not there, or no longer.
    pub(super) fn take(&mut self, number: RawFd) -> Option<OwnedFd> {
        let at = self.0.iter().position(|&own| own == number)?;
        self.0.swap_remove(at);
        // SAFETY: it was open when it was claimed, and is owned by no one: the parent left it, `claim` refuses a number
        // that is there twice, and each leaves the list with the owner that is made of it.
        Some(unsafe { OwnedFd::from_raw_fd(number) })
    }
}

/// Closes every descriptor from 3 on but those in `keep`, which must be all that the process owns.
pub(super) fn close_others(keep: &[&OwnedFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for number in keep {
        close_range(first, number - 1)?;
        first = number + 1;
    }
    close_range(first, u32::MAX)
}

/// Both inclusive; an empty range is fine.
fn close_range(first: u32, last: u32) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: the call takes numbers and touches no memory. That nobody owns what it closes is the condition of
    // `close_others`.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// For one call that passes the number to the kernel.
fn borrow<'a>(number: RawFd) -> BorrowedFd<'a> {
    debug_assert!(number >= 0);
    // SAFETY: `borrow_raw` asks that the descriptor is open while it is borrowed. The callers above use it for one call
    // to the kernel each, which answers EBADF if it is not, and touches nothing else. -1 is excluded by them.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs in a process of its own, since it closes what the test runner holds.
    #[test]
    fn inherited_descriptors_that_are_not_kept_are_closed() {
        const INSIDE: &str = "TEST_CLOSES_DESCRIPTORS";
        if std::env::var_os(INSIDE).is_none() {
            let mut test = Command::new(std::env::current_exe().unwrap());
            test.args(["--exact", "process::descriptors::tests::inherited_descriptors_that_are_not_kept_are_closed"]);
            let output = test.args(["--nocapture"]).env(INSIDE, "1").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && text.contains("descriptors: [0, 1, 2, 40, 44]"), "{text}");
            return;
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        let copy = |number| {
            let fd = rustix::io::fcntl_dupfd_cloexec(&file, number).unwrap();
            assert_eq!(fd.as_raw_fd(), number);
            fd
        };
        let all: Vec<OwnedFd> = (40..=45).map(copy).collect();
        close_others(&[&all[4], &all[0]]).unwrap();
        let open: Vec<RawFd> = (0..100).filter(|&number| is_open(number)).collect();
        println!("descriptors: {open:?}");
        // Most of what `all` owns is gone.
        std::process::exit(0);
    }
}
