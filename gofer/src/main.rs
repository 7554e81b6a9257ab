//! The `gofer` command: serves directories over LISAFS, and talks to such servers.

mod cli;
mod confine;
mod log;
mod prepare;
mod process;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Whoever comes here does not become the payload any more.
    gofer_early::unmap_payload();
    cli::run()
}
