//! Command line, birth and privileges.

use std::fs;

use gofer::contract::Generation;
use gofer_integration::{Ask, eventually};

use crate::subject::{clients, each, each_of_ours, is_stock, proc};

/// 1.
#[test]
fn a_process_started_with_the_argv_of_a_generation_serves() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
    });
}

/// 10.
#[test]
fn it_is_process_1_in_name_spaces_of_its_own() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let status = proc(&gofer, "status");
        let last = status.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("NSpid");
        assert_eq!(last.split_whitespace().last(), Some("1"));
        for kind in ["mnt", "pid", "ipc", "uts", "net"] {
            let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).expect("a name space");
            assert_ne!(link(&gofer.pid().to_string()), link("self"), "{kind}");
        }
    });
}

/// 11.
#[test]
fn its_capabilities_are_a_subset_of_those_it_needs() {
    each(|subject| {
        for sockets in ["none", "all"] {
            let launcher = subject.launcher(&subject.bundle()).global(format!("--host-uds={sockets}"));
            let mut gofer = subject.started(launcher);
            let client = clients(&mut gofer).remove(0);
            client.mount();
            let with_ids = sockets == "all" && subject.generation == Generation::E26;
            let allowed = if with_ids { 0x400df } else { 0x4001f };
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                let value = status_field(&proc(&gofer, "status"), set);
                let value = u64::from_str_radix(&value, 16).expect("a mask");
                assert_eq!(value & !allowed, 0, "{:?} {set} {value:x}", subject.generation);
            }
        }
    });
}

/// 12.
#[test]
fn every_thread_has_no_new_privileges_and_a_filter() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        for thread in fs::read_dir(format!("/proc/{}/task", gofer.pid())).expect("threads") {
            // A Go program's threads come and go.
            let Ok(status) = fs::read_to_string(thread.expect("a thread").path().join("status")) else { continue };
            assert_eq!(status_field(&status, "NoNewPrivs"), "1");
            assert_eq!(status_field(&status, "Seccomp"), "2");
        }
    });
}

/// 13.
#[test]
fn its_umask_is_0_and_its_root_is_the_containers() {
    each(|subject| {
        fs::write(subject.path("root/marker"), "here").expect("a file");
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        assert_eq!(status_field(&proc(&gofer, "status"), "Umask"), "0000");
        for place in ["root", "cwd"] {
            assert_eq!(proc(&gofer, &format!("{place}/marker")), "here");
        }
        assert!(!fs::exists(format!("/proc/{}/root/proc/self", gofer.pid())).expect("a look"));
    });
}

/// 14.
#[test]
fn both_limits_of_descriptors_are_as_said() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--fdlimit=500");
        let mut gofer = subject.started(launcher);
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let limits = proc(&gofer, "limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
        assert_eq!(line.split_whitespace().filter(|word| *word == "500").count(), 2, "{line}");
    });
}

/// 14, without a flag.
#[test]
fn without_a_limit_of_descriptors_the_soft_one_is_the_hard_one() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let limits = proc(&gofer, "limits");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [soft, hard] = numbers[..] else { panic!("two numbers: {line}") };
        // Newer runtimes of Go stop one below.
        assert!(soft == hard || (is_stock() && soft + 1 == hard), "{line}");
    });
}

/// 15.
#[test]
fn what_was_donated_does_not_survive_an_exec() {
    // E26's original leaves all of it to its hooks.
    each_of_ours(|subject| {
        let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create("debug"));
        let mut gofer = subject.started(launcher);
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        for entry in fs::read_dir(format!("/proc/{}/fdinfo", gofer.pid())).expect("descriptors") {
            let entry = entry.expect("a descriptor");
            if ["0", "1", "2"].iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let info = fs::read_to_string(entry.path()).expect("what it is");
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
            let flags = u32::from_str_radix(flags.trim(), 8).expect("an octal number");
            assert_ne!(flags & 0o2_000_000, 0, "descriptor {}: {info}", entry.file_name().display());
        }
    });
}

/// 15.
#[test]
fn what_no_flag_names_is_closed() {
    // The originals keep what they inherit; from E24 on it is runsc that sees to it.
    each_of_ours(|subject| {
        let (ours, stray) = rustix::pipe::pipe().expect("a pipe");
        let launcher = subject.launcher(&subject.bundle()).stray(stray);
        let mut gofer = subject.started(launcher);
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let mut byte = [0];
        // The launcher's own is closed by now: if the gofer's is, too, then this is the end of the file.
        let mut poll = [rustix::event::PollFd::new(&ours, rustix::event::PollFlags::IN)];
        let patience = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut poll, Some(&patience)), Ok(1), "the stray descriptor is still open");
        assert_eq!(rustix::io::read(&ours, &mut byte), Ok(0));
    });
}

/// 9.
#[test]
fn it_has_no_children_while_it_serves() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let children = || proc(&gofer, &format!("task/{}/children", gofer.pid()));
        assert!(eventually(|| children().is_empty()), "{}", children());
    });
}

fn status_field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a field of the status").trim().to_owned()
}
