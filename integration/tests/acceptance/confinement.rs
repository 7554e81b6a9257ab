//! The live process is what the table of `docs/confinement.md` says, word for word.

use std::collections::BTreeMap;
use std::fs;

use gofer::contract::Generation;
use gofer::launch::{Launched, Mount};
use gofer_integration::Ask;

use crate::subject::{Subject, clients, each_of_ours, proc};

#[test]
fn the_live_process_is_as_the_table_of_confinement_says() {
    each_of_ours(|subject| {
        for sockets in ["none", "open", "all"] {
            let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("volume")));
            let mut launcher = subject.launcher(&bundle).global(format!("--host-uds={sockets}"));
            if subject.generation == Generation::E26 {
                launcher =
                    launcher.pin_ring(rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).expect("one"));
            }
            let mut gofer = subject.started(launcher);
            let held = clients(&mut gofer);
            for client in &held {
                let root = client.mount();
                // An answer later, what was donated is closed.
                client.fstat(root).expect("stat");
            }
            let mut rows = 0;
            for (row, said) in table(subject.generation) {
                let (what, where_sockets) = row.split_once(" with ").unwrap_or((&row, ""));
                // A row of a policy replaces the general one.
                let opens = sockets != "none";
                let special = what.contains("CapPrm") || what.contains("CapBnd");
                if special && opens == where_sockets.is_empty() {
                    continue;
                }
                rows += 1;
                assert_eq!(look(&gofer, subject, what), said, "{:?}: {row}", subject.generation);
            }
            assert_eq!(rows, 10, "rows of the table");
        }
    });
}

/// What the process has, in the table's words.
fn look(gofer: &Launched, subject: &Subject, what: &str) -> String {
    let status = proc(gofer, "status");
    match what {
        "`CapInh`, `CapAmb`" => mask(&status, ["CapInh", "CapAmb"]),
        "`CapPrm`, `CapEff`" => mask(&status, ["CapPrm", "CapEff"]),
        "`CapBnd`" => mask(&status, ["CapBnd", "CapBnd"]),
        "`NoNewPrivs`, `Seccomp`, each thread" => each_thread(gofer),
        "name spaces of its own" => name_spaces(gofer),
        "root and `cwd`" => root(gofer, subject),
        "`Umask`" => format!("`{}`", field(&status, "Umask")),
        "open files, both limits" => limits(gofer),
        "descriptors" => descriptors(gofer, subject).0,
        "and for each connection" => descriptors(gofer, subject).1,
        _ => panic!("a row that no test looks at: {what}"),
    }
}

fn mask(status: &str, names: [&str; 2]) -> String {
    let [one, other] = names.map(|name| u64::from_str_radix(&field(status, name), 16).expect("a mask"));
    assert_eq!(one, other, "{names:?}");
    format!("`{one:x}`")
}

fn each_thread(gofer: &Launched) -> String {
    let threads = fs::read_dir(format!("/proc/{}/task", gofer.pid())).expect("threads").flatten();
    let all = threads.map(|thread| fs::read_to_string(thread.path().join("status")).expect("status"));
    let mut found: Vec<_> = all.map(|status| (field(&status, "NoNewPrivs"), field(&status, "Seccomp"))).collect();
    found.dedup();
    let [(privileges, filter)] = &found[..] else { panic!("threads differ: {found:?}") };
    format!("`{privileges}`, `{filter}`")
}

fn name_spaces(gofer: &Launched) -> String {
    let all = fs::read_dir("/proc/self/ns").expect("name spaces").flatten().map(|entry| entry.file_name());
    let mut own: Vec<String> = all.map(|name| name.into_string().expect("a name")).collect();
    // What a child would get is of no interest: there will be none.
    own.retain(|name| !name.ends_with("_for_children"));
    let of = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).expect("a name space");
    own.retain(|name| of("self", name) != of(&gofer.pid().to_string(), name));
    own.sort();
    format!("`{}`", own.join(" "))
}

/// Root and working directory are the container's root, and nothing of procfs is below.
fn root(gofer: &Launched, subject: &Subject) -> String {
    use std::os::unix::fs::MetadataExt;
    let of = |path: &std::path::Path| fs::metadata(path).map(|is| (is.dev(), is.ino())).expect("a directory");
    let there = of(&subject.path("root"));
    let is_there = |place: &str| of(format!("/proc/{}/{place}", gofer.pid()).as_ref()) == there;
    if is_there("root") && is_there("cwd") { "the container's root".to_owned() } else { "elsewhere".to_owned() }
}

fn limits(gofer: &Launched) -> String {
    let limits = proc(gofer, "limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let numbers: Vec<_> = line.split_whitespace().skip(3).take(2).collect();
    if numbers[0] == numbers[1] { "the hard limit, or `--fdlimit`".to_owned() } else { format!("{numbers:?}") }
}

/// Those of the process, and those of each of its two connections.
fn descriptors(gofer: &Launched, subject: &Subject) -> (String, String) {
    let (mut counts, mut sockets) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    for entry in fs::read_dir(format!("/proc/{}/fd", gofer.pid())).expect("descriptors").flatten() {
        let target = fs::read_link(entry.path()).expect("a link").to_string_lossy().into_owned();
        let what = match &*target {
            "/dev/null" => "/dev/null",
            "/" => "directory of descriptors",
            "/root" => "the root's mount",
            "/root/data" => "the volume's mount",
            "anon_inode:[eventfd]" => "pin ring",
            target if target.ends_with("/mountinfo") => "mountinfo",
            target if target.starts_with("socket:") => {
                *sockets.entry(target.to_owned()).or_default() += 1;
                continue;
            }
            // The launcher of this test asked for it.
            target if *target == *subject.path("log").to_string_lossy() => continue,
            _ => panic!("the process should not have {target}"),
        };
        *counts.entry(what).or_default() += 1;
    }
    let mut take = |what: &str| counts.remove(what).unwrap_or_default();
    let mut own = vec![format!("`/dev/null` x {}", take("/dev/null"))];
    for name in ["directory of descriptors", "mountinfo", "pin ring"] {
        own.extend((0..take(name)).map(|_| name.to_owned()));
    }
    // Each connection holds its own twice; what is there once is the wait for the sandbox's end.
    let lonely = sockets.values().filter(|count| **count == 1).count();
    own.extend((0..lonely).map(|_| "sentry exit".to_owned()));
    assert_eq!(sockets.values().filter(|count| **count == 2).count(), 2, "{sockets:?}");
    assert_eq!([take("the root's mount"), take("the volume's mount")], [2, 2]);
    assert!(counts.is_empty());
    (own.join(", "), "socket x 2, mount x 2".to_owned())
}

/// Rows of the table: what, and the cell of a generation.
fn table(generation: Generation) -> Vec<(String, String)> {
    let text = include_str!("../../../docs/confinement.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| of the live process")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells: Vec<_> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let same = cells[1].clone();
        for cell in &mut cells {
            *cell = cell.replace("the same", &same);
        }
        (cells[0].clone(), cells[generation as usize + 1].clone())
    });
    rows.collect()
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a field of the status").trim().to_owned()
}
