//! User name spaces: whose ids a gofer has, and when it gets them.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use gofer::contract::Generation;
use gofer::launch::{Ended, IdMap, Launcher, Mount, Namespaces, UserNamespace};
use gofer_integration::mounts::{in_private_namespace, run};
use gofer_integration::{Ask, say};
use gofer_protocol::FdId;
use rustix::mount::mount_bind;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::subject::{Subject, clients, each, one, proc};

/// 10, of users.
#[test]
fn it_is_in_a_user_name_space_of_its_own_when_one_is_configured() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).namespaces(Namespaces::with_identity());
        let mut gofer = subject.started(launcher);
        // Held: the gofer ends with its last client.
        let held = clients(&mut gofer);
        held[0].mount();
        let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).expect("a name space");
        assert_ne!(link(&gofer.pid().to_string()), link("self"));
        let map = proc(&gofer, "uid_map");
        let words: Vec<_> = map.split_whitespace().collect();
        assert_eq!(words.first(), words.get(1), "an identity: {map}");
    });
}

/// 33.
#[test]
fn it_serves_in_a_user_name_space_with_an_identity_map() {
    for_each_directfs(|subject, launcher| serves_as(subject, launcher.namespaces(Namespaces::with_identity()), 0));
}

/// 33.
#[test]
fn it_serves_in_a_user_name_space_with_65536_ids_of_others() {
    for_each_directfs(|subject, launcher| serves_as(subject, launcher.namespaces(mapped(&RANGE)), 100_000));
}

/// 33: as `newuidmap` writes them, while the gofer waits.
#[test]
fn it_serves_rootless_with_the_callers_id_and_a_range() {
    for_each_directfs(|subject, launcher| serves_as(subject, launcher.namespaces(mapped(&CALLERS)).rootless(), 1000));
}

/// 33, and by a caller who has no rights: `newuidmap` itself maps what the administrator gives him.
#[test]
fn it_serves_rootless_when_nobody_starts_it() {
    const NOBODY: u32 = 65_534;
    if !["newuidmap", "newgidmap"].iter().all(|tool| Path::new("/usr/bin").join(tool).exists()) {
        return say::skipped("no newuidmap (integration/setup.sh installs it)");
    }
    for_each_directfs(|subject, launcher| {
        let (program, given) = (subject.path("program"), subject.path("given"));
        // Where nobody may go. By a process of its own: a test beside this one may start a child while we have the file
        // open for writing, and what somebody can write cannot be executed.
        run("cp", [&subject.executable, &program]);
        fs::write(&given, "nobody:100000:65536\n").expect("a file");
        own(subject, NOBODY);
        let map = [IdMap { outer: NOBODY, ..CALLERS[0] }, CALLERS[1]];
        let launcher = launcher.executable(program).namespaces(mapped(&map)).rootless();
        in_private_namespace(|| {
            for list in ["/etc/subuid", "/etc/subgid"] {
                mount_bind(&given, list).expect("a list of our own");
            }
            // Of this thread alone.
            set_thread_groups(&[]).expect("no groups");
            set_thread_res_gid(Gid::from_raw(NOBODY), Gid::from_raw(NOBODY), Gid::from_raw(NOBODY)).expect("a group");
            set_thread_res_uid(Uid::from_raw(NOBODY), Uid::from_raw(NOBODY), Uid::from_raw(NOBODY)).expect("a user");
            serves_to_its_owner(subject, launcher, NOBODY);
        });
    });
}

/// 33: without an id 0 E26 is told which to take on.
#[test]
fn it_takes_on_the_ids_that_it_is_told_where_there_is_no_0() {
    one(Generation::E26, |subject| {
        own(subject, 1000);
        let map = [IdMap { inner: 5, outer: 1000, count: 1 }];
        let launcher = subject.launcher(&subject.bundle()).namespaces(mapped(&map)).rootless();
        let mut gofer = subject.started(launcher.flag("--uid=5").flag("--gid=5"));
        let held = clients(&mut gofer);
        held[0].mount();
        for ids in ["Uid:\t1000\t1000\t1000", "Gid:\t1000\t1000\t1000"] {
            assert!(proc(&gofer, "status").contains(ids), "{}", proc(&gofer, "status"));
        }
    });
}

/// 38, of this wait.
#[test]
fn ids_that_are_not_mapped_end_it() {
    each(|subject| {
        let map = [IdMap { inner: 7, outer: 1000, count: 1 }];
        let mut gofer = subject.launcher(&subject.bundle()).namespaces(mapped(&map)).rootless().spawn().expect("one");
        gofer.release();
        assert!(gofer.read_mounts().is_err());
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
        assert!(subject.log().contains("\"level\":\"error\""), "{}", subject.log());
    });
}

const RANGE: [IdMap; 1] = [IdMap { inner: 0, outer: 100_000, count: 65_536 }];
const CALLERS: [IdMap; 2] =
    [IdMap { inner: 0, outer: 1000, count: 1 }, IdMap { inner: 1, outer: 100_000, count: 65_536 }];

fn mapped(map: &[IdMap]) -> Namespaces {
    Namespaces { user: Some(UserNamespace::Maps(map.to_vec(), map.to_vec())), ..Namespaces::default() }
}

/// Each generation, with a volume, and with directfs on and off where there is such a thing.
fn for_each_directfs(test: impl Fn(&Subject, Launcher)) {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("volume")).option("ro"));
        let launcher = || subject.launcher(&bundle);
        if subject.generation == Generation::E22 {
            test(subject, launcher());
        } else {
            test(subject, launcher().global("--directfs=true"));
            test(subject, launcher().global("--directfs=false"));
        }
    });
}

fn own(subject: &Subject, id: u32) {
    for name in ["root", "volume", "volume/file"] {
        chown(subject.path(name), Some(id), Some(id)).expect("an owner");
    }
}

/// The container's user 0 is `id` on the host.
fn serves_as(subject: &Subject, launcher: Launcher, id: u32) {
    own(subject, id);
    serves_to_its_owner(subject, launcher, id);
}

fn serves_to_its_owner(subject: &Subject, launcher: Launcher, id: u32) {
    let mut gofer = subject.started(launcher);
    let clients = clients(&mut gofer);
    let root: FdId = clients[0].mount();
    clients[0].create(root, "new").expect("a file");
    let file = fs::metadata(subject.path("root/new")).expect("a file on the host");
    assert_eq!((file.uid(), file.gid()), (id, id));
    fs::remove_file(subject.path("root/new")).expect("a file");
    let (inside, _) = clients[0].mounted().expect("mounted");
    assert_eq!(inside.stat.uid, 0, "what it tells of its owner");
    clients[1].find(clients[1].mount(), "file");
    let status = proc(&gofer, "status");
    assert!(status.contains(&format!("Uid:\t{id}\t{id}\t{id}\t{id}")), "{status}");
}
