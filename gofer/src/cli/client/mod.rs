//! `gofer client`: files of a server, from the shell.

mod file;
mod list;
mod ping;
mod show;
mod tree;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Subcommand;
use gofer_protocol::client::{Client, Error, Options};

use super::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Socket of the server.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
    /// Send everything over the socket.
    #[arg(long)]
    no_channels: bool,
    #[command(subcommand)]
    action: Action,
}

/// Paths start at the served root, with a slash or without. Symbolic links are not followed.
#[derive(Debug, Subcommand)]
enum Action {
    /// Show attributes.
    Stat {
        #[arg(required = true)]
        paths: Vec<OsString>,
    },
    /// List a directory.
    Ls {
        #[arg(default_value = "/")]
        path: OsString,
        /// Show mode, owner and size.
        #[arg(short, long)]
        long: bool,
    },
    /// Print files.
    Cat {
        #[arg(required = true)]
        paths: Vec<OsString>,
    },
    /// Copy a file from the server.
    Get {
        remote: OsString,
        /// Created, or replaced.
        local: PathBuf,
    },
    /// Copy a file to the server.
    Put {
        local: PathBuf,
        /// Created, or replaced.
        remote: OsString,
    },
    /// Create directories.
    Mkdir {
        #[arg(required = true)]
        paths: Vec<OsString>,
        /// Permissions, in octal.
        #[arg(short, long, default_value = "755", value_parser = octal)]
        mode: u16,
    },
    /// Remove files.
    Rm {
        #[arg(required = true)]
        paths: Vec<OsString>,
        /// Remove empty directories.
        #[arg(short, long)]
        dir: bool,
    },
    /// Move a file or a directory; replaces what has the new name.
    Mv { from: OsString, to: OsString },
    /// Measure round trips, over the socket and over a channel.
    Ping {
        /// Round trips.
        #[arg(short = 'n', long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        count: u32,
    },
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let connect = |channels| connect(args, channels);
    // One command at a time needs one channel; ping makes its own choice.
    let client = || connect(usize::from(!args.no_channels));
    match &args.action {
        Action::Stat { paths } => tree::stat(&client()?, paths, args.json),
        Action::Ls { path, long } => list::ls(&client()?, path, *long, args.json),
        Action::Cat { paths } => file::cat(&client()?, paths),
        Action::Get { remote, local } => file::get(&client()?, remote, local, args.json),
        Action::Put { local, remote } => file::put(&client()?, local, remote, args.json),
        Action::Mkdir { paths, mode } => tree::mkdir(&client()?, paths, *mode, args.json),
        Action::Rm { paths, dir } => tree::rm(&client()?, paths, *dir, args.json),
        Action::Mv { from, to } => tree::mv(&client()?, from, to, args.json),
        Action::Ping { count } => ping::ping(&connect, *count, args.no_channels, args.json),
    }
}

fn connect(args: &Args, channels: usize) -> Result<Client, Failure> {
    Client::connect(&args.socket, &Options { channels }).map_err(|error| {
        let hint = match error.errno().name() {
            Some("ENOENT") => " (no server has made it)",
            Some("ECONNREFUSED") => " (no server listens there any more)",
            Some("EACCES") => " (only the user that runs the server may connect)",
            _ => "",
        };
        Failure::sentence(format!("cannot connect to {}: {error}{hint}", args.socket.display()))
    })
}

/// `cannot ACTION PATH: CAUSE`.
fn failed<'p>(action: &'p str, path: &'p OsString) -> impl Fn(Error) -> Failure + 'p {
    move |error| Failure::new(format_args!("{action} {}", show::name(path.as_bytes())), error)
}

fn octal(text: &str) -> Result<u16, String> {
    match u16::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o7777 => Ok(mode),
        _ => Err("not an octal number up to 7777".into()),
    }
}
