//! The syntax of Go's `flag` package, which is what `runsc` writes its arguments in.
//!
//! Own code, because no Rust parser takes one dash for two, stops at the first other word, or knows which flags need no
//! value in this way; and a value read wrongly here is a policy applied wrongly.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// A flag that may be given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

impl Flag {
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }
}

/// What a flag's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Needs no value, and takes one after `=` only.
    Bool,
    Int,
    Uint,
    Duration,
    /// A flag whose type changed between generations; as [`Kind::Bool`] where it has no `=`.
    BoolOrDuration,
    /// Anything.
    Text,
    /// Plain decimal integers with commas between them.
    Decimals,
}

/// Values of flags, in the order given.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<(&'static str, OsString)>);

impl Values {
    /// All values of a flag.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a OsStr> {
        self.0.iter().filter(move |(of, _)| *of == name).map(|(_, value)| value.as_os_str())
    }

    /// The value that counts: the last.
    pub(crate) fn last(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().rev().find(|(of, _)| *of == name).map(|(_, value)| value.as_os_str())
    }

    /// As text; every kind but [`Kind::Text`] is ASCII by now.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.last(name).and_then(OsStr::to_str)
    }

    /// A boolean flag; false if it is not given.
    pub(crate) fn bool(&self, name: &str) -> bool {
        self.text(name).and_then(boolean).unwrap_or(false)
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(integer).and_then(|value| i64::try_from(value).ok())
    }

    /// Names that were given.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }
}

/// Why a list of arguments is not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// No such flag.
    Unknown(String),
    /// No flag could look like this.
    Syntax(String),
    /// The last argument needs one more.
    NoValue(&'static str),
    Value(&'static str, String),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "flag --{name} is not known"),
            Self::Syntax(argument) => write!(f, "{argument:?} is not a flag"),
            Self::NoValue(name) => write!(f, "flag --{name} needs a value"),
            Self::Value(name, value) => write!(f, "flag --{name} cannot be {value:?}"),
        }
    }
}

/// Reads flags that `find` knows into `values` up to the first other word, and returns what follows.
pub(crate) fn parse<'a>(
    find: impl Fn(&[u8]) -> Option<Flag>,
    mut arguments: &'a [OsString],
    values: &mut Values,
) -> Result<&'a [OsString], Bad> {
    while let Some((first, rest)) = arguments.split_first() {
        let bytes = first.as_bytes();
        if bytes.len() < 2 || bytes[0] != b'-' {
            return Ok(arguments);
        }
        arguments = rest;
        if bytes == b"--" {
            return Ok(arguments);
        }
        let body = bytes.strip_prefix(b"--").unwrap_or_else(|| &bytes[1..]);
        if matches!(body[0], b'-' | b'=') {
            return Err(Bad::Syntax(lossy(bytes)));
        }
        let (name, value) = match body.iter().position(|&byte| byte == b'=') {
            Some(at) => (&body[..at], Some(&body[at + 1..])),
            None => (body, None),
        };
        let Some(flag) = find(name) else {
            return Err(Bad::Unknown(lossy(name)));
        };
        let value = match value {
            Some(value) => OsStr::from_bytes(value),
            None if matches!(flag.kind, Kind::Bool | Kind::BoolOrDuration) => OsStr::new("true"),
            None => {
                let (value, rest) = arguments.split_first().ok_or(Bad::NoValue(flag.name))?;
                arguments = rest;
                value
            }
        };
        if !is_valid(flag.kind, value) {
            return Err(Bad::Value(flag.name, lossy(value.as_bytes())));
        }
        values.0.push((flag.name, value.to_owned()));
    }
    Ok(arguments)
}

fn is_valid(kind: Kind, value: &OsStr) -> bool {
    if kind == Kind::Text {
        return true;
    }
    let Some(value) = value.to_str() else { return false };
    match kind {
        Kind::Bool => boolean(value).is_some(),
        Kind::Int => integer(value).is_some_and(|value| i64::try_from(value).is_ok()),
        // Go takes no sign here.
        Kind::Uint => {
            value.starts_with(char::is_alphanumeric) && integer(value).is_some_and(|n| u64::try_from(n).is_ok())
        }
        Kind::Duration => is_duration(value),
        Kind::BoolOrDuration => boolean(value).is_some() || is_duration(value),
        Kind::Decimals => value.split(',').all(|number| number.parse::<i64>().is_ok()),
        Kind::Text => true,
    }
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// With a prefix for the base, and underscores between digits or after the prefix.
fn integer(value: &str) -> Option<i128> {
    let (negative, value) = match value.strip_prefix(['+', '-']) {
        Some(rest) => (value.starts_with('-'), rest),
        None => (false, value),
    };
    let lower = value.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        [b'_', ..] => return None,
        _ => (10, &lower[..]),
    };
    if digits.ends_with('_') || digits.contains("__") || digits.contains(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -value } else { value })
}

/// `0`, or decimal numbers with units, as `1h2.5s`.
fn is_duration(value: &str) -> bool {
    let mut rest = value.strip_prefix(['+', '-']).unwrap_or(value);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at(end);
        if number.matches('.').count() > 1 || !number.contains(|c: char| c.is_ascii_digit()) {
            return false;
        }
        // Both characters that look like a micro sign count.
        let units = ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"];
        let Some(unit) = units.into_iter().find_map(|name| unit.strip_prefix(name)) else { return false };
        rest = unit;
    }
    true
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &[u8]) -> Option<Flag> {
        TABLE.iter().find(|flag| flag.name.as_bytes() == name).copied()
    }

    const TABLE: &[Flag] = &[
        Flag::new("text", Kind::Text),
        Flag::new("yes", Kind::Bool),
        Flag::new("int", Kind::Int),
        Flag::new("fds", Kind::Decimals),
    ];

    fn read(arguments: &[&str]) -> Result<(Values, Vec<OsString>), Bad> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut values = Values::default();
        let rest = parse(known, &arguments, &mut values)?.to_vec();
        Ok((values, rest))
    }

    #[test]
    fn one_dash_is_two_and_a_value_may_follow() {
        for arguments in [["--text", "-x"].as_slice(), &["-text=-x"], &["--text=-x"], &["-text", "-x"]] {
            assert_eq!(read(arguments).unwrap().0.text("text"), Some("-x"));
        }
        assert_eq!(read(&["--text=a=b"]).unwrap().0.text("text"), Some("a=b"));
    }

    #[test]
    fn a_boolean_takes_no_value_from_the_next_argument() {
        let (values, rest) = read(&["--yes", "false", "--int=1"]).unwrap();
        assert!(values.bool("yes"));
        assert_eq!(rest, ["false", "--int=1"]);
        assert!(!read(&["--yes=F"]).unwrap().0.bool("yes"));
        assert_eq!(read(&["--yes=no"]).unwrap_err(), Bad::Value("yes", "no".into()));
    }

    #[test]
    fn flags_end_at_a_word_a_lone_dash_or_two_dashes() {
        assert_eq!(read(&["-yes", "word", "-yes"]).unwrap().1, ["word", "-yes"]);
        assert_eq!(read(&["-", "x"]).unwrap().1, ["-", "x"]);
        assert_eq!(read(&["--", "-yes"]).unwrap().1, ["-yes"]);
    }

    #[test]
    fn what_is_no_flag_is_refused_by_name() {
        assert_eq!(read(&["---yes"]).unwrap_err(), Bad::Syntax("---yes".into()));
        assert_eq!(read(&["-=x"]).unwrap_err(), Bad::Syntax("-=x".into()));
        assert_eq!(read(&["--nope=1"]).unwrap_err(), Bad::Unknown("nope".into()));
        assert_eq!(read(&["--int"]).unwrap_err(), Bad::NoValue("int"));
    }

    #[test]
    fn a_repeated_scalar_flag_takes_its_last_value() {
        let (values, _) = read(&["--int=11", "--yes", "--int=-1", "--yes=false"]).unwrap();
        assert_eq!(values.int("int"), Some(-1));
        assert!(!values.bool("yes"));
    }

    #[test]
    fn integers_have_bases_and_underscores() {
        for (text, value) in
            [("0x1f", 31), ("0o17", 15), ("017", 15), ("0b11", 3), ("1_000", 1000), ("0_7", 7), ("0", 0)]
        {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in ["", "-", "_1", "1_", "1__0", "0x", "08", "+-1", "1a", " 1", "0x-1"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert!(read(&["--fds=0x7"]).is_err());
        assert!(read(&["--int=9223372036854775808"]).is_err());
    }

    #[test]
    fn durations_have_units() {
        for text in ["0", "15s", "20\u{b5}s", "1h2m3.5s", "-1ms", ".5s"] {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "1", "s", "1x", "1.2.3s", "."] {
            assert!(!is_duration(text), "{text}");
        }
    }
}
