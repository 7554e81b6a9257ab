//! The gofer of a `runsc` container: from its arguments to its end.

pub(crate) mod args;
mod descriptors;
pub(crate) mod environment;
mod flags;
mod globals;
pub(crate) mod hand_over;
pub(crate) mod log;
pub(crate) mod spec;

use std::fmt;

/// Why the process cannot go on: one sentence that names the step and its object.
#[derive(Debug)]
pub(crate) struct StartError {
    text: String,
    /// Exit code: 128, or 2 where the original gofer has that.
    code: u8,
}

impl StartError {
    /// `cannot ACTION: CAUSE`, exit code 128.
    pub(crate) fn new(action: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::sentence(format!("cannot {action}: {cause}"))
    }

    /// A sentence as it is, exit code 128.
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 128 }
    }

    /// The same with another exit code.
    pub(crate) fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Exit code of the process.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}
