//! Options from the environment: what `runsc` starts gets no flags of ours.
//!
//! Only names that begin with `GOFER_` are looked at; everything else belongs to `runsc` or to Go.

use std::ffi::{OsStr, OsString};

/// What the environment says.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// `GOFER_ON_UNKNOWN`; none if it says nothing.
    pub(crate) on_unknown: Option<OnUnknown>,
    /// Sentences to log once there is a log.
    pub(crate) warnings: Vec<String>,
}

/// What becomes of a command line of no known generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnUnknown {
    /// The original gofer of the same file takes over.
    Stock,
    /// The process ends.
    Fail,
}

impl Environment {
    /// Reads our variables. A bad one must not stop a container, so it only makes a warning.
    pub(crate) fn read(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let mut read = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with("GOFER_")) else { continue };
            if name == "GOFER_ON_UNKNOWN" {
                read.set_on_unknown(&value);
            } else if !ELSEWHERE.contains(&name) {
                read.warnings.push(format!("variable {name} is not known"));
            }
        }
        read
    }

    fn set_on_unknown(&mut self, value: &OsStr) {
        match value.to_str() {
            Some("stock") => self.on_unknown = Some(OnUnknown::Stock),
            Some("fail") => self.on_unknown = Some(OnUnknown::Fail),
            _ => self.warnings.push(format!("variable GOFER_ON_UNKNOWN cannot be {value:?}: stock or fail")),
        }
    }
}

/// Variables that others read.
const ELSEWHERE: [&str; 5] =
    ["GOFER_WORKERS", "GOFER_MAX_BLOCKING_THREADS", "GOFER_PARK", "GOFER_SPIN", "GOFER_RECORD"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        Environment::read(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn variables_that_begin_with_go_are_ignored_but_for_ours() {
        let read = read(&[("GOMAXPROCS", "1"), ("GODEBUG", "x"), ("GOFER", "x"), ("GOFER_WORKERS", "2"), ("PATH", "")]);
        assert_eq!(read.warnings, [""; 0]);
        assert_eq!(read.on_unknown, None);
    }

    #[test]
    fn what_happens_to_the_unknown_can_be_chosen() {
        assert_eq!(read(&[("GOFER_ON_UNKNOWN", "fail")]).on_unknown, Some(OnUnknown::Fail));
        assert_eq!(read(&[("GOFER_ON_UNKNOWN", "stock")]).on_unknown, Some(OnUnknown::Stock));
        let bad = read(&[("GOFER_ON_UNKNOWN", "maybe")]);
        assert_eq!(bad.on_unknown, None);
        assert!(bad.warnings[0].contains("maybe"));
    }

    #[test]
    fn an_unknown_name_of_ours_makes_a_warning() {
        assert!(read(&[("GOFER_WORKER", "2")]).warnings[0].contains("GOFER_WORKER "));
    }
}
