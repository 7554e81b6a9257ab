//! Serving under the filter, and what the filter ends. A filter cannot be taken off, so each test runs this test binary
//! again, with one scenario.

mod forbidden;
mod sweep;

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use gofer::HostSockets;

use super::{Filter, Grant};

const SCENARIO: &str = "GOFER_TEST_SCENARIO";
const POLICY: &str = "GOFER_TEST_POLICY";

/// Says that the scenario came to its end.
const SURVIVED: i32 = 77;

/// Not a test of its own: what the others run.
#[test]
fn runs_a_scenario_if_it_is_told_one() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let grant = match std::env::var(POLICY).as_deref() {
        Ok("all") => Grant { host_sockets: HostSockets::All, identities: false },
        Ok("identities") => Grant { host_sockets: HostSockets::All, identities: true },
        _ => Grant { host_sockets: HostSockets::None, identities: false },
    };
    // As in a gofer: what the filter refuses is not held either. All other threads come from this one.
    grant.trim(false).expect("fewer capabilities");
    let filter = Filter::new(grant);
    match scenario.as_str() {
        "serve" => sweep::serve(&filter, grant.host_sockets),
        "chores" => sweep::chores(&filter),
        call => forbidden::make(&filter, call),
    }
    // Not the way through the harness, which has files and threads of its own.
    std::process::exit(SURVIVED);
}

fn scenario(name: &str, policy: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "--nocapture", "--test-threads=1"]);
    command.arg(concat!(module_path!(), "::runs_a_scenario_if_it_is_told_one").split_once("::").expect("a crate").1);
    command.env(SCENARIO, name).env(POLICY, policy).env("RUST_BACKTRACE", "full");
    command.stdin(Stdio::null()).stdout(File::create("/dev/null").expect("/dev/null"));
    command
}

fn survived(status: ExitStatus) -> bool {
    status.code() == Some(SURVIVED)
}

fn killed(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGSYS)
}
