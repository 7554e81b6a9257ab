//! Starts a gofer on a directory without a sandbox: `launch GENERATION EXECUTABLE DIRECTORY`, where the executable is a
//! gofer or a `runsc`, and the generation `e22`, `e24` or `e26`. Needs root.

use std::error::Error;

use gofer::contract::Generation;
use gofer::launch::{Bundle, Launcher, Namespaces};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [generation, executable, directory] = arguments.try_into().map_err(|_| "three arguments are needed")?;
    let generation = match generation.as_str() {
        "e22" => Generation::E22,
        "e24" => Generation::E24,
        "e26" => Generation::E26,
        other => return Err(format!("there is no generation {other}").into()),
    };
    let bundle = std::env::temp_dir().join(format!("launch-{}", std::process::id()));
    Bundle::new(std::path::absolute(directory)?).write(&bundle)?;
    let launcher = Launcher::new(generation, executable, &bundle).namespaces(Namespaces::with_identity());
    let started = launcher.start();
    std::fs::remove_dir_all(&bundle)?;

    let mut gofer = started?;
    println!("process {} serves {} connections", gofer.pid(), gofer.take_clients().len());
    // Its only client is closed, so that it ends.
    println!("it {}", gofer.wait()?);
    Ok(())
}
