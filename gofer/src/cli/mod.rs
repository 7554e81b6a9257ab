//! The command line: flags, exit codes, and one clear sentence for what went wrong.

mod client;
mod inherited;
mod install;
pub(crate) mod limits;
mod listener;
mod serve;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Serves directories over LISAFS, the file protocol of gVisor's sandboxes, and talks to such servers.
#[derive(Debug, Parser)]
#[command(name = "gofer", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a directory to clients of a Unix socket.
    Serve(serve::Args),
    /// Work on files through a server.
    Client(client::Args),
    /// Make a runsc whose gofers are this program, or its own.
    Install(install::InstallArgs),
    /// Change which gofer such a runsc starts.
    Switch(install::SwitchArgs),
}

/// Runs the command that the arguments name. Exit code 0 on success, 1 on failure, 2 for a wrong command line.
pub(crate) fn run() -> ExitCode {
    // None but `serve` is inlined: their frames would be private memory of a server for good.
    let result = match parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Client(args) => client::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Switch(args) => install::switch(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The exit code says it too, where standard error is full or gone.
            let _ = writeln!(io::stderr(), "gofer: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Parses the arguments; ends the process if they are wrong.
///
/// The parser uses more stack than all else that the main thread does, and what a stack has once touched stays private
/// memory of the process for good. So it gets a thread, whose stack a thread of the server takes over: 16 KiB less for
/// an idle one.
fn parse() -> Cli {
    /// Unoptimised builds need the most. The C library hands a stack on only to who wants a quarter of it at least.
    const STACK: usize = 512 << 10;
    let parsing = std::thread::Builder::new().stack_size(STACK).spawn(Cli::parse);
    parsing.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(Cli::parse)
}

/// What went wrong, as one sentence for people.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// `cannot ACTION: CAUSE`.
    pub(crate) fn new(action: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self(format!("cannot {action}: {cause}"))
    }

    /// A sentence as it is.
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
