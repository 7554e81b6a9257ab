//! A client of a LISAFS server: for programs that want its files, and for tests and benchmarks.
//!
//! ```no_run
//! use gofer_protocol::client::{Client, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("/run/gofer.sock", &Options::default())?;
//!
//! // By path, from the root of the connection; symbolic links are not followed.
//! let (_, notes) = client.create_new(b"/notes.txt", 0o644)?;
//! notes.write_all_at(b"remember the milk\n", 0)?;
//! notes.sync()?;
//!
//! for entry in client.lookup(b"/")?.read_dir()? {
//!     let entry = entry?;
//!     println!("{:?} {}", entry.file_type, String::from_utf8_lossy(&entry.name));
//! }
//!
//! // Message by message, with the protocol's own words.
//! let root = client.root().control_fd;
//! println!("{} blocks free", client.fstat_fs(root)?.blocks_free);
//! # Ok(())
//! # }
//! ```
//!
//! There are three layers, each in terms of the one below:
//!
//! | layer | is | where |
//! |---|---|---|
//! | [`Node`], [`File`], [`ReadDir`], paths | descriptors that close themselves, data of any length | `node`, `file`, `dir`, `path` |
//! | a method of [`Client`] for each message | one request and its reply | `message/<family>` |
//! | [`Client::call`] | any request, known to this crate or not | `call`, over a `communicator` from the `link` |
//!
//! A client may be used by any number of threads. Each call takes an idle channel, or the socket where all channels are
//! busy, and blocks until its reply is there. When the server dies, every pending and every later call fails at once
//! with `EIO`, and the error says why ([`ErrorKind::Connection`]).
//!
//! The server is believed in what it says about files, and in nothing else: lengths, counts, numbers and descriptors in
//! its replies are checked.

use std::fmt;

use crate::record::Inode;
use crate::sync::Arc;

mod call;
mod closing;
mod communicator;
mod connect;
mod dir;
mod donated;
mod error;
mod file;
mod link;
mod message;
mod node;
mod path;
mod watcher;

pub use call::Reply;
pub use closing::Fd;
pub use connect::Options;
pub use dir::{Entry, ReadDir};
pub use donated::Donated;
pub use error::{Error, ErrorKind};
pub use file::File;
pub use message::{Accepted, Bound, Created, Mounted, Opened, Walked};
pub use node::Node;

use connect::Connection;

/// A connection to a server, shared by all clones and by everything that was made from it. It ends with the last.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

impl Client {
    /// The root of the connection. Its descriptor belongs to the connection: do not close it.
    #[must_use]
    pub fn root(&self) -> &Inode {
        &self.connection.root
    }

    /// Payload bytes that a message may have.
    #[must_use]
    pub fn max_message_size(&self) -> usize {
        self.connection.limit
    }

    /// Channels that work now.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.connection.link.channels()
    }

    /// Whether the server is still there, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.connection.link.death().is_none()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("root", &self.root().control_fd)
            .field("channels", &self.channels())
            .field("ended", &self.connection.link.death())
            .finish()
    }
}
