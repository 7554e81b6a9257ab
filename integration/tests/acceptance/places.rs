//! Where roots, sources and working directories may be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use gofer::contract::Generation;
use gofer::launch::{Bundle, Mount};
use gofer_integration::Ask;

use crate::mountinfo::{TMPFS, lines};
use crate::subject::{Subject, clients, each, is_stock};

/// 21.
#[test]
fn a_mount_of_no_type_with_a_bind_option_is_served() {
    each(|subject| {
        let volume = subject.path("volume");
        let bundle = subject.bundle().mount(Mount::of_kind("none", "/bind", &volume).option("bind"));
        let bundle = bundle.mount(Mount::of_kind("none", "/rbind", &volume).option("ro").option("rbind"));
        serves_the_volume(subject, &bundle, 2);
    });
}

/// 21.
#[test]
fn a_source_may_be_relative_to_the_bundle() {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/a", "../volume")).mount(Mount::bind("/b", "near"));
        let bundle = bundle.mount(Mount::of_kind("proc", "/proc", "proc"));
        fs::create_dir_all(subject.path("bundle/near")).expect("a source");
        fs::write(subject.path("bundle/near/file"), "").expect("a file");
        serves_the_volume(subject, &bundle, 2);
    });
}

/// All of the mounts but the root are of something with a `file` in it.
fn serves_the_volume(subject: &Subject, bundle: &Bundle, count: usize) {
    let mut gofer = subject.start(bundle);
    let clients = clients(&mut gofer);
    assert_eq!(clients.len(), 1 + count);
    for client in &clients[1..] {
        client.find(client.mount(), "file");
    }
}

/// A path from our working directory to an absolute one.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().expect("a working directory");
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    up.join(path.strip_prefix("/").expect("an absolute path"))
}

/// 30.
#[test]
fn a_bundle_may_be_relative_to_the_working_directory_and_a_root_to_the_bundle() {
    each(|subject| {
        let bundle = submount(subject, Bundle::new("../root"));
        bundle.write(subject.path("bundle")).expect("a bundle");
        let mut gofer = subject.started(subject.launcher_in(&relative(&subject.path("bundle"))));
        let clients = clients(&mut gofer);
        clients[0].create(clients[0].mount(), "new").expect("a file");
        assert!(subject.path("root/new").exists());
        fs::remove_file(subject.path("root/new")).expect("a file");
    });
}

/// 30.
#[test]
fn a_root_may_have_a_symlink_on_its_way_or_be_one() {
    each(|subject| {
        symlink(".", subject.path("here")).expect("a link");
        symlink("here/root", subject.path("alias")).expect("a link");
        for root in ["here/root", "alias", "here/alias"] {
            let bundle = submount(subject, Bundle::new(subject.path(root)));
            let mut gofer = subject.start(&bundle);
            let clients = clients(&mut gofer);
            clients[0].create(clients[0].mount(), "new").expect("a file");
            fs::remove_file(subject.path("root/new")).expect("a file");
            for client in &clients[1..] {
                client.find(client.mount(), "file");
            }
        }
    });
}

/// E26's original fails with a mount below such roots.
fn submount(subject: &Subject, bundle: Bundle) -> Bundle {
    if is_stock() && subject.generation == Generation::E26 {
        return bundle;
    }
    bundle.mount(Mount::bind("/data", subject.path("volume")))
}

/// 31.
#[test]
fn a_missing_working_directory_is_made_by_e22_and_e24_and_by_e26_not() {
    each(|subject| {
        for (name, readonly) in [("writable", false), ("becomes-read-only", true)] {
            let bundle = subject.bundle().cwd(format!("/work/{name}"));
            let mut gofer = subject.start(&if readonly { bundle.readonly() } else { bundle });
            clients(&mut gofer)[0].mount();
            let made = fs::metadata(subject.path("root/work").join(name));
            if subject.generation == Generation::E26 {
                assert!(made.is_err());
            } else {
                let made = made.expect("a working directory");
                assert!(made.is_dir());
                assert_eq!(made.permissions().mode() & 0o7777, 0o755);
            }
        }
    });
}

/// 32.
#[test]
fn a_root_of_the_hosts_root_works_and_has_nothing_of_the_gofers_in_it() {
    each(|subject| {
        let mut gofer = subject.start(&on_the_host(subject));
        let clients = clients(&mut gofer);
        let root = clients[0].mount();
        let path = subject.path("volume/file");
        clients[0].find(root, path.strip_prefix("/").expect("an absolute path").to_str().expect("UTF-8"));
        if is_stock() && subject.generation == Generation::E22 {
            // It binds its own file system along with the host's; docs/parity.md has it.
            return;
        }
        // E26's original serves the bare mount point.
        if !(is_stock() && subject.generation == Generation::E26) {
            clients[1].find(clients[1].mount(), "file");
        }
        assert!(lines(&gofer).iter().all(|line| line.source != TMPFS));
    });
}

/// 32, and an option that E26's original does not keep there.
#[test]
fn below_a_read_only_root_of_the_hosts_root_a_writable_mount_is_writable() {
    each(|subject| {
        if is_stock() && subject.generation == Generation::E26 {
            return;
        }
        let mut gofer = subject.start(&on_the_host(subject).readonly());
        let clients = clients(&mut gofer);
        assert!(clients[0].create(clients[0].mount(), "never-to-be-seen").is_err());
        clients[1].create(clients[1].mount(), "new").expect("a file");
        assert!(subject.path("volume/new").exists());
    });
}

/// With a mount point that is there: none shall be made on the host.
fn on_the_host(subject: &Subject) -> Bundle {
    let point = subject.path("point");
    fs::create_dir_all(&point).expect("a mount point");
    Bundle::new("/").mount(Mount::bind(point.to_str().expect("UTF-8"), subject.path("volume")).option("rw"))
}
