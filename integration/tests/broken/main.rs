//! What a reviewer broke, each as the attack that did it.

mod ending;
mod limits;
mod output;
mod waiting;

use gofer_integration::Gofer;
use rustix::process::{Pid, Signal, kill_process};

fn terminate(gofer: &Gofer) {
    let pid = Pid::from_raw(gofer.pid().cast_signed()).expect("a pid");
    kill_process(pid, Signal::TERM).expect("a signal");
}
