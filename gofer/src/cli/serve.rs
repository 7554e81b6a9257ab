//! `gofer serve`: a directory for clients of a Unix socket, or for one client on an inherited socket.

use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use gofer::serve::{Connection, MountPoint, Server};
use gofer::{CharDevices, HostFifo, HostSockets, Limits, Policy};
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::listener::Listener;
use super::{Failure, inherited, limits};

/// How long the accept loop rests when the process is out of descriptors.
const REST: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("where").required(true))]
pub(super) struct Args {
    /// Directory to serve; a file of another type is served as a root without entries.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Socket to listen on; made with mode 0600, replaced if no server listens there, removed at the end.
    #[arg(long, value_name = "PATH", group = "where")]
    socket: Option<PathBuf>,
    /// Inherited, connected stream socket, above 2, to serve a single client on; ends with the client.
    #[arg(long, value_name = "N", group = "where")]
    fd: Option<RawFd>,
    /// Refuse everything that changes files.
    #[arg(long)]
    readonly: bool,
    /// What clients may do with sockets of the host: connect (open), bind (create), both (all).
    #[arg(long, value_name = "WHAT", default_value = "none")]
    host_uds: HostUds,
    /// Whether clients may open FIFOs of the host.
    #[arg(long, value_name = "WHAT", default_value = "none")]
    host_fifo: Fifo,
    /// Whether clients may open character devices of the host.
    #[arg(long, value_name = "POLICY", default_value = "emulated-only")]
    character_device_policy: CharDevicePolicy,
    /// Give clients a descriptor of the root, for those that do file work themselves ("directfs").
    #[arg(long)]
    donate_mount_point: bool,
    /// Descriptors that each client may hold [default: as many as the process may have].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_fds: Option<u32>,
    /// Clients at a time.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: u32,
    /// Log requests that fail, and why connections end.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HostUds {
    None,
    Open,
    Create,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Fifo {
    None,
    Open,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CharDevicePolicy {
    EmulatedOnly,
    PreferEmulated,
    Passthrough,
}

impl Args {
    fn policy(&self) -> Policy {
        Policy {
            read_only: self.readonly,
            host_sockets: match self.host_uds {
                HostUds::None => HostSockets::None,
                HostUds::Open => HostSockets::Open,
                HostUds::Create => HostSockets::Create,
                HostUds::All => HostSockets::All,
            },
            host_fifo: match self.host_fifo {
                Fifo::None => HostFifo::None,
                Fifo::Open => HostFifo::Open,
            },
            char_devices: match self.character_device_policy {
                CharDevicePolicy::EmulatedOnly => CharDevices::EmulatedOnly,
                CharDevicePolicy::PreferEmulated => CharDevices::PreferEmulated,
                CharDevicePolicy::Passthrough => CharDevices::Passthrough,
            },
            donate_mount_point: self.donate_mount_point,
        }
    }

    fn limits(&self) -> Limits {
        let fds = self.max_fds.and_then(|fds| usize::try_from(fds).ok());
        Limits { fds: fds.unwrap_or(usize::MAX), ..Limits::default() }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    crate::log::start(if args.verbose { tracing::Level::DEBUG } else { tracing::Level::INFO });
    let inherited = args.fd.map(inherited::connected_socket).transpose()?;
    let service = Service::new(args)?;
    // Removes the socket on its way out, whatever the result is.
    let listening = args.socket.as_deref().map(Listener::bind).transpose()?;
    let open_files = limits::raise_open_files();
    let root = args.root.display();
    tracing::info!("serving {root} unconfined, with all rights of this user, up to {open_files} descriptors");
    // What parsing the command line took lies below what lives on: 12 KiB of an idle server.
    gofer::memory::give_back();
    match (inherited, listening) {
        (Some(socket), _) => run_until_done(service.serve_one(socket)),
        (None, Some((file, listener))) => {
            let result = run_until_done(service.serve_many(listener));
            drop(file);
            result
        }
        (None, None) => Err(Failure::sentence("neither --socket nor --fd is given")),
    }
}

fn run_until_done(service: impl Future<Output = std::io::Result<()>>) -> Result<(), Failure> {
    let fail = |error| Failure::new("wait for clients and signals", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
    runtime.block_on(service).map_err(fail)
}

/// What every client gets.
struct Service {
    server: Arc<Server>,
    root: MountPoint,
    policy: Policy,
    limits: Limits,
    max_clients: usize,
}

impl Service {
    fn new(args: &Args) -> Result<Self, Failure> {
        let server = Server::new().map_err(|error| Failure::new("use /proc/self/fd", error))?;
        let root = server
            .root(&args.root)
            .map_err(|error| Failure::new(format_args!("serve {}", args.root.display()), error))?;
        let max_clients = usize::try_from(args.max_clients).unwrap_or(usize::MAX);
        Ok(Self { server, root, policy: args.policy(), limits: args.limits(), max_clients })
    }

    fn connect(&self, socket: OwnedFd) -> std::io::Result<Arc<Connection>> {
        self.server.connect(socket, self.root.clone(), self.policy, self.limits)
    }

    /// Serves until the client leaves or a signal ends it.
    async fn serve_one(&self, socket: OwnedFd) -> std::io::Result<()> {
        let mut signals = Signals::new()?;
        let connection = self.connect(socket)?;
        let mut ended = ended(&connection);
        tokio::select! {
            _ = &mut ended => return Ok(()),
            () = signals.first() => connection.finish(),
        }
        signals.last_call(ended, &[connection]).await;
        Ok(())
    }

    /// Accepts clients until a signal says to stop; then lets what runs finish.
    async fn serve_many(&self, listener: std::os::unix::net::UnixListener) -> std::io::Result<()> {
        let mut signals = Signals::new()?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let mut clients = Clients::default();
        loop {
            tokio::select! {
                () = signals.first() => break,
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => self.admit(socket, &mut clients),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a client");
                        tokio::time::sleep(REST).await;
                    }
                },
            }
        }
        drop(listener);
        let living = clients.living();
        living.iter().for_each(|connection| connection.finish());
        signals.last_call(all_finished(&living), &living).await;
        Ok(())
    }

    fn admit(&self, socket: tokio::net::UnixStream, clients: &mut Clients) {
        if clients.count() >= self.max_clients {
            tracing::warn!(max_clients = self.max_clients, "refused a client: too many");
            return;
        }
        let connected = socket.into_std().and_then(|socket| {
            socket.set_nonblocking(false)?;
            self.connect(socket.into())
        });
        match connected {
            Ok(connection) => clients.add(&connection),
            Err(error) => tracing::warn!(%error, "cannot serve a client"),
        }
    }
}

/// The clients that may still be there. They live as long as they want, not as long as this list.
#[derive(Default)]
struct Clients(Vec<Weak<Connection>>);

impl Clients {
    fn add(&mut self, connection: &Arc<Connection>) {
        self.0.push(Arc::downgrade(connection));
    }

    fn count(&mut self) -> usize {
        self.0.retain(|client| client.strong_count() > 0);
        self.0.len()
    }

    fn living(&self) -> Vec<Arc<Connection>> {
        self.0.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Is sent when the connection has ended.
fn ended(connection: &Connection) -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    connection.when_finished(move || {
        // No one listens any more after a second signal.
        let _ = sender.send(());
    });
    receiver
}

/// Waits for all of `connections`. Without a thread: at the limit of threads the server still has to end.
async fn all_finished(connections: &[Arc<Connection>]) {
    const STEP: Duration = Duration::from_millis(5);
    for connection in connections {
        while !connection.is_finished() {
            tokio::time::sleep(STEP).await;
        }
    }
}

/// Cuts connections whose clients do not take their replies, or the server could not end before they want it to.
async fn cut_unread(connections: &[Arc<Connection>]) {
    const STEP: Duration = Duration::from_millis(100);
    /// Rounds that a client may leave replies unread: five seconds.
    const PATIENCE: u32 = 50;
    let mut watched: Vec<_> = connections.iter().map(|connection| (connection, 0)).collect();
    while !watched.is_empty() {
        tokio::time::sleep(STEP).await;
        for (connection, unread) in &mut watched {
            *unread = if connection.is_unread() { *unread + 1 } else { 0 };
            if *unread == PATIENCE {
                tracing::warn!("cut off a client that does not read its replies");
                connection.cut();
            }
        }
        watched.retain(|(_, unread)| *unread < PATIENCE);
    }
    std::future::pending().await
}

/// The two signals that ask for an orderly end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits until `connections` have `ended`, unless a further signal cuts that short.
    async fn last_call(&mut self, ended: impl Future, connections: &[Arc<Connection>]) {
        tokio::select! {
            _ = ended => {}
            () = cut_unread(connections) => {}
            () = self.first() => tracing::warn!("stopped before all requests were finished"),
        }
    }

    async fn first(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
