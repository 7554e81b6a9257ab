//! Hand-shakes: what an E26 gofer may not open, it asks for.

use std::fs;
use std::io::{BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;

use gofer::contract::Generation;
use gofer::launch::{Ended, IdMap, Launched, Launcher, Mount, Namespaces, UserNamespace};
use gofer_integration::Ask;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;

use crate::subject::{Subject, clients, one};

/// 39.
#[test]
fn a_source_that_the_gofer_may_not_read_is_fetched_from_the_runtime() {
    one(Generation::E26, |subject| {
        let (source, launcher) = unreadable(subject);
        let mut gofer = launcher.spawn().expect("a process");
        let (sources, (seen, requests)) = (gofer.sources().expect("its files"), mpsc::channel());
        gofer
            .answer_rpc(move |request| {
                seen.send(request.clone()).expect("somebody listens");
                sources.open(request)
            })
            .expect("a thread");
        served(subject, &mut gofer);
        let asked: Vec<_> = requests.iter().collect();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!((asked[0].source(), asked[0].is_id_mapped()), (source.to_str().expect("a path"), false));
        // MS_BIND and MS_REC.
        assert_eq!((&asked[0].mount["destination"], asked[0].flags), (&Value::from("/open"), 0x1000 | 0x4000));
    });
}

/// 39, with ids that the launcher maps; in a sandbox it is shown in `through_runsc`.
#[test]
fn an_id_mapped_mount_shows_shifted_ids() {
    one(Generation::E26, |subject| {
        std::os::unix::fs::chown(subject.path("volume/file"), Some(5), Some(6)).expect("an owner");
        let shift = |by: u32| serde_json::json!([{"containerID": 0, "hostID": by, "size": 100}]);
        let mount = Mount::bind("/shifted", subject.path("volume")).option("ro");
        let mount = mount.member("uidMappings", shift(1000)).member("gidMappings", shift(2000));
        let bundle = subject.bundle().mount(mount).mount(Mount::bind("/plain", subject.path("volume")));
        let mut gofer = subject.start(&bundle);
        let clients = clients(&mut gofer);
        let owner = |client: usize| {
            let client = &clients[client];
            let stat = client.fstat(client.walk_to(client.mount(), "file")).expect("a file");
            (stat.uid, stat.gid)
        };
        assert_eq!((owner(1), owner(2)), ((1005, 2006), (5, 6)));
        // Its options hold as those of others do.
        let mounts = crate::subject::proc(&gofer, "mountinfo");
        let line = mounts.lines().find(|line| line.contains("/shifted ")).expect("a mount");
        assert!(line.contains(" ro,nosuid"), "{line}");
    });
}

/// 40.
#[test]
fn an_answer_in_single_bytes_is_understood() {
    one(Generation::E26, |subject| {
        let (source, launcher) = unreadable(subject);
        let mut gofer = launcher.spawn().expect("a process");
        let sources = gofer.sources().expect("its files");
        let answering = answer(&mut gofer, move |socket, request| {
            let (mount, flags) = (request["arg"]["Mount"].clone(), 0);
            let opened = sources.open(&gofer::launch::OpenMount { mount, flags }).expect("the source");
            let text = br#"{"success":true,"err":"","result":{}}"#;
            let fds = [opened.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            sendmsg(socket, &[IoSlice::new(&text[..1])], &mut control, SendFlags::NOSIGNAL).expect("the first byte");
            for byte in &text[1..] {
                (&*socket).write_all(&[*byte]).expect("a byte");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        served(subject, &mut gofer);
        answering.join().expect("an answer");
        drop(source);
    });
}

/// 40.
#[test]
fn an_answer_that_is_an_error_ends_the_gofer_and_both_name_the_source() {
    one(Generation::E26, |subject| {
        let (source, launcher) = unreadable(subject);
        let mut gofer = launcher.spawn().expect("a process");
        let answering = answer(&mut gofer, |mut socket, _| {
            socket.write_all(br#"{"success":false,"err":"no such luck","result":null}"#).expect("an answer");
        });
        gofer.release();
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
        answering.join().expect("an answer");
        let log = subject.log();
        assert!(log.contains("no such luck") && log.contains(source.to_str().expect("a path")), "{log}");
    });
}

/// A bundle with a source below a directory that the gofer's root, who is somebody else here, may not enter.
fn unreadable(subject: &Subject) -> (PathBuf, Launcher) {
    let closed = subject.path("closed");
    fs::create_dir_all(closed.join("open")).expect("a directory");
    fs::write(closed.join("open/file"), "readable").expect("a file");
    fs::create_dir(subject.path("root/open")).expect("a mount point");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("a mode");
    let source = closed.join("open");
    let launcher = subject.launcher(&subject.bundle().mount(Mount::bind("/open", &source)));
    let ids = vec![IdMap { inner: 0, outer: 100_000, count: 65_536 }];
    let user = Some(UserNamespace::Maps(ids.clone(), ids));
    (source, launcher.namespaces(Namespaces { user, ..Namespaces::default() }))
}

/// The file below the source can be read.
fn served(subject: &Subject, gofer: &mut Launched) {
    gofer.release();
    gofer.read_mounts().unwrap_or_else(|error| panic!("{error}: {}", subject.log()));
    let clients = clients(gofer);
    let file = clients[1].walk_to(clients[1].mount(), "file");
    let (open, _) = clients[1].open(file, 0).expect("it opens");
    assert_eq!(clients[1].pread(open, 0, 100).expect("it reads"), b"readable");
}

/// Answers one request by hand.
fn answer(
    gofer: &mut Launched,
    reply: impl FnOnce(&UnixStream, &Value) + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let socket = gofer.take_rpc().expect("a socket");
    std::thread::spawn(move || {
        let mut requests = serde_json::Deserializer::from_reader(BufReader::new(&socket)).into_iter::<Value>();
        let request = requests.next().expect("a request").expect("JSON");
        reply(&socket, &request);
        assert!(requests.next().is_none(), "and no more");
    })
}
