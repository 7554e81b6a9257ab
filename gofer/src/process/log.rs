//! The logs of the gofer that `runsc` starts: a debug log in one of the runtime's three formats, and one record of the
//! error that ends the process.
//!
//! A log that cannot be written is no reason to stop: such lines are dropped and counted.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use gofer::contract::Generation;
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::StartError;
use super::args::{LogArgs, LogFormat};
use super::moment::{self, Moment};
use crate::log::Line;

/// Where the error that ends the process goes.
#[derive(Debug)]
pub(crate) struct Logs {
    errors: Option<File>,
}

/// Starts the debug log, if there is a descriptor for it; messages go nowhere otherwise, and nothing is allocated.
///
/// `generation` is `None` where the command line did not tell.
pub(crate) fn start(args: LogArgs, generation: Option<Generation>) -> Logs {
    if let Some(debug) = args.debug {
        moment::learn_zone();
        let log = DebugLog::new(debug, args.format, args.verbose, generation);
        // Fails only if something logs already, which then goes on.
        let _ = tracing::subscriber::set_global_default(log);
    }
    Logs { errors: args.errors.map(File::from) }
}

/// Makes the panic log, or else the debug log, standard error, so that the words of a crash are kept.
pub(crate) fn replace_standard_error(args: &LogArgs) {
    if let Some(fd) = args.panics.as_ref().or(args.debug.as_ref()) {
        // Standard error stays what it was if this fails, and nobody else could be told.
        let _ = rustix::stdio::dup2_stderr(fd);
    }
}

impl Logs {
    /// Says why the process ends: in the debug log, on standard error, and as the one record of the error log.
    pub(crate) fn fatal(self, error: &StartError) {
        let text = error.to_string();
        tracing::warn!("FATAL ERROR: {text}");
        let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
        if let Some(mut file) = self.errors {
            // No end of line: container managers read a stream of objects, and others write to the same file.
            let _ = file.write_all(json_record("msg", &text, "error", Moment::now()).as_bytes());
        }
    }
}

struct DebugLog {
    file: File,
    format: LogFormat,
    /// Source file and line stand before the message in JSON too.
    placed: bool,
    level: Level,
    dropped: AtomicU64,
}

impl DebugLog {
    fn new(fd: OwnedFd, format: LogFormat, verbose: bool, generation: Option<Generation>) -> Self {
        Self {
            file: File::from(fd),
            format,
            placed: format == LogFormat::Text || generation != Some(Generation::E22),
            level: if verbose { Level::DEBUG } else { Level::INFO },
            dropped: AtomicU64::new(0),
        }
    }

    fn line(&self, event: &Event<'_>, time: Moment) -> String {
        let metadata = event.metadata();
        let mut message = Line(String::new());
        if self.placed {
            let file = metadata.file().unwrap_or("gofer");
            let file = file.rsplit_once("src/").map_or(file, |(_, below)| below);
            message.0 = format!("{file}:{}] ", metadata.line().unwrap_or(0));
        }
        event.record(&mut message);
        // A message may hold a text of the client's, which must not make lines of its own.
        let message = message.0.replace(char::is_control, " ");
        let level = level_name(*metadata.level());
        let mut line = match self.format {
            LogFormat::Text => format!("{} {:>7} {message}", time.text(level), std::process::id()),
            LogFormat::Json => json_record("msg", &message, level, time),
            LogFormat::JsonK8s => json_record("log", &message, level, time),
        };
        line.push('\n');
        line
    }
}

impl Subscriber for DebugLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let line = self.line(event, Moment::now());
        // One write a line, so that lines of several threads do not mix.
        match (&self.file).write_all(line.as_bytes()) {
            Err(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            Ok(()) => match self.dropped.swap(0, Ordering::Relaxed) {
                0 => {}
                dropped => tracing::warn!("{dropped} lines before this one could not be written"),
            },
        }
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.level.into())
    }

    // Spans are not used.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The runtime knows three levels.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR | Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}

fn json_record(key: &str, message: &str, level: &str, time: impl Display) -> String {
    let message = serde_json::Value::from(message);
    format!(r#"{{"{key}":{message},"level":"{level}","time":"{time}"}}"#)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use serde_json::Value;

    use super::*;

    /// What a debug log holds after `log` has run.
    fn logged(format: LogFormat, verbose: bool, generation: Generation, log: impl FnOnce()) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let fd = OwnedFd::from(file.try_clone().unwrap());
        tracing::subscriber::with_default(DebugLog::new(fd, format, verbose, Some(generation)), log);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn text_debug_logs_parse() {
        let text = logged(LogFormat::Text, true, Generation::E24, || tracing::info!(a = 1, "one\ntwo"));
        let (head, message) = text.split_once("] ").unwrap();
        assert_eq!(message, "one two a=1\n");
        assert!(head.starts_with('I') && head.contains(" process/log.rs:"), "{head}");
        assert_eq!(head.find(&format!("{:>7} ", std::process::id())), Some(22), "{head}");
    }

    #[test]
    fn json_debug_logs_parse() {
        for (format, key) in [(LogFormat::Json, "msg"), (LogFormat::JsonK8s, "log")] {
            for generation in [Generation::E22, Generation::E24, Generation::E26] {
                let text = logged(format, false, generation, || tracing::error!("a \"b\""));
                let record: Value = serde_json::from_str(&text).unwrap();
                let message = record[key].as_str().unwrap();
                assert!(message.ends_with("a \"b\""));
                assert_eq!(message.contains("log.rs:"), generation != Generation::E22);
                assert_eq!(record["level"], "warning");
                assert!(record["time"].as_str().unwrap().ends_with('Z'));
            }
        }
    }

    #[test]
    fn debug_records_appear_only_if_wanted() {
        let log = || {
            tracing::debug!("quiet");
            tracing::info!("loud");
        };
        assert_eq!(logged(LogFormat::Text, true, Generation::E24, log).lines().count(), 2);
        let text = logged(LogFormat::Text, false, Generation::E24, log);
        assert!(text.contains("loud") && !text.contains("quiet"));
    }

    #[test]
    fn a_fatal_error_yields_exactly_one_json_object() {
        let mut file = tempfile::tempfile().unwrap();
        let args = LogArgs { errors: Some(file.try_clone().unwrap().into()), ..LogArgs::default() };
        start(args, None).fatal(&StartError::new("mount \"/a\"", "no such\nfile"));
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((record["level"].as_str(), text.ends_with('}')), (Some("error"), true));
        assert!(record["msg"].as_str().unwrap().contains("no such\nfile"));
    }

    #[test]
    fn a_clean_run_leaves_the_error_log_alone() {
        let file = tempfile::tempfile().unwrap();
        let args = LogArgs { errors: Some(file.try_clone().unwrap().into()), ..LogArgs::default() };
        drop(start(args, Some(Generation::E26)));
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nobody() {
        let unwritable = OwnedFd::from(File::open("/dev/null").unwrap());
        let log = DebugLog::new(unwritable, LogFormat::Text, false, None);
        tracing::subscriber::with_default(log, || tracing::info!("lost"));
    }
}
