//! Command lines that are refused: by the program as it is, and by a combined file that was told not to hand over. One
//! that was not told so lets the original serve.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gofer::contract::Generation::{self, E22, E24, E26};
use gofer::launch::Ended;
use gofer_integration::{Ask, Gofer, say};
use serde_json::Value;

use crate::subject::{Subject, clients, each, each_of_ours, is_stock, proc, stock};

/// A command line that is refused.
struct Case {
    generations: &'static [Generation],
    change: fn(&mut Vec<String>),
    /// What the message names.
    names: &'static str,
    code: i32,
}

const ALL: &[Generation] = &[E22, E24, E26];
const CONFS: &[Generation] = &[E24, E26];

/// 5.
const UNKNOWN: &[Case] = &[
    Case { generations: ALL, change: |words| words.insert(1, "--of-tomorrow=1".into()), names: "of-tomorrow", code: 2 },
    Case { generations: ALL, change: |words| behind(words, "--of-tomorrow=1"), names: "of-tomorrow", code: 128 },
    Case { generations: ALL, change: |words| words.insert(1, "--fdlimit=many".into()), names: "fdlimit", code: 2 },
    Case { generations: ALL, change: |words| behind(words, "--mounts-fd=many"), names: "mounts-fd", code: 128 },
    Case { generations: ALL, change: |words| behind(words, "--io-fds=0x7"), names: "io-fds", code: 128 },
    Case { generations: ALL, change: |words| words.insert(1, "---debug".into()), names: "---debug", code: 2 },
];

/// 6.
const MISSING: &[Case] = &[
    Case { generations: ALL, change: without_bundle, names: "bundle", code: 128 },
    Case { generations: ALL, change: |words| without(words, "spec-fd"), names: "spec-fd", code: 128 },
    Case { generations: ALL, change: |words| without(words, "io-fds"), names: "io-fds", code: 128 },
];

/// 7.
const PATTERNS: &[Case] = &[
    Case { generations: &[E26], change: |words| without(words, "gofer-mount-confs"), names: "rpc-fd", code: 128 },
    Case { generations: &[E26], change: |words| without(words, "rpc-fd"), names: "sync-chroot-fd", code: 128 },
    Case { generations: &[E26], change: |words| without(words, "sync-chroot-fd"), names: "rpc-fd", code: 128 },
    Case { generations: &[E26, E22], change: with_nvproxy, names: "sync-nvproxy-fd", code: 128 },
    Case { generations: &[E22], change: |words| behind(words, "--dev-io-fd=3"), names: "dev-io-fd", code: 128 },
    Case { generations: &[E24], change: |words| behind(words, "--uid=1"), names: "uid", code: 128 },
    Case { generations: &[E22, E24], change: |words| words.push("word".into()), names: "word", code: 128 },
    Case { generations: &[E26], change: |words| words.push("another".into()), names: "another", code: 128 },
    Case { generations: &[E26], change: |words| words.truncate(words.len() - 1), names: "id", code: 128 },
];

/// What the original gives itself when it goes on in a second image: in a combined file that is the original's to judge.
const ITS_OWN: &[Case] = &[Case {
    generations: CONFS,
    change: |words| behind(words, "--proc-mount-sync-fd=3"),
    names: "proc-mount-sync-fd",
    code: 128,
}];

/// 8.
const MOUNT_CONFS: &[Case] = &[
    Case { generations: CONFS, change: |words| configured(words, "none:none"), names: CONF, code: 128 },
    Case { generations: CONFS, change: |words| configured(words, "lisafs"), names: CONF, code: 128 },
    Case { generations: CONFS, change: |words| configured(words, "lisafs:self:2g"), names: CONF, code: 128 },
    Case { generations: CONFS, change: |words| configured(words, "zfs:none"), names: CONF, code: 128 },
    Case { generations: &[E24], change: |words| configured(words, "lisafs:memory:size=1g"), names: CONF, code: 128 },
];
const CONF: &str = "gofer-mount-confs";

/// 5.
#[test]
fn an_unknown_flag_or_a_malformed_number_ends_it_with_a_message_that_names_the_flag() {
    each(|subject| refuses(subject, &subject.executable, UNKNOWN));
}

/// 6.
#[test]
fn a_missing_bundle_specification_or_connection_ends_it_with_128() {
    each(|subject| refuses(subject, &subject.executable, MISSING));
}

/// 7.
#[test]
fn flags_that_no_generation_has_together_are_refused() {
    // The originals ignore some of these words.
    each_of_ours(|subject| {
        refuses(subject, &subject.executable, PATTERNS);
        refuses(subject, &subject.executable, ITS_OWN);
    });
}

/// 8.
#[test]
fn configurations_of_mounts_that_no_generation_has_are_refused() {
    each(|subject| refuses(subject, &subject.executable, MOUNT_CONFS));
}

/// 5 to 8.
#[test]
fn a_combined_file_that_shall_fail_refuses_all_the_same() {
    let made = tempfile::tempdir().expect("a directory");
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    // One for all generations: the original in it does not get its turn.
    let file = OnceCell::new();
    each_of_ours(|subject| {
        let Some(combined) = file.get_or_init(|| combined(E24, made.path(), "fail")) else { return };
        for cases in [UNKNOWN, MISSING, PATTERNS, MOUNT_CONFS] {
            refuses(subject, combined, cases);
        }
    });
}

/// Each case on its own: without a debug log what is said goes to standard error, with one to that.
fn refuses(subject: &Subject, executable: &Path, cases: &[Case]) {
    for case in cases.iter().filter(|case| case.generations.contains(&subject.generation)) {
        for debug in [false, true] {
            for name in ["log", "error", "debug"] {
                let _ = fs::remove_file(subject.path(name));
            }
            let launcher = subject.launcher_of(executable, &subject.bundle()).arguments(case.change);
            let launcher = launcher.standard_error(subject.create("error"));
            let launcher = if debug { launcher.debug_log(subject.create("debug")) } else { launcher };
            let mut gofer = launcher.spawn().expect("a process");
            let ended = gofer.wait().expect("an end");
            let read = |name: &str| fs::read_to_string(subject.path(name)).unwrap_or_default();
            let (said, log) = (read(if debug { "debug" } else { "error" }), read("log"));
            let about = format!("{:?}, {}: {said}{log}", subject.generation, case.names);
            assert_eq!(ended, Ended::Exited(case.code), "{about}");
            if is_stock() {
                continue;
            }
            assert!(said.contains(case.names), "{about}");
            let record: Value = serde_json::from_str(&log).unwrap_or_else(|error| panic!("{error}: {about}"));
            assert!(record["msg"].as_str().is_some_and(|text| text.contains(case.names)), "{about}");
        }
    }
}

/// Command lines that ours does not know and the original of the same generation does. That of E22 knows none: a word
/// behind the flags hides those that it adds itself.
const BEYOND_US: &[Case] = &[
    Case { generations: &[E24], change: |words| words.push("word".into()), names: "word", code: 0 },
    Case { generations: &[E26], change: |words| without(words, "sync-chroot-fd"), names: "sync-chroot-fd", code: 0 },
];

#[test]
fn the_original_serves_what_is_beyond_us_after_one_line_that_names_the_flag() {
    each_of_ours(|subject| {
        let Some(combined) = combined(subject.generation, &subject.path(""), "stock") else { return };
        let launcher = || subject.launcher_of(&combined, &subject.bundle()).debug_log(subject.create("debug"));
        let log = || fs::read_to_string(subject.path("debug")).expect("a log");
        let ours = |log: &str| log.lines().filter(|line| line.contains("original gofer")).count();
        for case in BEYOND_US.iter().filter(|case| case.generations.contains(&subject.generation)) {
            let mut gofer = subject.started(launcher().arguments(case.change));
            let held = clients(&mut gofer);
            held[0].mount();
            assert!(proc(&gofer, "cmdline").starts_with("runsc-gofer-stock\0"));
            assert!(ours(&log()) == 1 && log().contains(case.names), "{}", log());
            drop(held);
            assert_eq!(gofer.wait().expect("an end"), Ended::Exited(0));
            assert_eq!(subject.log(), "", "it is no error");
            fs::remove_file(subject.path("debug")).expect("a log");
        }
        // What neither knows is the original's to refuse, in its own words.
        let unknown = launcher().arguments(UNKNOWN[1].change).standard_error(subject.create("error"));
        let mut gofer = unknown.spawn().expect("a process");
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
        assert!(ours(&log()) == 1 && log().contains("of-tomorrow"), "{}", log());
        let said = log() + &fs::read_to_string(subject.path("error")).expect("standard error");
        assert!(said.contains("flag provided but not defined: -of-tomorrow"), "{said}");
    });
}

/// A combined file of this program and the generation's `runsc`.
fn combined(generation: Generation, directory: &Path, on_unknown: &str) -> Option<PathBuf> {
    let runsc = stock(generation);
    if !runsc.exists() {
        say::skipped(format_args!("no {}", runsc.display()));
        return None;
    }
    let out = directory.join("combined");
    let mut install = Command::new(Gofer::binary());
    install.arg("install").arg("--runsc").arg(runsc).arg("--out").arg(&out).arg(format!("--on-unknown={on_unknown}"));
    let output = install.output().expect("gofer starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(out)
}

/// Adds a flag behind the word `gofer` and before all others.
fn behind(words: &mut Vec<String>, flag: &str) {
    let at = words.iter().position(|word| word == "gofer").expect("the word");
    words.insert(at + 1, flag.to_owned());
}

fn without(words: &mut Vec<String>, flag: &str) {
    words.retain(|word| !word.starts_with(&format!("--{flag}=")));
}

fn without_bundle(words: &mut Vec<String>) {
    let at = words.iter().position(|word| word == "--bundle").expect("a bundle");
    words.drain(at..at + 2);
}

fn with_nvproxy(words: &mut Vec<String>) {
    behind(words, "--sync-nvproxy-fd=3");
}

fn configured(words: &mut Vec<String>, conf: &str) {
    without(words, CONF);
    behind(words, &format!("--{CONF}={conf}"));
}
