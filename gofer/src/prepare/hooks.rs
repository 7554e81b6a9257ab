//! `createContainer` hooks, in order, in the gofer's name spaces, before the root is final (E26).
//!
//! Standard streams are memory files: nothing can block on them, and no thread is needed to move bytes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use gofer::contract::Generation;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;

use crate::process::StartError;
use crate::process::args::Args;
use crate::process::spec::{Hook, Spec};

/// What a failed hook has said, as far as an error quotes it.
const MAX_QUOTE: u64 = 4096;

pub(super) fn run(args: &Args, spec: &Spec) -> Result<(), StartError> {
    let state = json!({
        "ociVersion": "1.2.1",
        "id": args.id,
        "status": "creating",
        "pid": -1,
        "bundle": args.bundle.to_string_lossy(),
        "annotations": spec.annotations,
    })
    .to_string();
    for hook in &spec.create_container {
        if is_skipped(hook) {
            tracing::info!("Skipping the hook {}", hook.path.display());
            continue;
        }
        tracing::info!("Running the hook {}", hook.path.display());
        run_one(hook, &state)?;
    }
    Ok(())
}

/// Whether any hook will run.
pub(super) fn wanted(args: &Args, spec: &Spec) -> bool {
    args.generation >= Generation::E26 && spec.create_container.iter().any(|hook| !is_skipped(hook))
}

/// Work that the runtime does itself.
fn is_skipped(hook: &Hook) -> bool {
    hook.path.ends_with("nvidia-container-runtime-hook")
        || (hook.path.ends_with("nvidia-cdi-hook")
            && hook.args.iter().any(|arg| arg == "disable-device-node-modification"))
}

fn run_one(hook: &Hook, state: &str) -> Result<(), StartError> {
    let name = hook.path.display();
    let fail = |cause: &dyn std::fmt::Display| StartError::new(format_args!("run the hook {name}"), cause);
    if !hook.path.is_absolute() {
        return Err(fail(&"its path is not absolute"));
    }
    let mut input = memory("hook-input").map_err(|cause| fail(&cause))?;
    input.write_all(state.as_bytes()).map_err(|cause| fail(&cause))?;
    input.seek(SeekFrom::Start(0)).map_err(|cause| fail(&cause))?;
    let output = memory("hook-output").map_err(|cause| fail(&cause))?;
    let both = || output.try_clone();

    let mut command = Command::new(&hook.path);
    if let Some((first, rest)) = hook.args.split_first() {
        command.arg0(first).args(rest);
    }
    if let Some(env) = &hook.env {
        command.env_clear().envs(env.iter().filter_map(|one| one.split_once('=')));
    }
    command.stdin(input).stdout(both().map_err(|cause| fail(&cause))?).stderr(both().map_err(|cause| fail(&cause))?);
    let mut child = command.spawn().map_err(|cause| fail(&cause))?;
    let status = wait(&mut child, hook.timeout).map_err(|cause| fail(&cause))?;
    let cause = match status {
        Some(status) if status.success() => return Ok(()),
        Some(status) => status.to_string(),
        None => "it took longer than its timeout".to_owned(),
    };
    Err(fail(&format_args!("{cause}, output: {}", quote(output))))
}

/// None: it was killed, because its time was over.
fn wait(child: &mut Child, timeout: Option<u64>) -> std::io::Result<Option<ExitStatus>> {
    let Some(end) = timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))) else {
        return child.wait().map(Some);
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn memory(name: &str) -> std::io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

fn quote(mut output: File) -> String {
    let mut text = Vec::new();
    // An error without its quotation is still an error.
    let _ = output.seek(SeekFrom::Start(0)).and_then(|_| output.take(MAX_QUOTE).read_to_end(&mut text));
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Option<u64>) -> Hook {
        let args = ["sh", "-c", script].map(str::to_owned).to_vec();
        Hook { path: "/bin/sh".into(), args, env: Some(vec!["A=b".to_owned()]), timeout }
    }

    #[test]
    fn a_hook_gets_its_environment_and_the_state() {
        run_one(&shell("test \"$A\" = b && test \"$(cat)\" = state", None), "state").unwrap();
    }

    #[test]
    fn a_failing_hook_and_a_slow_one_are_quoted() {
        let error = run_one(&shell("echo reason >&2; exit 3", None), "").unwrap_err().to_string();
        assert!(error.contains("reason") && error.contains('3'), "{error}");
        let error = run_one(&shell("echo begun; exec sleep 60", Some(1)), "").unwrap_err().to_string();
        assert!(error.contains("begun") && error.contains("timeout"), "{error}");
    }
}
