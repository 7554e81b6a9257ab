//! The serving part of the process: connections in the container's root, until the last one has ended.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use gofer::contract::Generation;
use gofer::serve::Totals;
use gofer::{CharDevices, Limits, MountPoint, Policy, Server};

use super::StartError;
use super::args::Args;
use crate::confine::Confined;
use crate::prepare::Connection as Served;

/// Serves every connection of `args` and returns, with what was done, when the last one has ended.
///
/// One thread stands in `/proc/self/fd` before the filter forbids `unshare(2)`, seals the process and starts all others,
/// which inherit its place. The first thread keeps the container's root as its working directory.
///
/// # Errors
/// A sentence that names what could not be served; nothing was.
pub(super) fn until_done(args: &mut Args, confined: Confined) -> Result<Totals, StartError> {
    let seal = std::thread::Builder::new().name("gofer start".into()).spawn({
        let io = std::mem::take(&mut args.donated.io);
        let dev = args.donated.dev.take();
        let policy = policy(args);
        move || start(confined, io, dev, policy)
    });
    let seal = seal.map_err(|error| StartError::new("start a thread", error))?;
    let (server, connections) = seal.join().map_err(|_| StartError::sentence("starting to serve failed"))??;
    for connection in connections {
        connection.wait();
    }
    tracing::info!("all connections have ended");
    Ok(server.totals())
}

fn policy(args: &Args) -> Policy {
    // E22 and E24 have no flag for character devices: there, opens succeed.
    let char_devices = if args.generation >= Generation::E26 { args.char_devices } else { CharDevices::Passthrough };
    Policy {
        read_only: false,
        host_sockets: args.host_sockets,
        host_fifo: args.host_fifo,
        char_devices,
        donate_mount_point: args.directfs,
    }
}

fn start(
    confined: Confined,
    io: Vec<OwnedFd>,
    dev: Option<OwnedFd>,
    policy: Policy,
) -> Result<(Arc<Server>, Vec<Arc<gofer::Connection>>), StartError> {
    let Confined { descriptors, mountinfo, connections, filter } = confined;
    let server = Server::confined(descriptors, mountinfo);
    server.stand().map_err(|error| StartError::new("enter the directory of descriptors", error))?;
    filter.seal()?;
    tracing::info!("system call filter installed");
    let mut serving = Vec::with_capacity(io.len() + 1);
    for (socket, Served { path, place, read_only }) in io.into_iter().zip(connections) {
        let policy = Policy { read_only, ..policy };
        serving.push(connect(&server, socket, &path, server.mount_of(&path, place), policy)?);
    }
    if let Some(socket) = dev {
        // The device proxies of the sandbox open what was bound there.
        let policy = Policy { char_devices: CharDevices::Passthrough, ..policy };
        let path = Path::new("/dev");
        serving.push(connect(&server, socket, path, server.mount_at(path), policy)?);
    }
    Ok((server, serving))
}

fn connect(
    server: &Arc<Server>,
    socket: OwnedFd,
    path: &Path,
    mount: std::io::Result<MountPoint>,
    policy: Policy,
) -> Result<Arc<gofer::Connection>, StartError> {
    let shown = path.display();
    let read_only = policy.read_only;
    let refused = |error| StartError::new(format_args!("serve {shown}"), error);
    let connection = server.connect(socket, mount.map_err(refused)?, policy, Limits::default()).map_err(refused)?;
    tracing::info!("serving {shown} read_only={read_only}");
    Ok(connection)
}
