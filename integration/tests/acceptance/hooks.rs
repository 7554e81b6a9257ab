//! Hand-shakes: hooks that run in the gofer.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use gofer::contract::Generation;
use gofer::launch::{Bundle, Ended, Mount};
use gofer_integration::Ask;
use serde_json::{Value, json};

use crate::subject::{Subject, clients, each, one};

/// 41.
#[test]
fn create_container_hooks_run_once_before_the_pivot_and_under_e26_alone() {
    each(|subject| {
        // It sees the host, and the container's mounts where they are before the pivot.
        let seen = subject.path("seen");
        let below = subject.path("root/data/file");
        let script =
            format!("cat >>{0}; cat {1} >>{0}.mount; echo \"$WORD\" >>{0}.env", seen.display(), below.display());
        let bundle = with_hook(subject, &script).mount(Mount::bind("/data", subject.path("volume")));
        let mut gofer =
            subject.started(subject.launcher(&bundle.member("annotations", json!({"a.b": "c"}))).id("name"));
        clients(&mut gofer)[0].mount();
        if subject.generation != Generation::E26 {
            return assert!(!seen.exists(), "{:?}", subject.generation);
        }
        let state: Value = serde_json::from_str(&fs::read_to_string(&seen).expect("it ran")).expect("once");
        let bundle = subject.path("bundle");
        let expected = json!({
            "ociVersion": "1.2.1", "id": "name", "status": "creating", "pid": -1, "bundle": bundle,
            "annotations": {"a.b": "c"},
        });
        assert_eq!(state, expected);
        assert_eq!(fs::read_to_string(subject.path("seen.mount")).expect("it ran"), "of the volume");
        assert_eq!(fs::read_to_string(subject.path("seen.env")).expect("it ran"), "of the hook\n");
    });
}

/// 41.
#[test]
fn a_hook_that_fails_aborts_the_creation_and_its_output_is_in_the_log() {
    one(Generation::E26, |subject| {
        let bundle = with_hook(subject, "echo to be quoted; exit 3");
        let mut gofer = subject.launcher(&bundle).spawn().expect("a process");
        gofer.release();
        assert!(gofer.read_mounts().is_err(), "nothing is served");
        assert_eq!(gofer.wait().expect("an end"), Ended::Exited(128));
        assert!(subject.log().contains("to be quoted"), "{}", subject.log());
    });
}

fn with_hook(subject: &Subject, script: &str) -> Bundle {
    let path = subject.path("hook");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a hook");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    let hook = json!({"path": path, "args": ["hook"], "env": ["PATH=/usr/bin:/bin", "WORD=of the hook"]});
    subject.bundle().member("hooks", json!({"createContainer": [hook]}))
}
