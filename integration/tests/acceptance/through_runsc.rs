//! What takes a real `runsc` to be seen: how containers end, and what is left of them.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Instant;

use gofer_integration::runsc::Generation;
use gofer_integration::{eventually, say};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::runtime::{Attached, each, end, is_alive, one};
use crate::subject::is_stock;

/// 39's second half.
#[test]
fn an_application_sees_the_shifted_ids_of_an_id_mapped_mount() {
    one(Generation::E26, |runtime| {
        let volume = runtime.path("volume");
        fs::create_dir(&volume).expect("a directory");
        fs::write(volume.join("file"), "").expect("a file");
        std::os::unix::fs::chown(volume.join("file"), Some(5), Some(6)).expect("an owner");
        let shift = json!([{"containerID": 0, "hostID": 1000, "size": 100}]);
        let container = runtime.container("mapped", "stat -c %u:%g /data/file").mount(json!({
            "type": "bind", "source": volume, "destination": "/data", "options": ["rbind"],
            "uidMappings": shift, "gidMappings": shift,
        }));
        let output = container.run().output().expect("runsc starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1005:1006\n", "{errors}");
    });
}

/// 47, by an application.
#[test]
fn with_directfs_an_application_can_change_the_mode_of_a_bound_socket() {
    if is_stock() {
        return say::skipped_by_choice("the original dies of it");
    }
    one(Generation::E24, |runtime| {
        let socket = runtime.path("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let container = runtime.container("chmod", "sleep 1000").bind(&socket, "/data/socket");
        container.started();
        let gofer = container.gofer();
        container.exec("chmod 604 /data/socket");
        assert_eq!(fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777, 0o604);
        assert!(is_alive(gofer));
    });
}

/// 49.
#[test]
fn when_the_sandbox_is_killed_the_gofer_exits_by_itself() {
    each(|runtime| {
        let runtime = runtime.flag("--debug");
        let runtime = {
            let logs = format!("--debug-log={}/", runtime.path("logs").display());
            runtime.flag(logs)
        };
        let container = runtime.container("one", "sleep 1000");
        container.started();
        let (gofer, sandbox) = (container.gofer(), container.sandbox());
        let start = Instant::now();
        end(sandbox, Signal::KILL);
        assert!(eventually(|| !is_alive(gofer)));
        say::measured(format_args!("{:?}: {} ms until it was gone", runtime.generation, start.elapsed().as_millis()));
        if !is_stock() {
            let logs = fs::read_dir(runtime.path("logs")).expect("logs").flatten();
            let mut logs = logs.filter(|entry| entry.file_name().to_string_lossy().contains(".gofer"));
            let log = fs::read_to_string(logs.next().expect("the gofer's log").path()).expect("a log");
            assert!(log.lines().last().is_some_and(|line| line.ends_with("] exiting")), "{log}");
        }
    });
}

/// 50.
#[test]
fn when_the_gofer_is_killed_the_container_ends_with_137() {
    each(|runtime| {
        let container = runtime.container("one", "sleep 1000");
        let mut running = Attached(container.run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runsc"));
        assert!(eventually(|| container_runs(&runtime.runsc(&["state", &container.id]).stdout)));
        end(container.gofer(), Signal::KILL);
        assert_eq!(running.0.wait().expect("an end").code(), Some(137), "{:?}", runtime.generation);
    });
}

/// 50.
#[test]
fn when_the_gofer_of_one_container_is_killed_the_others_of_the_pod_keep_running() {
    each(|runtime| {
        let pod = runtime.container("pod", "sleep 1000").begins_pod();
        pod.started();
        let [one, other] = ["one", "other"].map(|name| runtime.container(name, "sleep 1000").in_pod(&pod));
        one.started();
        other.started();
        let mut waiting = runtime.command(&["wait", &one.id]);
        let mut waiting = Attached(waiting.stdout(Stdio::piped()).spawn().expect("runsc starts"));
        // The sandbox knows of it by then; it may as well come too late.
        std::thread::sleep(std::time::Duration::from_millis(200));
        end(one.gofer(), Signal::KILL);
        let mut said = String::new();
        waiting.0.stdout.take().expect("a pipe").read_to_string(&mut said).expect("what it said");
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(said["exitStatus"], 137, "{:?}: {said}", runtime.generation);
        for container in [&pod, &other] {
            assert_eq!(container.exec("echo x > /tmp/file && cat /tmp/file"), "x\n", "{:?}", runtime.generation);
        }
    });
}

/// 52.
#[test]
fn a_gofer_that_is_killed_between_create_and_start_makes_start_fail_and_delete_succeed() {
    each(|runtime| {
        let container = runtime.container("one", "true");
        assert!(container.create().status.success());
        end(container.gofer(), Signal::KILL);
        assert!(eventually(|| container.find_gofer().is_none()));
        let output = runtime.runsc(&["start", &container.id]);
        assert_eq!(output.status.code(), Some(128), "{:?}", runtime.generation);
        container.delete();
        runtime.assert_nothing_is_left();
    });
}

/// 53.
#[test]
fn a_bad_bind_source_makes_create_exit_128_and_the_first_record_of_the_log_names_it() {
    each(|runtime| {
        let log = runtime.path("log");
        let runtime = runtime.flag(format!("--log={}", log.display()));
        let nowhere = runtime.path("nowhere");
        let container = runtime.container("one", "true").bind(&nowhere, "/data");
        assert_eq!(container.create().status.code(), Some(128), "{:?}", runtime.generation);
        let log = fs::read_to_string(log).expect("a log");
        let mut records = serde_json::Deserializer::from_str(&log).into_iter::<Value>();
        let first = records.next().expect("a record").expect("JSON");
        let text = first["msg"].as_str().expect("a text");
        assert!(text.contains(nowhere.to_str().expect("a path")), "{:?}: {log}", runtime.generation);
    });
}

/// 54.
#[test]
fn killing_an_attached_runsc_ends_the_gofer() {
    each(|runtime| {
        let container = runtime.container("one", "sleep 1000");
        let mut running = Attached(container.run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runsc"));
        assert!(eventually(|| container_runs(&runtime.runsc(&["state", &container.id]).stdout)));
        let gofer = container.gofer();
        running.0.kill().expect("it is killed");
        assert!(eventually(|| !is_alive(gofer)), "{:?}", runtime.generation);
    });
}

/// 56. By `do`, since E22's `run` passes signals on from no terminal, and from one not either.
#[test]
fn an_interrupt_of_the_foreground_group_does_not_take_the_container_down_before_the_application_has_seen_it() {
    each(|runtime| {
        if is_stock() && runtime.generation == Generation::E22 {
            return say::skipped_by_choice("the original of E22 ends by it, and the container with it");
        }
        // The file is the gofer's to serve.
        let script =
            "trap 'echo seen; grep -c . /etc/passwd >/dev/null && exit 5' INT; echo; while :; do sleep 0.1; done";
        let mut command = runtime.command(&["do", "/bin/sh", "-c", script]);
        // As a shell does: a group of its own.
        command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut running = Attached(command.spawn().expect("runsc starts"));
        let mut output = running.0.stdout.take().expect("a pipe");
        output.read_exact(&mut [0]).expect("it is ready");
        let group = Pid::from_raw(running.0.id().cast_signed()).expect("a group");
        kill_process_group(group, Signal::INT).expect("somebody is there");
        let mut said = String::new();
        output.read_to_string(&mut said).expect("what it said");
        assert_eq!(said, "seen\n", "{:?}", runtime.generation);
        assert_eq!(running.0.wait().expect("an end").code(), Some(5), "{:?}", runtime.generation);
    });
}

fn container_runs(state: &[u8]) -> bool {
    serde_json::from_slice::<Value>(state).is_ok_and(|state| state["status"] == "running")
}
