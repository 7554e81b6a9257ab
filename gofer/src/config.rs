//! What a connection may do, and how much of it. Trusted configuration, never from the wire.

/// Policy of one connection. The default is the strictest but for writing, which is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// Refuse every message that changes files, and opening them for writing.
    pub read_only: bool,
    /// What clients may do with sockets of the host.
    pub host_sockets: HostSockets,
    /// Whether clients may open FIFOs of the host.
    pub host_fifo: HostFifo,
    /// Whether clients may open character devices.
    pub char_devices: CharDevices,
    /// Give the mount point's own descriptor to the client, which then does file work itself ("directfs").
    pub donate_mount_point: bool,
}

/// What clients may do with sockets of the host; `--host-uds` of `runsc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostSockets {
    /// Neither connect nor bind.
    #[default]
    None,
    /// Connect to sockets that exist.
    Open,
    /// Bind new ones.
    Create,
    /// Both.
    All,
}

impl HostSockets {
    /// Connecting to a socket is allowed.
    pub(crate) fn open(self) -> bool {
        matches!(self, Self::Open | Self::All)
    }

    /// Binding a socket is allowed.
    pub(crate) fn create(self) -> bool {
        matches!(self, Self::Create | Self::All)
    }
}

/// Whether clients may open FIFOs of the host; `--host-fifo` of `runsc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostFifo {
    /// Refused with `EPERM`.
    #[default]
    None,
    /// Allowed.
    Open,
}

/// Whether clients may open character devices; `--character-device-policy` of `runsc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CharDevices {
    /// The client emulates its devices; the host's are refused with `EPERM`.
    #[default]
    EmulatedOnly,
    /// The client emulates the devices it knows; the host's may be opened.
    PreferEmulated,
    /// The host's may be opened.
    Passthrough,
}

impl CharDevices {
    /// Opening a device of the host is allowed.
    pub(crate) fn open(self) -> bool {
        self != Self::EmulatedOnly
    }
}

/// How much one connection may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Descriptors (control, open, bound) that a client may hold; `EMFILE` beyond.
    pub fds: usize,
    /// Payload bytes of a message, announced to the client.
    pub message_size: u32,
    /// Bytes of host records that one Getdents64 reads at most, whatever the client's budget.
    pub listing_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fds: usize::MAX, message_size: gofer_protocol::MAX_MESSAGE_SIZE, listing_bytes: 128 << 10 }
    }
}
