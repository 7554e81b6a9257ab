//! Moments as logs have them: in local time, whose rules the C library reads once, while the host's file of them is in sight.
#![allow(unsafe_code, reason = "localtime_r(3) has no safe form")]

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whether the C library has the host's rules. It would look for them later on as well, in the container's files.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// Learns the rules of local time, from `TZ` or `/etc/localtime`; moments are in UTC until then. Only for debug logs: it
/// costs a file and some KiB. The one record of an error names its zone, so that UTC does there.
pub(super) fn learn_zone() {
    let _ = local_offset(Duration::ZERO);
    KNOWN.store(true, Ordering::Relaxed);
}

/// A point in time, and how far local time is from UTC then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    since_epoch: Duration,
    /// Seconds to the east.
    offset: i32,
}

impl Moment {
    pub(super) fn now() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let offset = if KNOWN.load(Ordering::Relaxed) { local_offset(since_epoch) } else { 0 };
        Self { since_epoch, offset }
    }

    /// `LMMDD hh:mm:ss.uuuuuu`.
    pub(super) fn text(self, level: &str) -> String {
        let (_, month, day) = self.date();
        let (hour, minute, second) = self.clock();
        let letter = level[..1].to_ascii_uppercase();
        format!("{letter}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{:06}", self.since_epoch.subsec_micros())
    }

    fn local_seconds(self) -> u64 {
        self.since_epoch.as_secs().saturating_add_signed(self.offset.into())
    }

    fn clock(self) -> (u64, u64, u64) {
        let seconds = self.local_seconds() % 86_400;
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// Year, month, day, in the Gregorian calendar. Years begin in March here until the end, so that a leap day is the
    /// last day of one, and 400 years are 146,097 days.
    fn date(self) -> (u64, u64, u64) {
        let days = self.local_seconds() / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let of_month = day - (153 * month + 2) / 5 + 1;
        let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + later, month, of_month)
    }
}

/// RFC 3339 with nanoseconds.
impl Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.clock();
        let nanoseconds = self.since_epoch.subsec_nanos();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}")?;
        let minutes = self.offset.unsigned_abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        match self.offset {
            0 => f.write_str("Z"),
            _ => write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }
}

/// Seconds that local time is to the east of UTC at that moment. Reads files when it is called first, and never again.
fn local_offset(since_epoch: Duration) -> i32 {
    let Ok(seconds) = libc::time_t::try_from(since_epoch.as_secs()) else { return 0 };
    // SAFETY: an all-zero tm is valid: its fields are numbers, and its zone's name is a pointer that may be null.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: reads one live number and writes to a live, exclusively borrowed place. The variables of the environment,
    // which it reads the first time, are changed by nobody.
    let made = unsafe { libc::localtime_r(&raw const seconds, &raw mut broken_down) };
    // An offset is less than a day.
    if made.is_null() { 0 } else { i32::try_from(broken_down.tm_gmtoff).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: u64, offset: i32) -> String {
        Moment { since_epoch: Duration::new(seconds, 5), offset }.to_string()
    }

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000005Z"),
            (951_782_399, "2000-02-28T23:59:59.000000005Z"),
            (951_782_400, "2000-02-29T00:00:00.000000005Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000000005Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000005Z"),
        ] {
            assert_eq!(text(seconds, 0), expected);
        }
    }

    #[test]
    fn local_moments_name_their_zone() {
        assert_eq!(text(951_782_399, 5 * 3600 + 1800), "2000-02-29T05:29:59.000000005+05:30");
        assert_eq!(text(951_782_400, -3600), "2000-02-28T23:00:00.000000005-01:00");
        let moment = Moment { since_epoch: Duration::new(951_782_400, 1_999), offset: -3600 };
        assert_eq!(moment.text("info"), "I0228 23:00:00.000001");
    }
}
