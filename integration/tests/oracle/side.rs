//! Both gofers, each with a tree of its own and a client.

use std::fs;
use std::path::{Path, PathBuf};

use gofer::contract::Generation;
use gofer::launch::{Bundle, Launched, Launcher, Namespaces};
use gofer_integration::{Ask, Gofer, Raw, say};
use gofer_protocol::FdId;
use tempfile::TempDir;

use crate::step::{Outcome, SLOTS, Step};
use crate::tree;

/// The original and ours over twins.
pub(crate) struct Pair {
    stock: Side,
    ours: Side,
    dir: TempDir,
}

struct Side {
    client: Raw,
    slots: [FdId; SLOTS],
    _server: Server,
}

#[allow(dead_code, reason = "held to be ended on drop")]
enum Server {
    Launched(Launched),
    Serving(Gofer),
}

impl Pair {
    pub(crate) fn new(generation: Generation) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).expect("a directory");
            path
        };
        let stock = launched(generation, &stock(generation), &at("stock"), &dir.path().join("bundle-of-stock"));
        let tree = at("ours");
        // As a stand-alone server with `GOFER_ORACLE=serve`, for a look without the process around it.
        let ours = if std::env::var_os("GOFER_ORACLE").is_some_and(|how| how == "serve") {
            let (gofer, stream) = Gofer::serve(&tree, &[]);
            Side::new(Raw::new(stream), Server::Serving(gofer))
        } else {
            launched(generation, &Gofer::binary(), &tree, &dir.path().join("bundle-of-ours"))
        };
        Self { stock, ours, dir }
    }

    pub(crate) fn both(&mut self, step: &Step) -> (Outcome, Outcome) {
        (self.stock.ask(step), self.ours.ask(step))
    }

    /// Empties the slot that a step may have filled.
    pub(crate) fn forget(&mut self, step: &Step) {
        for side in [&mut self.stock, &mut self.ours] {
            side.client.close(&[std::mem::replace(&mut side.slots[step.into], FdId(0))]);
        }
    }

    pub(crate) fn trees(&self) -> (Vec<String>, Vec<String>) {
        (tree::lines(&self.dir.path().join("stock")), tree::lines(&self.dir.path().join("ours")))
    }
}

impl Side {
    fn new(client: Raw, server: Server) -> Self {
        let mut slots = [FdId(0); SLOTS];
        slots[0] = client.mount();
        Self { client, slots, _server: server }
    }

    fn ask(&mut self, step: &Step) -> Outcome {
        step.ask(&self.client, &mut self.slots)
    }
}

/// Whether there is a `runsc` of the generation, and the right to start it; says aloud if not.
pub(crate) fn can_run(generation: Generation) -> bool {
    let runsc = stock(generation);
    if !rustix::process::geteuid().is_root() {
        say::skipped("needs root, to make name spaces");
    } else if !runsc.exists() {
        say::skipped(format_args!("no {}", runsc.display()));
    } else {
        return true;
    }
    false
}

fn launched(generation: Generation, executable: &Path, root: &Path, bundle: &Path) -> Side {
    Bundle::new(root).write(bundle).expect("a bundle");
    let launcher = Launcher::new(generation, executable, bundle).namespaces(Namespaces::default());
    let launcher = if generation == Generation::E22 { launcher } else { launcher.global("--directfs=false") };
    let mut gofer = launcher.start().unwrap_or_else(|error| panic!("{}: {error}", executable.display()));
    let client = gofer.take_clients().pop().expect("a connection");
    Side::new(Raw::new(client), Server::Launched(gofer))
}

fn stock(generation: Generation) -> PathBuf {
    let name = format!("{generation:?}").to_lowercase();
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/runsc")).join(name).join("runsc")
}
