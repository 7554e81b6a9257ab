//! Options of mounts: what the host's kernel enforces, whatever a sandbox does.

use std::fs::{self, File};

use gofer::contract::Generation;
use gofer::launch::{Bundle, Launched, Mount, Namespaces};
use gofer_integration::Ask;
use gofer_integration::mounts::in_private_namespace;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::mountinfo::{at, read};
use crate::subject::{Subject, clients, is_stock, one};

/// What a gofer of E24 or E26 sees to; the originals of E22 and E24 leave it to the sandbox.
fn each_that_applies_options(test: impl Fn(&Subject)) {
    if !is_stock() {
        one(Generation::E24, &test);
    }
    one(Generation::E26, &test);
}

const WORDS: [&str; 4] = ["ro", "nosuid", "nodev", "noexec"];

/// 27.
#[test]
fn submounts_are_nosuid_and_else_exactly_as_asked() {
    const ASKED: [&[&str]; 9] = [
        &[],
        &["ro"],
        &["noexec"],
        &["nodev"],
        &["ro", "nodev", "noexec"],
        &["rw", "nodev"],
        &["ro", "rw"],
        &["noexec", "exec", "suid"],
        &["nodev", "dev", "defaults", "ro"],
    ];
    each_that_applies_options(|subject| {
        let volume = subject.path("volume");
        let own = fs::read_to_string("/proc/self/mountinfo").expect("our own mounts");
        let around = read(&own).into_iter().filter(|line| volume.starts_with(&line.point));
        let around = around.max_by_key(|line| line.point.len()).expect("a mount");
        let bundle = ASKED.iter().enumerate().fold(subject.bundle(), |bundle, (number, options)| {
            let mount = Mount::bind(format!("/m{number}"), &volume);
            bundle.mount(options.iter().fold(mount, |mount, option| mount.option(*option)))
        });
        let gofer = subject.start(&bundle);
        for (number, options) in ASKED.iter().enumerate() {
            let asked: Vec<_> = WORDS
                .into_iter()
                .filter(|&word| {
                    let undone = match word {
                        "ro" => "rw",
                        "nodev" => "dev",
                        "noexec" => "exec",
                        _ => "",
                    };
                    let last = options.iter().rfind(|option| **option == word || **option == undone);
                    word == "nosuid" || last.is_some_and(|last| *last == word) || around.has(word)
                })
                .collect();
            assert_eq!(at(&gofer, &format!("/m{number}")).of(&WORDS), asked, "{:?} {options:?}", subject.generation);
        }
    });
}

/// 27: a user name space may not take away what the host has set.
#[test]
fn flags_that_the_host_has_locked_stay() {
    each_that_applies_options(|subject| {
        in_private_namespace(|| {
            let locked = subject.path("locked");
            fs::create_dir(&locked).expect("a directory");
            let flags = MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
            mount("tmpfs", &locked, "tmpfs", flags, None::<&std::ffi::CStr>).expect("a tmpfs");
            let bundle = subject.bundle().mount(Mount::bind("/a", &locked));
            let bundle = bundle.mount(Mount::bind("/b", &locked).option("exec").option("dev").option("ro"));
            let gofer = subject.start(&bundle);
            for (point, read_only) in [("/a", false), ("/b", true)] {
                let line = at(&gofer, point);
                for word in ["nosuid", "nodev", "noexec", "noatime"] {
                    assert!(line.has(word), "{line:?}");
                }
                assert_eq!(line.has("ro"), read_only, "{line:?}");
            }
        });
    });
}

/// 27.
#[test]
fn a_write_through_the_donated_descriptor_of_a_read_only_mount_fails_on_the_host() {
    each_that_applies_options(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("volume")).option("ro"));
        let mut gofer = subject.start(&bundle.mount(Mount::bind("/open", subject.path("volume"))));
        let clients = clients(&mut gofer);
        let donated = |number: usize| {
            let (_, mut donated): (_, Vec<_>) = clients[number].mounted().expect("mounted");
            donated.pop().expect("a descriptor, with directfs")
        };
        let create = |number: usize, name: &str| {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(donated(number), name, flags, Mode::RUSR).map(File::from)
        };
        assert_eq!(create(1, "new").err(), Some(Errno::ROFS));
        assert!(!subject.path("volume/new").exists());
        // The descriptor itself is not what is wrong.
        create(2, "other").expect("a file");
        assert!(subject.path("volume/other").exists());
    });
}

const TIMES: [&str; 3] = ["noatime", "nodiratime", "strictatime"];

fn with_times(subject: &Subject) -> Bundle {
    TIMES.iter().fold(subject.bundle(), |bundle, word| {
        bundle.mount(Mount::bind(format!("/{word}"), subject.path("volume")).option(*word))
    })
}

/// 27.
#[test]
fn a_way_of_keeping_access_times_does_not_stop_it_in_a_user_name_space() {
    if is_stock() {
        // E26's original fails with EPERM; docs/parity.md has it.
        return gofer_integration::say::skipped_by_choice("the original does not keep this sentence");
    }
    each_that_applies_options(|subject| {
        let mut gofer = subject.start(&with_times(subject));
        for client in &clients(&mut gofer)[1..] {
            client.find(client.mount(), "file");
        }
    });
}

/// 27.
#[test]
fn a_way_of_keeping_access_times_is_applied_where_it_may_be() {
    each_that_applies_options(|subject| {
        let launcher = subject.launcher(&with_times(subject)).namespaces(Namespaces::default());
        let gofer: Launched = subject.started(launcher.global("--directfs=false"));
        assert!(at(&gofer, "/noatime").has("noatime"));
        assert!(at(&gofer, "/nodiratime").has("nodiratime"));
        let strict = at(&gofer, "/strictatime");
        assert!(!strict.has("noatime") && !strict.has("relatime"), "{strict:?}");
    });
}
