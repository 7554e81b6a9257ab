//! Root and mounts.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use gofer::contract::{Generation, Lower, MountConf, Upper};
use gofer::launch::{Ended, Mount};
use gofer_integration::{Ask, new_in};
use gofer_protocol::record::FileType;
use gofer_protocol::{Errno, Gid, Uid};

use crate::subject::{Subject, clients, each, proc};

/// 17.
#[test]
fn what_is_created_in_a_writable_root_appears_on_the_host_as_asked() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--directfs=false");
        let launcher =
            if subject.generation == Generation::E22 { subject.launcher(&subject.bundle()) } else { launcher };
        let mut gofer = subject.started(launcher);
        let client = clients(&mut gofer).remove(0);
        let root = client.mount();
        for (name, mode, uid, gid) in [("open", 0o666, 0, 0), ("closed", 0o2, 12, 34), ("run", 0o777, 65_534, 0)] {
            let mut create = new_in(root, FileType::Regular, mode);
            (create.uid, create.gid) = (Uid(uid), Gid(gid));
            client.open_create(create, 2, name).expect("a file");
            let file = fs::metadata(subject.path("root").join(name)).expect("a file on the host");
            assert_eq!((file.mode() & 0o7777, file.uid(), file.gid()), (u32::from(mode), uid, gid));
        }
    });
}

/// 18.
#[test]
fn a_read_only_root_is_mounted_so_and_refuses_writes() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle().readonly());
        refuses_writes(&mut gofer);
    });
}

/// 19.
#[test]
fn an_overlaid_root_is_read_only_too() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle());
        let launcher = match subject.generation {
            Generation::E22 => launcher.global("--overlay2=root:memory"),
            Generation::E24 | Generation::E26 => {
                launcher.confs([MountConf { lower: Lower::Lisafs, upper: Upper::SelfBacked, size: None }])
            }
        };
        refuses_writes(&mut subject.started(launcher));
    });
}

fn refuses_writes(gofer: &mut gofer::launch::Launched) {
    let client = clients(gofer).remove(0);
    let root = client.mount();
    assert_eq!(client.create(root, "new").err(), Some(Errno::EROFS));
    let mounts = proc(gofer, "mountinfo");
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).expect("a root");
    assert!(root.split(' ').nth(5).is_some_and(|options| options.split(',').any(|word| word == "ro")), "{root}");
}

/// 20 and 21.
#[test]
fn directories_and_files_are_bound_and_their_mount_points_made() {
    each(|subject| {
        fs::create_dir(subject.path("bundle")).expect("a bundle");
        fs::create_dir(subject.path("bundle/near")).expect("a source");
        fs::write(subject.path("bundle/near/inside"), "").expect("a file");
        let bundle = subject
            .bundle()
            .mount(Mount::bind("/dir", subject.path("volume")))
            .mount(Mount::bind("/deep/file", subject.path("volume/file")))
            .mount(Mount::of_kind("none", "/near", "near").option("bind"));
        // A plain bind is refused in a user name space where there is a locked mount below; there is none here.
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        assert_eq!(clients.len(), 4);
        clients[1].find(clients[1].mount(), "file");
        assert!(clients[2].mounted().is_ok());
        clients[3].find(clients[3].mount(), "inside");
        assert!(subject.path("root/dir").is_dir());
        assert!(subject.path("root/deep/file").is_file());
    });
}

/// 22.
#[test]
fn destinations_through_symlinks_and_dots_land_inside_and_are_told() {
    each(|subject| {
        fs::create_dir(subject.path("root/data")).expect("a directory");
        symlink("../data", subject.path("root/relative")).expect("a link");
        symlink("/data", subject.path("root/absolute")).expect("a link");
        let volume = subject.path("volume");
        let bundle = subject
            .bundle()
            .mount(Mount::bind("/relative/a", &volume))
            .mount(Mount::bind("/absolute/b", &volume))
            .mount(Mount::bind("/../../c", &volume));
        let gofer = subject.start(&bundle);
        assert_eq!(destinations(&gofer), ["/data/a", "/data/b", "/c"]);
        assert!(subject.path("root/data/b").is_dir());
    });
}

/// 23.
#[test]
fn a_mount_below_a_read_only_one_is_created_inside_it() {
    each(|subject| {
        let bundle = subject
            .bundle()
            .mount(Mount::bind("/outer", subject.path("volume")).option("ro"))
            .mount(Mount::bind("/outer/inner", subject.path("volume/file")));
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        assert!(clients[2].mounted().is_ok());
        assert!(subject.path("volume/inner").is_file());
    });
}

/// 24.
#[test]
fn a_loop_of_symlinks_in_a_destination_ends_it() {
    each(|subject| {
        symlink("b", subject.path("root/a")).expect("a link");
        symlink("a", subject.path("root/b")).expect("a link");
        let bundle = subject.bundle().mount(Mount::bind("/a/x", subject.path("volume")));
        fails(subject, &bundle);
    });
}

/// Starts a gofer that must not serve, but say why.
fn fails(subject: &Subject, bundle: &gofer::launch::Bundle) {
    let mut gofer = subject.launcher(bundle).spawn().expect("a process");
    gofer.release();
    assert!(gofer.read_mounts().is_err());
    assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
    assert!(subject.log().contains("\"level\":\"error\""), "{}", subject.log());
}

/// 26 and 34.
#[test]
fn other_mounts_get_no_connection_and_stay_in_the_list() {
    each(|subject| {
        let bundle = subject
            .bundle()
            .mount(Mount::of_kind("proc", "/proc", "proc"))
            .mount(Mount::bind("/data", subject.path("volume")))
            .mount(Mount::of_kind("tmpfs", "/tmp", "tmpfs"))
            .mount(Mount::of_kind("sysfs", "/sys", "sysfs"))
            .mount(Mount::of_kind("cgroup", "/sys/fs/cgroup", "cgroup"));
        let mut gofer = subject.start(&bundle);
        assert_eq!(clients(&mut gofer).len(), 2);
        assert_eq!(destinations(&gofer), ["/proc", "/data", "/tmp", "/sys", "/sys/fs/cgroup"]);
        for name in ["proc", "tmp", "sys"] {
            assert!(!subject.path("root").join(name).exists());
        }
    });
}

fn destinations(gofer: &gofer::launch::Launched) -> Vec<String> {
    gofer.mounts().iter().map(|mount| mount["destination"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A bind source that is not there: 53's half of the gofer.
#[test]
fn a_bad_bind_source_is_named_in_the_log() {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/data", subject.path("nowhere")));
        fails(subject, &bundle);
        assert!(subject.log().contains("nowhere"), "{}", subject.log());
    });
}
