//! End of life: whatever a container was, nothing of it stays.

use std::fs;
use std::time::Instant;

use gofer_integration::runsc::{Generation, Runsc};
use gofer_integration::say;

use crate::runtime::{Runtime, each_with};

/// What is done with a container.
#[derive(Clone, Copy, Debug)]
enum Life {
    Created,
    Run,
    Done,
    Restored,
}

const LIVES: [Life; 4] = [Life::Created, Life::Restored, Life::Run, Life::Done];

/// 51. Every overlay once, each life and each mode of directfs at least once; all combinations at full length.
#[test]
fn no_gofer_process_mount_or_cgroup_is_left_whatever_the_life_the_overlay_and_directfs() {
    let start = Instant::now();
    each_with(|runsc, program| {
        let modes = runsc.generation.directfs();
        for (number, overlay) in overlays(runsc).iter().enumerate() {
            let chosen = [(LIVES.get(number).copied().unwrap_or(Life::Run), modes[number % modes.len()])];
            let all = LIVES.iter().flat_map(|life| modes.iter().map(|directfs| (*life, *directfs)));
            let due: Vec<_> = if say::long() { all.collect() } else { chosen.to_vec() };
            for (life, directfs) in due {
                live(Runtime::new(runsc, program, directfs), overlay, life);
            }
        }
    });
    say::measured(format_args!("{} s", start.elapsed().as_secs()));
}

/// Every kind of medium, for the root and for all mounts.
fn overlays(runsc: &Runsc) -> &'static [&'static str] {
    match runsc.generation {
        Generation::E22 => &["none", "root:memory", "all:memory", "root:DIR", "all:DIR"],
        _ => &["none", "root:self", "all:self", "root:memory", "all:memory", "root:dir=DIR", "all:dir=DIR"],
    }
}

fn live(runtime: Runtime, overlay: &str, life: Life) {
    let [medium, volume, image] = ["medium", "volume", "image"].map(|name| runtime.path(name));
    for dir in [&medium, &volume, &image] {
        fs::create_dir(dir).expect("a directory");
    }
    let overlay = overlay.replace("DIR", medium.to_str().expect("a path"));
    let runtime = runtime.flag(format!("--overlay2={overlay}"));
    let script = match life {
        Life::Run => "echo > /tmp/file; echo > /data/file; exit 3",
        _ => "echo > /tmp/file; echo > /data/file; sleep 1000",
    };
    let container = runtime.container("one", script).bind(&volume, "/data");
    match life {
        Life::Created => {
            container.started();
            container.exec("cat /tmp/file");
            runtime.done(&["kill", &container.id, "KILL"]);
            container.delete();
        }
        Life::Run => {
            let output = container.run().output().expect("runsc starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{:?} {overlay}: {said}", runtime.generation);
        }
        Life::Done => drop(runtime.done(&["do", "/bin/true"])),
        Life::Restored => {
            let image = image.to_str().expect("a path");
            container.started();
            runtime.done(&["checkpoint", "--image-path", image, &container.id]);
            container.delete();
            let bundle = container.bundle();
            runtime.done(&["restore", "--detach", "--bundle", bundle, "--image-path", image, &container.id]);
            container.exec("cat /tmp/file /data/file");
            container.delete();
        }
    }
    runtime.assert_nothing_is_left();
    assert_eq!(fs::read_dir(&medium).expect("a directory").count(), 0, "{:?} {overlay}", runtime.generation);
}
