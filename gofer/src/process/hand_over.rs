//! Handing over to the original gofer, which is part of the same file.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use gofer_sizing::{BLOCKING_VARIABLE, Given, Host, Overrides, WORKERS_VARIABLE};

use super::StartError;

/// `argv[0]` of a gofer that is not ours. Before libc starts, any but `runsc-gofer` means the payload.
const NAME: &str = "runsc-gofer-stock";

/// Executes this file once more, as the original gofer: the same process, arguments and environment, and every
/// descriptor that is not close-on-exec. Comes back only with the reason why it could not.
///
/// To be called before any side effect, and while the descriptors of the command line are as `runsc` left them.
/// Nothing loops: who is started so becomes the payload before libc, whatever the file's mode.
pub(crate) fn hand_over() -> StartError {
    refused(&itself().exec())
}

/// As [`hand_over`], with Go limited to as many threads as our plan has workers.
///
/// The command line is the same, so `runsc` and everything that it observes is too. A plan without a bound, which
/// somebody asked for, leaves Go's own choice.
pub(crate) fn hand_over_capped() -> StartError {
    let plan = gofer_sizing::plan(&Host::running(), &overrides());
    let mut command = itself();
    if let Some(workers) = plan.workers {
        command.env("GOMAXPROCS", workers.to_string());
    }
    refused(&command.exec())
}

/// Exec of the standard library gives the signal mask and SIGPIPE back their defaults, which is what `runsc` started
/// this process with.
fn itself() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(NAME).args(env::args_os().skip(1));
    command
}

/// What the operator asked for instead of the plan. A variable that makes no sense must not stop a container.
fn overrides() -> Overrides {
    let workers = env::var(WORKERS_VARIABLE).ok();
    let blocking = env::var(BLOCKING_VARIABLE).ok();
    let given = Given { workers: workers.as_deref(), blocking: blocking.as_deref() };
    Overrides::choose(Given::default(), given).unwrap_or_else(|error| {
        tracing::warn!("{error}; going by the limits of this host");
        Overrides::default()
    })
}

fn refused(error: &io::Error) -> StartError {
    StartError::new("hand over to the original gofer by executing /proc/self/exe", error)
}
