//! Notices that the server is gone while calls wait for it on channels, where nothing would tell them.

use std::io;
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tracing::debug;

use super::link::Link;
use crate::sync::Arc;
use crate::transport::Ended;

/// A thread that ends the link when the server closes the socket, or dies.
///
/// It ends itself when the link has ended, for then the socket is shut down, which looks the same to it.
pub(super) fn watch(link: &Arc<Link>) -> io::Result<JoinHandle<()>> {
    let link = Arc::clone(link);
    let thread = Builder::new().name("lisafs-watcher".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let ended = wait_for_the_end(&link);
        if link.death().is_none() {
            debug!(%ended, "the server is gone");
        }
        link.end(ended);
    })
}

fn wait_for_the_end(link: &Link) -> Ended {
    // Hang-ups are reported without being asked for.
    let mut fds = [PollFd::new(link.socket(), PollFlags::RDHUP)];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => return Ended::Closed,
            Err(Errno::INTR) => {}
            Err(errno) => return Ended::Host(errno.into()),
        }
    }
}

/// The thread only polls; the rest is for what may be logged.
const STACK: usize = 64 * 1024;
