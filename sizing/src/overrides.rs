//! What the operator asked for instead of the policy: flags, then environment variables.
//!
//! A value is valid or refused with a sentence; it is never bent into shape.

use std::error::Error;
use std::fmt;

use crate::host::digits;

/// The environment variable that sets the workers.
pub const WORKERS_VARIABLE: &str = "GOFER_WORKERS";
/// The environment variable that sets the bound on blocking threads.
pub const BLOCKING_VARIABLE: &str = "GOFER_MAX_BLOCKING_THREADS";
/// The flag that sets the workers.
pub const WORKERS_FLAG: &str = "--workers";
/// The flag that sets the bound on blocking threads.
pub const BLOCKING_FLAG: &str = "--max-blocking-threads";
/// More workers than this are a slip of the finger: the policy itself stops at 8.
pub const MAX_WORKERS: usize = 256;
/// More blocking threads than this would take a container's memory for stacks alone.
pub const MAX_BLOCKING: usize = 4096;

/// Values as somebody wrote them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'t> {
    /// A number of workers, or `uncapped`.
    pub workers: Option<&'t str>,
    /// A number of threads.
    pub blocking: Option<&'t str>,
}

/// Valid overrides, and who asked for each. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub(crate) workers: Option<Override<Workers>>,
    pub(crate) blocking: Option<Override<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Override<T> {
    pub(crate) value: T,
    /// The flag or the variable.
    pub(crate) by: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    Exactly(usize),
    Uncapped,
}

impl Overrides {
    /// Takes each value from the flags, or else from the environment. A value that a flag beats is not looked at.
    ///
    /// # Errors
    ///
    /// Names the flag or variable whose value is zero, negative, no number, or over the maximum; or the two that
    /// contradict each other.
    pub fn choose(flags: Given<'_>, environment: Given<'_>) -> Result<Self, OverrideError> {
        let workers = first([flags.workers, environment.workers], [WORKERS_FLAG, WORKERS_VARIABLE]);
        let blocking = first([flags.blocking, environment.blocking], [BLOCKING_FLAG, BLOCKING_VARIABLE]);
        let chosen = Self {
            workers: workers.map(|given| given.parse(workers_value, Expected::Workers)).transpose()?,
            blocking: blocking.map(|given| given.parse(blocking_value, Expected::Blocking)).transpose()?,
        };
        chosen.consistent()
    }

    /// Whether the workers are decided without a look at the host.
    pub(crate) fn settles_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// Workers are threads too, so the bound on all threads must leave room for them.
    fn consistent(self) -> Result<Self, OverrideError> {
        match (self.workers, self.blocking) {
            (Some(Override { value: Workers::Exactly(workers), by }), Some(blocking)) if workers > blocking.value => {
                let expected = Expected::AtMost { threads: blocking.value, by: blocking.by };
                Err(OverrideError { name: by, value: workers.to_string(), expected })
            }
            _ => Ok(self),
        }
    }
}

fn first<'t>(given: [Option<&'t str>; 2], names: [&'static str; 2]) -> Option<Override<&'t str>> {
    given.into_iter().zip(names).find_map(|(value, by)| Some(Override { value: value?, by }))
}

impl Override<&str> {
    fn parse<T>(self, parse: fn(&str) -> Option<T>, expected: Expected) -> Result<Override<T>, OverrideError> {
        match parse(self.value) {
            Some(value) => Ok(Override { value, by: self.by }),
            None => Err(OverrideError { name: self.by, value: self.value.to_owned(), expected }),
        }
    }
}

fn workers_value(text: &str) -> Option<Workers> {
    match text {
        "uncapped" => Some(Workers::Uncapped),
        _ => digits(text).ok().filter(|count| (1..=MAX_WORKERS).contains(count)).map(Workers::Exactly),
    }
}

fn blocking_value(text: &str) -> Option<usize> {
    digits(text).ok().filter(|count| (1..=MAX_BLOCKING).contains(count))
}

/// An override that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideError {
    name: &'static str,
    value: String,
    expected: Expected,
}

impl OverrideError {
    /// The flag or environment variable to correct.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Workers,
    Blocking,
    AtMost { threads: usize, by: &'static str },
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}: ", self.name, self.value)?;
        match self.expected {
            Expected::Workers => write!(f, "expected a number of workers from 1 to {MAX_WORKERS}, or \"uncapped\""),
            Expected::Blocking => write!(f, "expected a number of threads from 1 to {MAX_BLOCKING}"),
            Expected::AtMost { threads, by } => {
                write!(f, "more workers than the {threads} threads that {by} allows in all")
            }
        }
    }
}

impl Error for OverrideError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<'t>(workers: impl Into<Option<&'t str>>, blocking: impl Into<Option<&'t str>>) -> Given<'t> {
        Given { workers: workers.into(), blocking: blocking.into() }
    }

    #[test]
    fn flags_beat_the_environment_one_by_one() {
        let chosen = Overrides::choose(given("3", None), given("garbage", "40")).unwrap();
        assert_eq!(chosen.workers, Some(Override { value: Workers::Exactly(3), by: WORKERS_FLAG }));
        assert_eq!(chosen.blocking, Some(Override { value: 40, by: BLOCKING_VARIABLE }));
        assert_eq!(Overrides::choose(Given::default(), Given::default()), Ok(Overrides::default()));
    }

    #[test]
    fn bad_values_are_refused_by_the_name_they_came_under() {
        for bad in ["", "0", "-1", "+4", " 4", "4.0", "four", "Uncapped", "0x4", "4\n", "5000", "99999999999999999999"]
        {
            for (flags, environment, name) in [
                (given(bad, None), Given::default(), WORKERS_FLAG),
                (Given::default(), given(bad, None), WORKERS_VARIABLE),
                (given(None, bad), Given::default(), BLOCKING_FLAG),
                (Given::default(), given(None, bad), BLOCKING_VARIABLE),
            ] {
                let error = Overrides::choose(flags, environment).unwrap_err();
                assert_eq!(error.name(), name, "{bad:?}");
                assert!(error.to_string().starts_with(&format!("{name}={bad:?}: expected a number")), "{error}");
            }
        }
        assert!(Overrides::choose(given(None, "uncapped"), Given::default()).is_err(), "only workers can be uncapped");
    }

    #[test]
    fn the_maximum_itself_is_allowed() {
        assert!(Overrides::choose(given("256", "4096"), Given::default()).is_ok());
        assert!(Overrides::choose(given("257", None), Given::default()).is_err());
        assert!(Overrides::choose(given(None, "4097"), Given::default()).is_err());
    }

    #[test]
    fn more_workers_than_threads_in_all_are_refused() {
        let error = Overrides::choose(given("8", None), given(None, "4")).unwrap_err();
        let told = "--workers=\"8\": more workers than the 4 threads that GOFER_MAX_BLOCKING_THREADS allows in all";
        assert_eq!(error.to_string(), told);
    }
}
