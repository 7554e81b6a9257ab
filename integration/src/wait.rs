//! How long tests wait for what must come to pass. Only a failure takes that long, so it is plenty for a busy machine.

use std::time::{Duration, Instant};

/// After this long a server that has not answered, woken or closed never will.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done`, and says whether it came to pass.
pub fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}
