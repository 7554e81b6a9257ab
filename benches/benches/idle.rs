//! What does an idle gofer take, beside the one that its `runsc` brings?
//!
//! One container for each generation, directfs on and off, and each gofer; it sleeps, and its gofer is looked at after
//! a while. Private anonymous memory is `Pss_Anon` of `smaps_rollup`. Needs root; `GOFER_BINARY` is the gofer, an
//! optimised build.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use gofer_integration::footprint;
use gofer_integration::runsc::Runsc;
use gofer_integration::sandbox::Sandbox;

/// Long enough for a Go program to collect its garbage and give it back.
const SETTLED: Duration = Duration::from_secs(5);

fn main() {
    println!("                          ours: KiB, threads    stock: KiB, threads   stock/ours");
    let dir = tempfile::tempdir().expect("a directory");
    // The sandbox runs as nobody.
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
    let volume = dir.path().join("volume");
    fs::create_dir(&volume).expect("a volume");
    for runsc in Runsc::all() {
        let combined = dir.path().join(format!("{:?}", runsc.generation));
        runsc.with_our_gofer(&combined);
        for &directfs in runsc.generation.directfs() {
            let sandboxes = [&combined, &runsc.path]
                .map(|program| Sandbox::new(program, &runsc, directfs).bind(&volume, "/data", &["rbind", "rw"]));
            for sandbox in &sandboxes {
                sandbox.start("sleep 1000");
            }
            sleep(SETTLED);
            let [ours, stock] = sandboxes.each_ref().map(look);
            let directfs = directfs.map_or(String::new(), |on| format!("directfs {}", if on { "on" } else { "off" }));
            let Footprint { kib, threads } = ours;
            let ratio = stock.kib / kib.max(1);
            println!(
                "{:?} {directfs:20} {kib:8} {threads:8} {:15} {:8}     {ratio:8}",
                runsc.generation, stock.kib, stock.threads
            );
        }
    }
}

struct Footprint {
    kib: u64,
    threads: u64,
}

fn look(sandbox: &Sandbox) -> Footprint {
    let gofers = sandbox.gofers();
    let [gofer] = gofers[..] else { panic!("one gofer, not {gofers:?}") };
    Footprint { kib: footprint::anonymous_kib(gofer), threads: footprint::status(gofer, "Threads:") }
}
