//! The `gofer` command: serves directories over LISAFS, and talks to such servers.

mod cli;
mod confine;
mod interpose;
mod log;
mod prepare;
mod process;

use std::io::{self, Write as _};
use std::process::ExitCode;

use gofer_early::Mode;

fn main() -> ExitCode {
    let options = gofer_early::options();
    // Whoever comes here does not become the payload any more.
    gofer_early::unmap_payload();
    // In a file with a payload, all but a gofer of `runsc` has become that payload before libc.
    options.map_or_else(cli::run, |options| original(options.mode))
}

/// The payload's own gofer; comes back only if it cannot be started.
fn original(mode: Mode) -> ExitCode {
    log::start(tracing::Level::INFO);
    let failure = match mode {
        Mode::StockCapped => process::hand_over::hand_over_capped(),
        Mode::Ours | Mode::Stock => process::hand_over::hand_over(),
    };
    let _ = writeln!(io::stderr(), "gofer: {failure}");
    failure.code().into()
}
