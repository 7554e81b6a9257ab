//! `gofer client`: files of a server, from the shell.

use super::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args) -> Result<(), Failure> {
    Err(Failure::sentence("not built yet"))
}
