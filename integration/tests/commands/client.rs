//! `gofer client`: each action, for people and for programs.

use std::fs;
use std::process::{Command, Output};

use gofer_integration::{Gofer, Listening};
use serde_json::Value;

fn client(server: &Listening, args: &[&str]) -> Output {
    Command::new(Gofer::binary())
        .arg("client")
        .arg("--socket")
        .arg(server.socket())
        .args(args)
        .output()
        .expect("it starts")
}

/// Standard output of a run that must succeed.
fn ok(server: &Listening, args: &[&str]) -> String {
    let output = client(server, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

fn sample() -> Listening {
    Listening::with(&[], |dir| {
        fs::create_dir(dir.join("d")).expect("a directory");
        fs::write(dir.join("d/f"), "hello").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", dir.join("link")).expect("a link");
    })
}

#[test]
fn files_are_listed_read_written_moved_and_removed() {
    let server = sample();
    assert_eq!(ok(&server, &["ls"]), "d\nlink\n");
    assert_eq!(ok(&server, &["ls", "/d"]), "f\n");
    assert_eq!(ok(&server, &["cat", "/d/f"]), "hello");
    assert_eq!(ok(&server, &["mkdir", "--mode", "750", "/d/new"]), "");
    assert!(server.path().join("d/new").is_dir());
    assert_eq!(ok(&server, &["mv", "/d/f", "/d/new/g"]), "");
    assert_eq!(fs::read_to_string(server.path().join("d/new/g")).expect("moved"), "hello");
    ok(&server, &["rm", "d/new/g"]);
    ok(&server, &["rm", "--dir", "d/new"]);
    assert!(!server.path().join("d/new").exists());
    assert!(ok(&server, &["ls", "-l"]).contains("lrwxrwxrwx"));
    assert!(ok(&server, &["stat", "/d"]).contains("directory"));
}

#[test]
fn large_files_go_both_ways_unharmed_with_and_without_channels() {
    let server = sample();
    let home = tempfile::tempdir().expect("a directory");
    let data: Vec<u8> = (0..5_000_003_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .take(9_000_001)
        .collect();
    let source = home.path().join("source");
    fs::write(&source, &data).expect("a file");
    for flags in [&[][..], &["--no-channels"]] {
        let name = format!("/big-{}", flags.len());
        ok(&server, &[flags, &["put", source.to_str().expect("text"), &name]].concat());
        assert!(fs::read(server.path().join(&name[1..])).expect("there") == data);
        let back = home.path().join("back");
        ok(&server, &[flags, &["get", &name, back.to_str().expect("text")]].concat());
        assert!(fs::read(&back).expect("there") == data);
    }
    // Replaced, and not longer than what it holds now.
    fs::write(&source, "short").expect("a file");
    ok(&server, &["put", source.to_str().expect("text"), "/big-0"]);
    assert_eq!(ok(&server, &["cat", "/big-0"]), "short");
}

#[test]
fn json_is_one_object_a_line_with_exact_values() {
    let server = sample();
    let stat = &json_lines(&ok(&server, &["--json", "stat", "/d/f"]))[0];
    assert_eq!((&stat["type"], &stat["size"], &stat["name"]), (&"file".into(), &5.into(), &"/d/f".into()));
    let names: Vec<_> =
        json_lines(&ok(&server, &["--json", "ls", "-l"])).iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, ["d", "link"]);
    assert_eq!(json_lines(&ok(&server, &["--json", "mkdir", "/x"]))[0]["done"], "created");
    let ping = &json_lines(&ok(&server, &["--json", "ping", "-n", "200"]))[0];
    assert!(ping["socket"]["p50_ns"].as_u64() <= ping["socket"]["p99_ns"].as_u64());
    assert!(ping["channel"]["p50_ns"].as_u64().is_some_and(|ns| ns > 0));
}

#[test]
fn ping_reports_both_transports_or_the_socket_alone() {
    let server = sample();
    let both = ok(&server, &["ping", "--count", "100"]);
    assert!(both.contains("socket") && both.contains("channel") && both.contains("p99"), "{both}");
    let one = ok(&server, &["--no-channels", "ping", "--count", "100"]);
    assert!(one.contains("socket") && !one.contains("channel"), "{one}");
}

#[test]
fn what_fails_names_the_path_and_the_cause() {
    let server = sample();
    for (args, words) in [
        (&["cat", "/missing"][..], "open /missing: "),
        (&["cat", "/link/x"], "/link/x: "),
        (&["mkdir", "/d"], "create directory /d: "),
        (&["rm", "/d"], "remove /d: "),
        (&["mv", "/missing", "/x"], "move /missing: "),
        (&["get", "/d/f", "/nowhere/at/all"], "create /nowhere/at/all: "),
        (&["put", "/nowhere/at/all", "/x"], "read /nowhere/at/all: "),
    ] {
        let complaint = super::sentence(&client(&server, args));
        assert!(complaint.contains(words), "{args:?}: {complaint}");
    }
}

#[test]
fn a_path_that_leaves_the_root_is_refused() {
    let server = sample();
    let complaint = super::sentence(&client(&server, &["cat", "/../etc/passwd"]));
    assert!(complaint.contains("Invalid argument"), "{complaint}");
}
