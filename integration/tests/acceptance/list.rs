//! Hand-shakes: the list of mounts that the sandbox waits for.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use gofer::contract::Generation;
use gofer::launch::{Launched, Mount};
use gofer_integration::Ask;
use gofer_integration::mounts::{Mounted, in_private_namespace};
use serde_json::Value;

use crate::fuse::Flat;
use crate::subject::{Subject, clients, each};

/// 34.
#[test]
fn the_list_is_one_array_with_all_mounts_in_order_and_closed_right_after() {
    each(|subject| {
        let volume = subject.path("volume");
        let bundle = subject.bundle();
        let bundle = bundle.mount(Mount::of_kind("proc", "/proc", "proc"));
        let bundle = bundle.mount(Mount::bind("/b/../a", &volume).option("ro"));
        let bundle = bundle.mount(Mount::of_kind("tmpfs", "/tmp", "tmpfs").option("size=1m"));
        let bundle = bundle.mount(Mount::bind("/c", &volume));
        let mut gofer = subject.launcher(&bundle).spawn().expect("a process");
        let (text, held) = (all_of_list(&mut gofer), clients(&mut gofer));
        // The end of the file has come, and the gofer goes on.
        held[0].mount();
        let list: Vec<Value> = serde_json::from_str(&text).expect("one array and nothing behind it");
        let places: Vec<_> = list.iter().map(|mount| mount["destination"].as_str().expect("a text")).collect();
        assert_eq!(places, ["/proc", "/a", "/tmp", "/c"]);
        assert_eq!(list[1]["options"], serde_json::json!(["rbind", "ro"]));
    });
}

/// 35.
#[test]
fn a_list_beyond_64_kib_is_written_as_the_reader_takes_it() {
    each(|subject| {
        let many = (0..200).fold(subject.bundle(), |bundle, number| {
            let long = format!("comment={}", "x".repeat(1000));
            bundle.mount(Mount::of_kind("tmpfs", format!("/t{number}"), "tmpfs").option(long))
        });
        let mut gofer = subject.launcher(&many).spawn().expect("a process");
        let mut pipe = gofer.take_mounts_pipe().expect("a pipe");
        gofer.release();
        // Nobody reads yet: the pipe is full by now.
        std::thread::sleep(Duration::from_millis(200));
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).expect("the list");
        assert!(text.len() > 200 << 10, "{} bytes", text.len());
        assert_eq!(serde_json::from_slice::<Vec<Value>>(&text).expect("one array").len(), 200);
        clients(&mut gofer)[0].mount();
    });
}

/// 36. NFS is for a test of the mapping itself: it takes a server.
#[test]
fn what_the_sandbox_has_to_know_of_a_file_system_is_appended_to_its_options() {
    in_private_namespace(|| {
        let Some(fuse) = Flat::mount(&[b"file".to_vec()]) else { return };
        let layers = Mounted::tmpfs("size=1m");
        for name in ["lower", "upper", "work"] {
            fs::create_dir(layers.path().join(name)).expect("a directory");
        }
        let layer = |name: &str| layers.path().join(name);
        let overlay = Mounted::overlay(&[&layer("lower")], &layer("upper"), &layer("work"));
        each(|subject| {
            let on = |source: &Path| appended(subject, source);
            let shares_no_handles = ["disable_file_handle_sharing"];
            assert_eq!(on(overlay.path()), ["overlayfs_stale_read"], "{:?}", subject.generation);
            let of_fuse = if subject.generation == Generation::E26 { &shares_no_handles[..] } else { &[] };
            assert_eq!(on(fuse.path()), of_fuse, "{:?}", subject.generation);
            assert!(on(layers.path()).is_empty() && on(&subject.path("volume")).is_empty());
        });
    });
}

/// The options that a mount of `source` gets beyond its own.
fn appended(subject: &Subject, source: &Path) -> Vec<String> {
    let gofer = subject.start(&subject.bundle().mount(Mount::bind("/there", source)));
    let options = gofer.mounts()[0]["options"].as_array().expect("options").iter();
    options.map(|option| option.as_str().expect("a text").to_owned()).filter(|option| option != "rbind").collect()
}

fn all_of_list(gofer: &mut Launched) -> String {
    let mut pipe = gofer.take_mounts_pipe().expect("a pipe");
    gofer.release();
    let mut text = String::new();
    pipe.read_to_string(&mut text).expect("a list and its end");
    text
}
