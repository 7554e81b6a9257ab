//! The command line as typed values; each descriptor number becomes an [`OwnedFd`] once, here.

mod read;

use std::ffi::OsString;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

use gofer::contract::{Generation, MountConf};
use gofer::{CharDevices, HostFifo, HostSockets};

use super::StartError;
use super::descriptors;

/// Everything that `runsc` says on the command line and that matters to a gofer.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) generation: Generation,
    /// Container id; E26 only.
    pub(crate) id: Option<String>,
    /// Bundle directory, as given.
    pub(crate) bundle: PathBuf,
    /// For the root and each mount that has one; none under E22.
    pub(crate) confs: Vec<MountConf>,
    pub(crate) donated: Donated,
    pub(crate) host_sockets: HostSockets,
    pub(crate) host_fifo: HostFifo,
    pub(crate) char_devices: CharDevices,
    /// Give clients the mount points; false under E22.
    pub(crate) directfs: bool,
    /// E22 only: the sandbox overlays the root, and all mounts.
    pub(crate) overlay: Overlay,
    /// Both limits of open descriptors.
    pub(crate) fd_limit: Option<u64>,
    pub(crate) devices: DeviceProxies,
    /// Ids to take on after the user namespace is mapped.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) apply_caps: bool,
    pub(crate) setup_root: bool,
    /// `--TESTONLY-unsafe-nonroot`: no pivot.
    pub(crate) unsafe_nonroot: bool,
    pub(crate) log: LogArgs,
}

/// The descriptors that flags name. All are close-on-exec.
#[derive(Debug)]
pub(crate) struct Donated {
    /// There in all arguments that were accepted; gone once it is read.
    pub(crate) spec: Option<OwnedFd>,
    pub(crate) mounts: Option<OwnedFd>,
    /// Server ends of the connections, in order.
    pub(crate) io: Vec<OwnedFd>,
    pub(crate) dev: Option<OwnedFd>,
    pub(crate) rpc: Option<OwnedFd>,
    pub(crate) sync_userns: Option<OwnedFd>,
    pub(crate) sync_nvproxy: Option<OwnedFd>,
    pub(crate) sync_chroot: Option<OwnedFd>,
    /// Held, never used, until the process ends.
    pub(crate) pin_ring: Option<OwnedFd>,
    pub(crate) sentry_exit: Option<OwnedFd>,
    /// Outputs of Go's profiler, which stay empty: to be closed after a warning.
    pub(crate) profiles: Vec<OwnedFd>,
}

/// E22's overlays: what they cover is served read-only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) root: bool,
    pub(crate) mounts: bool,
}

/// Flags that let devices of the host through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceProxies {
    pub(crate) nvproxy: bool,
    pub(crate) nvproxy_docker: bool,
    pub(crate) tpuproxy: bool,
    pub(crate) rdmaproxy: bool,
}

/// Where to log, and how.
#[derive(Debug, Default)]
pub(crate) struct LogArgs {
    /// Fatal errors, as JSON.
    pub(crate) errors: Option<OwnedFd>,
    pub(crate) debug: Option<OwnedFd>,
    /// Replaces standard error in preference to `debug`.
    pub(crate) panics: Option<OwnedFd>,
    pub(crate) format: LogFormat,
    /// Debug records are wanted, and of the gofer.
    pub(crate) verbose: bool,
}

/// Format of the debug log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
    JsonK8s,
}

/// Reads the command line, without the program's own name, and takes over the descriptors that it names.
///
/// The text is read to its end first. A refusal has changed nothing, so that another program can still take over.
pub(crate) fn parse(argv: impl Iterator<Item = OsString>) -> Result<Args, Refusal> {
    let argv: Vec<OsString> = argv.collect();
    read::read(&argv).map_err(|fault| Refusal::new(fault, &argv))
}

/// What a command line can ask for that starts no gofer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Help,
    Version,
}

/// Why the command line is refused, and where to say so.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// It is of no known generation, or not understood: a gofer that knows it may take over.
    pub(crate) unknown: bool,
    /// Somebody has asked something instead of starting a gofer.
    pub(crate) wanted: Option<Wanted>,
    pub(crate) error: StartError,
    /// `--log-fd`, `--debug-log-fd`, `--panic-log-fd`, as far as they can be made out. Not owned.
    errors: Option<RawFd>,
    debug: Option<RawFd>,
    panics: Option<RawFd>,
    format: LogFormat,
}

impl Refusal {
    /// Copies of the descriptors that it can be logged to. They do not survive an exec, and the originals do.
    pub(crate) fn logs(&self) -> LogArgs {
        let copy = |number: Option<RawFd>| number.and_then(|number| descriptors::duplicate(number).ok());
        LogArgs {
            errors: copy(self.errors),
            debug: copy(self.debug),
            panics: copy(self.panics),
            format: self.format,
            verbose: false,
        }
    }

    /// The argument at fault may stand before the logs' and be of any form, so their usual one is looked for.
    fn new(fault: read::Fault, argv: &[OsString]) -> Self {
        let value = |name: &str| {
            let words = argv.iter().map_while(|word| word.to_str().filter(|word| *word != "gofer"));
            let dashless = words.filter_map(|word| word.strip_prefix("--").or_else(|| word.strip_prefix('-')));
            dashless.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).last()
        };
        let number = |name: &str| value(name).and_then(|text| text.parse().ok());
        Self {
            unknown: fault.unknown,
            wanted: fault.wanted,
            error: fault.error,
            errors: number("log-fd"),
            debug: number("debug-log-fd"),
            panics: number("panic-log-fd"),
            format: value("debug-log-format").and_then(LogFormat::named).unwrap_or_default(),
        }
    }
}

/// Closes what was inherited and is named by no flag. Nothing may have been opened yet beside `args`.
pub(crate) fn close_strangers(args: &Args) -> Result<(), StartError> {
    let Donated { spec, mounts, io, dev, rpc, profiles, pin_ring, sentry_exit, .. } = &args.donated;
    let Donated { sync_userns, sync_nvproxy, sync_chroot, .. } = &args.donated;
    let log = &args.log;
    let maybe = [spec, mounts, dev, rpc, sync_userns, sync_nvproxy, sync_chroot, pin_ring, sentry_exit];
    let logs = [&log.errors, &log.debug, &log.panics];
    let keep: Vec<&OwnedFd> = maybe.into_iter().chain(logs).flatten().chain(io).chain(profiles).collect();
    descriptors::close_others(&keep).map_err(|cause| StartError::new("close inherited descriptors", cause))
}

impl LogFormat {
    /// The one of that name.
    fn named(word: &str) -> Option<Self> {
        match word {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "json-k8s" => Some(Self::JsonK8s),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
