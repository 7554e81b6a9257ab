//! Waiting for the runtime: it says "go on" by closing its end, and nothing else is an answer.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::process::StartError;

/// Blocks until the peer of `fd`, the descriptor of flag `name`, has closed its end.
pub(super) fn wait_for_eof(fd: &OwnedFd, name: &str) -> Result<(), StartError> {
    let mut byte = [0u8; 1];
    loop {
        match rustix::io::read(fd, &mut byte) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(StartError::sentence(format!("--{name} delivered a byte instead of its end"))),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::IN),
            Err(cause) => return Err(StartError::new(format_args!("wait for --{name}"), cause)),
        }
    }
}

/// Blocks until `fd` may be ready; the caller's own call tells.
pub(super) fn wait(fd: &OwnedFd, events: PollFlags) {
    // A failure here shows again in the call that follows.
    let _ = poll(&mut [PollFd::new(fd, events)], None);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::wait_for_eof;

    #[test]
    fn the_end_goes_on_and_a_byte_is_fatal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        drop(theirs);
        wait_for_eof(&ours.into(), "sync-chroot-fd").unwrap();

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").unwrap();
        let error = wait_for_eof(&ours.into(), "sync-chroot-fd").unwrap_err();
        assert!(error.to_string().contains("sync-chroot-fd"), "{error}");
    }
}
