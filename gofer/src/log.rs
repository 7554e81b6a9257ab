//! Log lines on standard error: `gofer: LEVEL: message field=value`.
//!
//! A subscriber of our own, because it is all that is needed and the usual one costs tens of KiB in every process.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Logs what is at least as important as `level`, from now on.
pub(crate) fn start(level: Level) {
    // Fails only if something logs already, which then goes on.
    let _ = tracing::subscriber::set_global_default(Stderr { level });
}

struct Stderr {
    level: Level,
}

impl Subscriber for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("gofer: {}: ", label(*event.metadata().level())));
        event.record(&mut line);
        line.0.push('\n');
        // One write a line, so that lines of several threads do not mix. A log that is gone is no reason to stop.
        let _ = std::io::stderr().write_all(line.0.as_bytes());
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

fn label(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        _ => "trace",
    }
}

/// A message, and its fields after it.
pub(crate) struct Line(pub(crate) String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let result = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        // Writing to a string does not fail.
        debug_assert!(result.is_ok());
    }
}
