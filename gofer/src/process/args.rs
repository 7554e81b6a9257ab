//! The command line as typed values; each descriptor number becomes an [`OwnedFd`] once, here.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use gofer::contract::{Generation, MountConf};
use gofer::{CharDevices, HostFifo, HostSockets};

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
    pub(crate) spec: OwnedFd,
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
