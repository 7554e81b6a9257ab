//! The `gofer` command: serves directories over LISAFS, and talks to such servers.

mod cli;
mod log;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
