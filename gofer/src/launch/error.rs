//! Why a gofer could not be started: one sentence.

use std::fmt;

/// `cannot STEP: CAUSE`.
#[derive(Debug)]
pub struct LaunchError {
    text: String,
}

impl LaunchError {
    pub(super) fn new(step: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self { text: format!("cannot {step}: {cause}") }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for LaunchError {}
