//! Which process is the gofer, and what it was started with.

use std::fs;
use std::path::Path;

use gofer_integration::runsc::{Generation, Runsc};
use gofer_integration::sandbox::Sandbox;

use super::{Place, each_with_sandbox, sentence, switch};

/// A process that runs from `program`.
struct Seen {
    args: Vec<String>,
    environment: Vec<String>,
    maps: String,
}

impl Seen {
    fn is_gofer(&self) -> bool {
        self.args.iter().any(|arg| arg == "gofer")
    }
}

fn processes(program: &Path) -> Vec<Seen> {
    let program = fs::canonicalize(program).expect("the file");
    let all = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok).map(|entry| entry.path());
    all.filter(|process| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program))
        .filter_map(|process| {
            let words = |name: &str| {
                let bytes = fs::read(process.join(name)).ok()?;
                Some(bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
            };
            let maps = fs::read_to_string(process.join("maps")).ok()?;
            Some(Seen { args: words("cmdline")?, environment: words("environ")?, maps })
        })
        .collect()
}

fn the_gofer(program: &Path) -> Seen {
    let mut gofers: Vec<_> = processes(program).into_iter().filter(Seen::is_gofer).collect();
    assert_eq!(gofers.len(), 1, "one gofer a container");
    gofers.remove(0)
}

/// Whether a line of `maps` is of the combined file, where the kernel puts position-independent programs: what the
/// `runsc` in it maps is below.
fn is_of_the_shim(line: &str) -> bool {
    let start = line.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
    line.ends_with("/combined") && start.is_some_and(|start| start >= 1 << 40)
}

fn started(program: &Path, runsc: &Runsc) -> Sandbox {
    let sandbox = Sandbox::new(program, runsc, None);
    sandbox.start("sleep 1000");
    sandbox
}

#[test]
fn gofer_and_sandbox_run_from_the_combined_file_and_keep_nothing_writable_of_it() {
    each_with_sandbox(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        let _sandbox = started(&combined, runsc);
        let seen = processes(&combined);
        assert!(seen.iter().any(|process| !process.is_gofer()), "{runsc:?}: the sandbox runs from it too");
        assert_eq!(seen.iter().filter(|process| process.is_gofer()).count(), 1, "{runsc:?}");
        for process in &seen {
            let left: Vec<_> = process.maps.lines().filter(|line| is_of_the_shim(line)).collect();
            // Stubs of a sandbox have unmapped everything.
            assert!(!process.is_gofer() || !left.is_empty(), "{runsc:?}: the code that jumped stays");
            assert!(left.iter().all(|line| line.contains(" r-xp ")), "{runsc:?}: {left:?}");
        }
    });
}

#[test]
fn a_capped_original_gets_the_plans_workers_whatever_the_variable_was() {
    each_with_sandbox(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        if runsc.generation == Generation::E22 {
            let why = sentence(&switch("stock-capped", &combined));
            assert!(why.contains("20221219") && why.contains("environment"), "{why}");
            return;
        }
        assert!(switch("stock-capped", &combined).status.success());
        let _sandbox = started(&combined, runsc);
        let capped: Vec<_> = the_gofer(&combined).environment;
        let values: Vec<_> = capped.iter().filter_map(|word| word.strip_prefix("GOMAXPROCS=")).collect();
        let [value] = values[..] else { panic!("{runsc:?}: one value, not {values:?}") };
        assert!((1..=8).contains(&value.parse::<usize>().expect("a number")), "{runsc:?}: {value}");
    });
}

#[test]
fn a_switch_leaves_a_running_container_working_and_counts_for_the_next() {
    each_with_sandbox(|runsc| {
        let place = Place::new();
        let combined = place.combined(runsc, "stock");
        let sandbox = started(&combined, runsc);
        assert!(switch("ours", &combined).status.success());
        let output = sandbox.exec("echo > /tmp/after && echo still");
        assert_eq!(output.stdout, b"still\n", "{runsc:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(processes(&combined).is_empty(), "{runsc:?}: the running ones keep the old file");
        assert_eq!(place.names(), ["combined"]);
    });
}
