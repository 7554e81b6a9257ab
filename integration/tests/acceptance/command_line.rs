//! Command line: what is understood, in all its forms.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use gofer::contract::{Generation, Lower, MountConf, Upper};
use gofer::launch::{Launched, Launcher, Mount};
use gofer_integration::Ask;

use crate::globals::{APART, TOGETHER};
use crate::subject::{Subject, clients, each, each_of_ours, one, proc};

/// 2.
#[test]
fn every_global_flag_of_any_generation_is_accepted_with_one_dash_and_with_two() {
    // An original knows those of its own generation.
    each_of_ours(|subject| {
        for flags in [TOGETHER, APART] {
            let launcher = || subject.launcher(&subject.bundle());
            let two = flags.iter().fold(launcher(), |all, (name, value)| all.global(format!("--{name}={value}")));
            serves(&mut subject.started(two));
            let one = flags.iter().fold(launcher(), |all, (name, value)| match *value {
                // As its own argument, where there is no doubt that it belongs to the flag.
                "true" => all.global(format!("-{name}")),
                "false" | "1s" => all.global(format!("-{name}={value}")),
                value => all.global(format!("-{name}")).global(value),
            });
            serves(&mut subject.started(one));
        }
    });
}

/// 2, of the one flag whose value means something else each time.
#[test]
fn a_log_of_panics_takes_the_place_of_standard_error() {
    each_of_ours(|subject| {
        let (mut ours, theirs) = UnixPair::new();
        let number = theirs.number;
        let launcher = subject.launcher(&subject.bundle()).global(format!("--panic-log-fd={number}"));
        let mut gofer = subject.started(launcher.stray(theirs.end));
        let held = clients(&mut gofer);
        held[0].mount();
        let link = std::fs::read_link(format!("/proc/{}/fd/2", gofer.pid())).expect("a descriptor");
        assert!(link.to_string_lossy().starts_with("socket:"), "{}", link.display());
        drop(held);
        gofer.wait().expect("an end");
        let mut said = String::new();
        ours.read_to_string(&mut said).expect("a log");
        assert_eq!(said, "", "nobody has panicked");
    });
}

/// A pair of sockets, one of them under a number that no other descriptor of a gofer gets.
struct UnixPair {
    number: i32,
    end: std::os::fd::OwnedFd,
}

impl UnixPair {
    fn new() -> (std::os::unix::net::UnixStream, Self) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let end = rustix::io::fcntl_dupfd_cloexec(&theirs, 200).expect("a number from 200 on");
        (ours, Self { number: end.as_raw_fd(), end })
    }
}

/// 3.
#[test]
fn the_bundle_may_be_a_word_of_its_own_or_not() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).arguments(|words| {
            let at = words.iter().position(|word| word == "--bundle").expect("a bundle");
            let value = words.remove(at + 1);
            words[at] = format!("--bundle={value}");
        });
        serves(&mut subject.started(launcher));
    });
}

/// 3.
#[test]
fn connections_may_be_named_in_either_form() {
    each(|subject| {
        let launcher = with_a_volume(subject).arguments(|words| {
            let mut at: Vec<_> = (0..words.len()).filter(|at| words[*at].starts_with("--io-fds=")).collect();
            assert_eq!(at.len(), 2);
            words[at.remove(1)].remove(0);
            let (_, number) = words[at[0]].split_once('=').expect("a value");
            let number = number.to_owned();
            words.splice(at[0]..=at[0], ["-io-fds".to_owned(), number]);
        });
        serves_both(&mut subject.started(launcher));
    });
}

/// 3.
#[test]
fn connections_may_be_a_list_from_e24_on() {
    let listed = |subject: &Subject| {
        with_a_volume(subject).arguments(|words| {
            let mut numbers = words.iter().filter_map(|word| word.strip_prefix("--io-fds=").map(str::to_owned));
            let list = format!("--io-fds={},{}", numbers.next().expect("a root"), numbers.next().expect("a volume"));
            let at = words.iter().position(|word| word.starts_with("--io-fds=")).expect("a root");
            words.retain(|word| !word.starts_with("--io-fds="));
            words.insert(at, list);
        })
    };
    for generation in [Generation::E24, Generation::E26] {
        one(generation, |subject| serves_both(&mut subject.started(listed(subject))));
    }
    one(Generation::E22, |subject| {
        let mut gofer = listed(subject).spawn().expect("a process");
        assert_eq!(gofer.wait().expect("an end"), gofer::launch::Ended::Exited(128));
    });
}

/// 4.
#[test]
fn a_repeated_scalar_flag_takes_its_last_value_everywhere() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--fdlimit=100").global("--fdlimit=500");
        let launcher = launcher.arguments(|words| {
            let at = words.iter().position(|word| word == "gofer").expect("the word");
            words.splice(at + 1..=at, ["--spec-fd=90".to_owned(), "--bundle=/nowhere".to_owned()]);
        });
        let mut gofer = subject.started(launcher);
        let held = clients(&mut gofer);
        held[0].mount();
        let limits = proc(&gofer, "limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
        assert_eq!(line.split_whitespace().filter(|word| *word == "500").count(), 2, "{line}");
    });
}

/// 8, what is accepted.
#[test]
fn a_size_is_accepted_in_a_configuration_by_e26_alone() {
    let sized = |subject: &Subject| {
        let conf = MountConf { lower: Lower::Lisafs, upper: Upper::Memory, size: Some("1g".to_owned()) };
        subject.launcher(&subject.bundle()).confs([conf])
    };
    one(Generation::E26, |subject| serves(&mut subject.started(sized(subject))));
    one(Generation::E24, |subject| {
        let mut gofer = sized(subject).spawn().expect("a process");
        assert_eq!(gofer.wait().expect("an end"), gofer::launch::Ended::Exited(128));
    });
}

/// Global flags that ask something.
#[test]
fn help_and_version_before_the_word_gofer_are_answered_with_0() {
    each(|subject| {
        for flag in ["-h", "--help", "--version"] {
            let output = bare(subject, &[flag, "gofer"]);
            assert_eq!(output.status.code(), Some(0), "{:?} {flag}: {output:?}", subject.generation);
            let said = [output.stdout, output.stderr].concat();
            assert!(!said.is_empty(), "{:?} {flag}", subject.generation);
        }
    });
}

/// The table of errors: no sub-command, and one of which a gofer knows nothing.
#[test]
fn another_word_than_gofer_or_none_is_128() {
    each_of_ours(|subject| {
        for words in [["--debug"].as_slice(), &["flags"], &["--debug", "false", "gofer"], &["boot", "gofer"]] {
            let output = bare(subject, words);
            assert_eq!(output.status.code(), Some(128), "{words:?}: {output:?}");
            assert!(!output.stderr.is_empty(), "{words:?}");
        }
    });
}

/// The program under the name that `runsc` gives its gofer, and nothing else of what `runsc` does.
fn bare(subject: &Subject, words: &[&str]) -> Output {
    let null = File::open("/dev/null").expect("/dev/null");
    Command::new(&subject.executable).arg0("runsc-gofer").args(words).stdin(null).output().expect("it starts")
}

fn with_a_volume(subject: &Subject) -> Launcher {
    subject.launcher(&subject.bundle().mount(Mount::bind("/data", subject.path("volume"))))
}

fn serves(gofer: &mut Launched) {
    clients(gofer)[0].mount();
}

fn serves_both(gofer: &mut Launched) {
    let clients = clients(gofer);
    assert_eq!(clients.len(), 2);
    clients[0].mount();
    clients[1].find(clients[1].mount(), "file");
}
