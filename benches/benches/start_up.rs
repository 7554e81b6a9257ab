//! Does a sandbox start as fast with our gofer as with the one that its `runsc` brings?
//!
//! Two measurements for every generation that is there, each in turns with a second run of the original, so that every
//! figure comes with what the same measurement shows where there is no difference:
//!
//! * `runsc run` of a container that runs `true`, to its end;
//! * a gofer alone: from before the process is made to the reply to its first Mount.
//!
//! Needs root. `GOFER_BINARY` is the gofer, an optimised build.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use gofer::contract::Generation;
use gofer::launch::{Bundle, Launcher, Namespaces};
use gofer_benches::interleave::{Controlled, Patience, until_precise};
use gofer_integration::runsc::{self, Runsc};
use gofer_integration::sandbox::Sandbox;
use gofer_integration::{Ask, Gofer, Raw};

/// Two identical arms are told apart by no more than 2 %.
const PATIENCE: Patience = Patience { fewest: 40, most: 600, precision: 0.02 };

fn main() {
    println!("ms                                            ours     stock   ratio  [95 % interval]");
    let dir = tempfile::tempdir().expect("a directory");
    // The sandbox runs as nobody.
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
    for runsc in Runsc::all() {
        let combined = dir.path().join(format!("{:?}", runsc.generation));
        runsc.with_our_gofer(&combined);
        for &directfs in runsc.generation.directfs() {
            let [ours, stock] = [&combined, &runsc.path].map(|program| Sandbox::new(program, &runsc, directfs));
            let measured = until_precise(PATIENCE, || run_true(&ours), || run_true(&stock));
            report("runsc run true", &runsc, directfs, measured);
        }
        let gofer = Gofer::binary();
        let measured = until_precise(
            PATIENCE,
            || first_mount(runsc.generation, &gofer, dir.path()),
            || first_mount(runsc.generation, &runsc.path, dir.path()),
        );
        report("gofer to first Mount", &runsc, None, measured);
    }
}

fn run_true(sandbox: &Sandbox) -> Duration {
    let start = Instant::now();
    let output = sandbox.run("true");
    let took = start.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    took
}

/// As `runsc` starts it by default: with a user name space where there is directfs.
fn first_mount(generation: runsc::Generation, gofer: &Path, dir: &Path) -> Duration {
    let (root, bundle) = (dir.join("root"), dir.join("bundle"));
    fs::create_dir_all(&root).expect("a root");
    Bundle::new(root).write(&bundle).expect("a bundle");
    let launcher = match generation {
        runsc::Generation::E22 => Launcher::new(Generation::E22, gofer, bundle),
        runsc::Generation::E24 => Launcher::new(Generation::E24, gofer, bundle).namespaces(Namespaces::with_identity()),
        runsc::Generation::E26 => Launcher::new(Generation::E26, gofer, bundle).namespaces(Namespaces::with_identity()),
    };
    let start = Instant::now();
    let mut launched = launcher.start().unwrap_or_else(|error| panic!("{generation:?}: {error}"));
    let client = Raw::new(launched.take_clients().swap_remove(0));
    client.mount();
    start.elapsed()
}

fn report(what: &str, runsc: &Runsc, directfs: Option<bool>, measured: Controlled) {
    let directfs = directfs.map_or(String::new(), |on| format!("directfs {}", if on { "on" } else { "off" }));
    println!("{:?} {what:21} {directfs:12} {}", runsc.generation, measured.comparison);
    println!("    the original beside itself         {}", measured.control);
}
