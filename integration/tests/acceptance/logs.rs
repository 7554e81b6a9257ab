//! Logs.

use std::fs::{self, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;

use gofer::contract::Generation;
use gofer::launch::{Launcher, Mount};
use gofer_integration::{Ask, encoded};
use gofer_protocol::Mid;
use gofer_protocol::codec::StringArrayBuf;
use gofer_protocol::message::WalkRequest;
use rustix::process::{Pid, Resource, Rlimit};
use serde_json::Value;

use crate::subject::{Subject, clients, each, each_of_ours, is_stock};

/// 57.
#[test]
fn debug_logs_are_in_the_format_that_was_asked_for() {
    each(|subject| {
        for format in ["text", "json", "json-k8s"] {
            let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create(format));
            let launcher = launcher.global(format!("--debug-log-format={format}")).global("--debug=true");
            served_and_ended(subject, launcher);
            let log = read(subject, format);
            assert!(!log.is_empty());
            for line in log.lines() {
                match format {
                    // The original writes records of several lines.
                    "text" => assert!(is_text_record(line) || is_stock(), "{line}"),
                    "json" => is_json_record(subject.generation, line, "msg"),
                    _ => is_json_record(subject.generation, line, "log"),
                }
            }
            assert!(format != "text" || log.lines().next().is_some_and(is_text_record), "{log}");
        }
    });
}

/// 57.
#[test]
fn without_a_debug_log_nothing_is_written_anywhere() {
    // The originals open the one that is named.
    each_of_ours(|subject| {
        let launcher = subject.launcher(&subject.bundle()).global("--debug=true");
        served_and_ended(subject, launcher.global(format!("--debug-log={}/", subject.path("logs").display())));
        assert!(!subject.path("logs").exists(), "a debug log that is named is not opened");
        assert_eq!(subject.log(), "");
    });
}

/// 58.
#[test]
fn debug_records_appear_only_with_debug_and_for_commands_that_the_filter_admits() {
    each(|subject| {
        for (number, (flags, wanted)) in [
            (&[][..], false),
            (&["--debug=false"], false),
            (&["--debug=true"], true),
            (&["--debug=true", "--debug-command=boot,gofer"], true),
            (&["--debug=true", "--debug-command=!boot"], true),
            (&["--debug=true", "--debug-command=boot"], false),
            (&["--debug=true", "--debug-command=!boot,gofer"], false),
            (&["--debug-command=gofer"], false),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("log.{number}");
            let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create(&name));
            served_and_ended(subject, flags.iter().fold(launcher, |launcher, flag| launcher.global(*flag)));
            let log = read(subject, &name);
            let found = log.lines().any(|line| line.starts_with('D') && is_text_record(line));
            assert_eq!(found, wanted, "{:?} {flags:?}: {log}", subject.generation);
            let important = log.lines().any(|line| line.starts_with('I') && is_text_record(line));
            assert!(important || (is_stock() && !wanted), "what is important is always there: {log}");
        }
    });
}

/// 59.
#[test]
fn a_clean_run_leaves_the_error_log_empty() {
    each(|subject| {
        served_and_ended(subject, subject.launcher(&subject.bundle()));
        assert_eq!(subject.log(), "");
    });
}

/// 59, of a fatal error.
#[test]
fn a_fatal_error_is_one_object_in_the_error_log() {
    each(|subject| {
        let bundle = subject.bundle().mount(Mount::bind("/x", subject.path("nowhere")));
        let mut gofer = subject.launcher(&bundle).spawn().expect("a process");
        gofer.wait().expect("an end");
        let log = subject.log();
        let record = object(&log);
        assert_eq!(record["level"], "error");
        assert!(record["msg"].as_str().is_some_and(|text| text.contains("nowhere")), "{record}");
        assert!(record["time"].as_str().is_some_and(is_rfc_3339), "{record}");
        assert_eq!((log.trim(), log.ends_with('}')), (&*log, true), "nothing around it");
    });
}

/// 60.
#[test]
fn a_crash_message_ends_up_in_the_debug_log_through_standard_error() {
    each(|subject| {
        let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create("debug"));
        let mut gofer = subject.started(launcher);
        let client = clients(&mut gofer).remove(0);
        let root = client.mount();
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let standard_error = fs::metadata(format!("/proc/{}/fd/2", gofer.pid())).expect("it has one");
        assert_eq!(identity(standard_error), identity(fs::metadata(subject.path("debug")).expect("a log")));
        // No memory any more, which programs do not live through.
        let nothing = Rlimit { current: Some(0), maximum: Some(0) };
        let pid = Pid::from_raw(gofer.pid().cast_signed());
        rustix::process::prlimit(pid, Resource::As, nothing).expect("a limit");
        // Long paths are copied.
        let path: Vec<_> = (0..3000).map(|number| format!("{number:0200}")).collect();
        let path = StringArrayBuf::new(path.iter().map(String::as_bytes)).expect("a path");
        let payload = encoded(&WalkRequest { dir_fd: root, path: path.as_array() });
        let mut frame = u32::try_from(payload.len()).expect("a length").to_le_bytes().to_vec();
        frame.extend(Mid::WALK.0.to_le_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        // Until the other end is gone.
        while (&client.stream).write_all(&frame).is_ok() && (&client.stream).read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
        }
        let _ = gofer.wait();
        let log = read(subject, "debug").to_lowercase();
        assert!(log.contains("memory"), "{:?}: {log}", subject.generation);
    });
}

/// The one line at the end.
#[test]
fn a_clean_end_says_what_was_served() {
    each_of_ours(|subject| {
        let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create("debug"));
        served_and_ended(subject, launcher.global("--debug=true"));
        let log = read(subject, "debug");
        let lines: Vec<_> = log.lines().filter(|line| line.contains("] served ")).collect();
        let [line] = lines[..] else { panic!("one line, not {lines:?}") };
        assert!(line.contains("requests=2 peak_threads=1 slowest="), "{line}");
        assert!(line.contains("MOUNT:") && line.contains("FSTAT:"), "{line}");
    });
}

/// 57's neighbour. The originals that execute themselves lose sight of the zone.
#[test]
fn debug_logs_are_in_local_time_though_the_zones_file_is_out_of_sight() {
    each_of_ours(|subject| {
        fs::write(subject.path("zone"), zone(5 * 3600 + 45 * 60)).expect("a zone");
        let launcher = subject.launcher(&subject.bundle()).debug_log(subject.create("debug"));
        let launcher = launcher.environment([format!("TZ={}", subject.path("zone").display())]);
        served_and_ended(subject, launcher.global("--debug-log-format=json"));
        for line in read(subject, "debug").lines() {
            let record = object(line);
            assert!(record["time"].as_str().is_some_and(|time| time.ends_with("+05:45")), "{line}");
        }
    });
}

fn served_and_ended(subject: &Subject, launcher: Launcher) {
    let mut gofer = subject.started(launcher);
    let client = clients(&mut gofer).remove(0);
    client.fstat(client.mount()).expect("it serves");
    drop(client);
    gofer.wait().expect("an end");
}

fn read(subject: &Subject, name: &str) -> String {
    fs::read_to_string(subject.path(name)).expect("a log")
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `LMMDD hh:mm:ss.uuuuuu PPPPPPP file:line] message`.
fn is_text_record(line: &str) -> bool {
    let Some((head, _)) = line.split_once("] ") else { return false };
    let shape: String = head.chars().take(21).map(|one| if one.is_ascii_digit() { '0' } else { one }).collect();
    let place = head.get(29..).and_then(|rest| rest.strip_prefix(' '));
    let place = place.and_then(|place| place.rsplit_once(':'));
    // It sees itself as process 1.
    (shape.starts_with('D') || shape.starts_with('I') || shape.starts_with('W'))
        && shape[1..] == *"0000 00:00:00.000000"
        && head.get(21..29) == Some("       1")
        && place.is_some_and(|(file, line)| !file.is_empty() && line.parse::<u32>().is_ok())
}

fn is_json_record(generation: Generation, line: &str, key: &str) {
    let record = object(line);
    let message = record[key].as_str().unwrap_or_else(|| panic!("{key}: {line}"));
    let place = message.split_once("] ").and_then(|(place, _)| place.rsplit_once(':'));
    let placed = place.is_some_and(|(file, line)| !file.contains(' ') && line.parse::<u32>().is_ok());
    assert_eq!(placed, generation != Generation::E22, "{line}");
    assert!(matches!(record["level"].as_str(), Some("debug" | "info" | "warning")), "{line}");
    assert!(record["time"].as_str().is_some_and(is_rfc_3339), "{line}");
    assert_eq!(record.as_object().map(serde_json::Map::len), Some(3), "{line}");
}

/// With a fraction of a second, of up to nine digits, and a zone.
fn is_rfc_3339(time: &str) -> bool {
    let digits = |text: &str| text.chars().map(|one| if one.is_ascii_digit() { '0' } else { one }).collect::<String>();
    let Some((date, rest)) = time.split_once('.') else { return false };
    let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
    let zone = digits(&rest[end..]);
    digits(date) == "0000-00-00T00:00:00" && (1..=9).contains(&end) && ["Z", "+00:00", "-00:00"].contains(&&*zone)
}

/// A file of tzfile(5), version 1: a zone without any summer.
fn zone(offset: i32) -> Vec<u8> {
    let mut file = b"TZif".to_vec();
    file.extend([0; 16]);
    // Counts: indicators of UT, of standard time, leap seconds, transitions, types, and characters of names.
    for count in [0_u32, 0, 0, 0, 1, 4] {
        file.extend(count.to_be_bytes());
    }
    file.extend(offset.to_be_bytes());
    file.extend([0, 0]);
    file.extend(b"TST\0");
    file
}
