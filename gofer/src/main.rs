//! The `gofer` command: serves directories over LISAFS, and talks to such servers.

mod cli;
mod confine;
mod interpose;
mod log;
mod prepare;
mod process;

use std::process::ExitCode;

fn main() -> ExitCode {
    let options = gofer_early::options();
    // Whoever comes here does not become the payload any more.
    gofer_early::unmap_payload();
    cli::limits::set_up_allocator();
    if process::is_wanted() { process::run(options) } else { cli::run() }
}
