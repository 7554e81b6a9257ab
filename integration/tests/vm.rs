//! The virtual machine keeps its promises, so that other tests may build on it.

use std::fs;
use std::time::Duration;

use gofer_integration::say;
use gofer_integration::vm::{self, Outcome, Vm, VmError};

const PROBE: &str = "/bin/vm-probe";

/// A machine with the probe in it, or None, said loudly, where this host cannot start any.
fn machine() -> Option<Vm> {
    match vm::available() {
        Ok(()) => Some(Vm::new(env!("CARGO_BIN_EXE_vm-init")).file(env!("CARGO_BIN_EXE_vm-probe"), PROBE)),
        Err(error) => {
            say::skipped(error);
            None
        }
    }
}

fn run(vm: Vm, argv: &[&str]) -> Outcome {
    let outcome = vm.run(argv).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("{argv:?}: {:.1} s from start to stop", outcome.elapsed.as_secs_f64());
    outcome
}

#[test]
fn boots_a_kernel_and_returns_exit_status_zero() {
    let Some(vm) = machine() else { return };
    let outcome = run(vm, &[PROBE, "exit", "0"]);
    assert_eq!((outcome.status, outcome.cpus), (0, 1));
    assert!(outcome.kernel.contains("cloud"), "{}", outcome.kernel);
    assert_eq!(outcome.output, [""; 0]);
}

#[test]
fn returns_exit_status_three_and_runs_on_two_cpus() {
    let Some(vm) = machine() else { return };
    let outcome = run(vm.cpus(2), &[PROBE, "exit", "3"]);
    assert_eq!((outcome.status, outcome.cpus), (3, 2));
}

#[test]
fn a_program_ended_by_a_signal_reports_it_as_a_shell_does() {
    let Some(vm) = machine() else { return };
    assert_eq!(run(vm, &[PROBE, "signal"]).status, 128 + 9);
}

#[test]
fn a_program_that_is_not_there_is_said_so() {
    let Some(vm) = machine() else { return };
    let outcome = run(vm, &["/bin/nothing here"]);
    assert_eq!(outcome.status, 127);
    assert!(outcome.output.iter().any(|line| line.contains("starting /bin/nothing here")), "{:?}", outcome.output);
}

#[test]
fn a_program_holds_350_000_descriptors() {
    let Some(vm) = machine() else { return };
    let vm = vm.memory_mib(512).descriptors(400_000);
    let outcome = run(vm, &[PROBE, "descriptors", "350000"]);
    assert_eq!(outcome.status, 0, "{:?}", outcome.output);
    assert!(outcome.output.iter().any(|line| line == "limit Some(400000)"), "{:?}", outcome.output);
    assert!(outcome.output.iter().any(|line| line.starts_with("opened 350000 in ")), "{:?}", outcome.output);
}

#[test]
fn a_program_joins_a_cgroup_v2_with_a_quota() {
    let Some(vm) = machine() else { return };
    let outcome = run(vm, &[PROBE, "cgroup"]);
    assert_eq!(outcome.status, 0, "{:?}", outcome.output);
    for line in ["cpu.max 150000 100000", "member of 0::/probe"] {
        assert!(outcome.output.iter().any(|found| found == line), "{line}: {:?}", outcome.output);
    }
}

#[test]
fn a_program_can_change_its_root() {
    let Some(vm) = machine() else { return };
    let outcome = run(vm, &[PROBE, "pivot"]);
    assert_eq!(outcome.output, ["root has [\"old\"]"]);
}

#[test]
fn a_machine_that_never_stops_is_ended_and_is_a_failure() {
    let Some(vm) = machine() else { return };
    let vm = vm.timeout(Duration::from_secs(8)).kernel_word("gofer_test=never_stops");
    let error = vm.run([PROBE, "hang"]).expect_err("it ended");
    let VmError::Guest(what, _) = error else { panic!("{error}") };
    assert!(what.contains("in time"), "{what}");
    assert!(!a_process_has("gofer_test=never_stops "), "qemu still runs");
}

#[test]
fn an_init_that_is_no_program_is_a_failure_and_ends_the_machine() {
    let Some(_) = machine() else { return };
    let error = Vm::new("/etc/passwd").run([PROBE]).expect_err("it ran");
    let VmError::Guest(what, tail) = error else { panic!("{error}") };
    assert!(what.contains("never said"), "{what}");
    assert!(tail.iter().any(|line| line.contains("panic")), "{tail:?}");
}

/// Whether any process on the host has this text in its command line.
fn a_process_has(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}
