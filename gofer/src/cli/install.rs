//! `gofer install` and `gofer switch`: one file that is a `runsc` whose gofers are the chosen ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use gofer_early::{Mode, OnUnknown, Options};

use super::Failure;
use crate::interpose::{BuildInfo, Draft, Parts, Record, Release, check, combine, is_combined, sha256};

#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// The runsc to put in; it stays as it is.
    #[arg(long, value_name = "PATH")]
    runsc: PathBuf,
    /// The file to make, to be configured as the runtime in its place.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Which gofer the runsc gets: this one, its own, or its own with as many threads as our plan has workers.
    #[arg(long, value_name = "MODE", default_value = "ours")]
    gofer: GoferMode,
    /// What becomes of a gofer's command line that no known runsc writes.
    #[arg(long, value_name = "WHAT", default_value = "stock")]
    on_unknown: Unknown,
}

#[derive(Debug, clap::Args)]
pub(super) struct SwitchArgs {
    /// Which gofer the runsc gets from now on; see `gofer install`.
    mode: GoferMode,
    /// A file that `gofer install` made; running containers keep what they have.
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoferMode {
    Ours,
    Stock,
    StockCapped,
}

impl From<GoferMode> for Mode {
    fn from(mode: GoferMode) -> Self {
        match mode {
            GoferMode::Ours => Self::Ours,
            GoferMode::Stock => Self::Stock,
            GoferMode::StockCapped => Self::StockCapped,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unknown {
    Stock,
    Fail,
}

impl From<Unknown> for OnUnknown {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Stock => Self::Stock,
            Unknown::Fail => Self::Fail,
        }
    }
}

#[inline(never)]
pub(super) fn install(args: &InstallArgs) -> Result<(), Failure> {
    let InstallArgs { runsc, out, gofer, on_unknown } = args;
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(Failure::sentence("a runsc can be combined with this program on x86-64 Linux only"));
    }
    let file = read(runsc)?;
    let wrapped = Parts::of(&file);
    let payload = unwrapped(&file, wrapped.as_ref(), runsc)?;
    check(payload).map_err(|why| Failure::sentence(format!("{} {why}", runsc.display())))?;
    refuse_foreign(out)?;

    let version = version_of(runsc)?;
    let mode = Mode::from(*gofer);
    can_be(mode, &version, payload)?;
    // Of a combined file, what it was made from: that is what a package renews.
    let source = match wrapped.as_ref().and_then(|parts| parts.record.as_ref()) {
        Some(record) => record.source.clone(),
        None => fs::canonicalize(runsc).map_err(|error| cannot("resolve", runsc, error))?,
    };
    let record = Record { source, version, sha256: sha256(payload), gofer: env!("CARGO_PKG_VERSION").into() };
    let options = Options { mode, on_unknown: (*on_unknown).into() };
    let shim = fs::read("/proc/self/exe").map_err(|error| Failure::new("read this program", error))?;
    let combined = combine(shim, payload, options, &record)
        .map_err(|why| Failure::sentence(format!("this program {why}; it cannot be combined with a runsc")))?;

    let draft = Draft::write(&combined, out).map_err(|error| cannot("write", out, error))?;
    // Before anything runs it: a mount with noexec, or a layout that this kernel does not take, is found here.
    let answered = version_of(draft.path())?;
    if answered != record.version {
        let expected = &record.version;
        return Err(Failure::sentence(format!("the combined file says {answered:?}, the runsc {expected:?}")));
    }
    draft.publish(out).map_err(|error| cannot("write", out, error))
}

#[inline(never)]
pub(super) fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    let SwitchArgs { mode, path } = args;
    let mut file = read(path)?;
    let Some(parts) = Parts::of(&file) else {
        let path = path.display();
        return Err(Failure::sentence(format!("{path} is not a whole file that `gofer install` made")));
    };
    let mode = Mode::from(*mode);
    let version = parts.record.as_ref().map_or("", |record| &record.version);
    can_be(mode, version, parts.payload(&file))?;
    let (at, byte) = parts.switched(mode);
    file[at] = byte;
    // By rename: a file that is being executed cannot be written to, and containers keep the one that they run from.
    let draft = Draft::write(&file, path).map_err(|error| cannot("write", path, error))?;
    draft.publish(path).map_err(|error| cannot("replace", path, error))
}

/// The plain `runsc`, where the file is already a combined one.
fn unwrapped<'f>(file: &'f [u8], wrapped: Option<&Parts>, path: &Path) -> Result<&'f [u8], Failure> {
    match wrapped {
        Some(parts) => Ok(parts.payload(file)),
        None if is_combined(file) => {
            let path = path.display();
            Err(Failure::sentence(format!(
                "{path} was made by `gofer install`, but has lost its runsc; was it stripped?"
            )))
        }
        None => Ok(file),
    }
}

/// Package managers verify and replace what they installed, and people would lose their only plain `runsc`.
fn refuse_foreign(out: &Path) -> Result<(), Failure> {
    match fs::read(out) {
        Ok(file) if is_combined(&file) => Ok(()),
        Ok(_) => Err(Failure::sentence(format!("{} exists and was not made by `gofer install`", out.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot("read", out, error)),
    }
}

/// Whether gofers of this `runsc` can be started so. Go has to find `GOMAXPROCS` when it starts for the last time.
fn can_be(mode: Mode, version: &str, payload: &[u8]) -> Result<(), Failure> {
    if mode != Mode::StockCapped {
        return Ok(());
    }
    match Release::of(version, BuildInfo::of(payload).as_ref()) {
        Some(release) if release.keeps_environment() => Ok(()),
        Some(release) => Err(Failure::sentence(format!(
            "the gofer of release {release} empties its environment when it executes itself again, so it cannot be \
             stock-capped"
        ))),
        None => Err(Failure::sentence(format!(
            "{version:?} names no release, so whether its gofer can be stock-capped is not known"
        ))),
    }
}

/// The first line that `PATH --version` prints.
fn version_of(path: &Path) -> Result<String, Failure> {
    let action = format!("run {} --version", path.display());
    // A name without a slash would be looked up in PATH.
    let path = std::path::absolute(path).map_err(|error| Failure::new(&action, error))?;
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::new(&action, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("nothing");
        return Err(Failure::new(&action, format_args!("{}, and it said: {said}", output.status)));
    }
    let first = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    if !first.starts_with("runsc version ") {
        return Err(Failure::sentence(format!("{action} printed {first:?}, so this is no runsc")));
    }
    Ok(first)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| cannot("read", path, error))
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Failure {
    Failure::new(format_args!("{what} {}", path.display()), error)
}
