//! Logs.

use std::fs;

use gofer_integration::Ask;
use serde_json::Value;

use crate::subject::{clients, each};

/// 57.
#[test]
fn debug_logs_are_in_the_format_that_was_asked_for() {
    each(|subject| {
        for format in ["text", "json", "json-k8s"] {
            let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create(format));
            let launcher = launcher.global(format!("--debug-log-format={format}")).global("--debug=true");
            let mut gofer = subject.started(launcher);
            clients(&mut gofer)[0].mount();
            gofer.wait().expect("an end");
            let log = fs::read_to_string(subject.path(format)).expect("a log");
            assert!(!log.is_empty());
            for line in log.lines() {
                match format {
                    "text" => {}
                    "json" => assert!(object(line)["msg"].is_string(), "{line}"),
                    _ => assert!(object(line)["log"].is_string(), "{line}"),
                }
            }
            // The original writes records of several lines.
            assert!(format != "text" || log.lines().next().is_some_and(is_text_record), "{log}");
        }
    });
}

/// 59.
#[test]
fn a_clean_run_leaves_the_error_log_empty() {
    each(|subject| {
        let mut gofer = subject.start(&subject.bundle());
        clients(&mut gofer)[0].mount();
        gofer.wait().expect("an end");
        assert_eq!(subject.log(), "");
    });
}

/// 59, of a fatal error.
#[test]
fn a_fatal_error_is_one_object_in_the_error_log() {
    each(|subject| {
        let bundle = subject.bundle().mount(gofer::launch::Mount::bind("/x", subject.path("nowhere")));
        let mut gofer = subject.launcher(&bundle).spawn().expect("a process");
        gofer.wait().expect("an end");
        assert_eq!(object(&subject.log())["level"], "error");
    });
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `LMMDD hh:mm:ss.uuuuuu PPPPPPP file:line] message`.
fn is_text_record(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().take(4).collect();
    matches!(words[..], [day, time, _, place] if day.len() == 5 && time.len() == 15 && place.ends_with(']'))
}
