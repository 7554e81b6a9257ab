//! `gofer client`: files of a server, from the shell.

mod file;
mod list;
mod ping;
mod show;
mod tree;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Subcommand;
use gofer_protocol::client::{Client, Error, Options};

use super::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Socket of the server.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Print JSON, for programs: an object a line. (cat prints what the files hold.)
    #[arg(long, global = true)]
    json: bool,
    /// Send everything over the socket.
    #[arg(long, global = true)]
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
        /// File of the server.
        remote: OsString,
        /// File of this host; created, or replaced.
        local: PathBuf,
    },
    /// Copy a file to the server.
    Put {
        /// File of this host.
        local: PathBuf,
        /// File of the server; created, or replaced.
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
    Mv {
        /// What is there now.
        from: OsString,
        /// Its new path.
        to: OsString,
    },
    /// Measure round trips, over the socket and over a channel.
    Ping {
        /// Round trips.
        #[arg(short = 'n', long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        count: u32,
    },
}

#[inline(never)]
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
    let action = format!("connect to {}", args.socket.display());
    let socket = UnixStream::connect(&args.socket).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => " (no server has made it)",
            ErrorKind::ConnectionRefused => " (no server listens there)",
            ErrorKind::PermissionDenied => " (only the user that runs the server may connect)",
            _ => "",
        };
        Failure::new(&action, format_args!("{error}{hint}"))
    })?;
    Client::over(socket, &Options { channels }).map_err(|error| match error.kind() {
        // A server that has enough clients says nothing else.
        gofer_protocol::client::ErrorKind::Connection(_) => {
            Failure::new(&action, format_args!("{error} (no LISAFS server, or one that has enough clients)"))
        }
        _ => Failure::new(&action, error),
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
