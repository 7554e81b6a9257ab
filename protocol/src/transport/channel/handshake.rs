//! What the two sides say to each other first, before any message: an empty JSON object. The object could carry
//! parameters; nobody has any, so its members are skipped.

use serde::de::{Deserialize, IgnoredAny};

use super::Datagrams;
use crate::transport::{flipcall::Ended, window::OutOfBounds};

impl Datagrams {
    /// Says hello and gives the turn to the peer.
    pub(super) fn greet(&self) -> Result<(), Ended> {
        // A window is at least a page, so this fits.
        self.window().copy_in(0, &GREETING).map_err(|OutOfBounds| self.endpoint.fail())?;
        self.window().set_data_len(GREETING_LENGTH);
        self.endpoint.hand_over()
    }

    /// Judges the hello that has arrived.
    pub(super) fn check_greeting(&self, judge: fn(&[u8]) -> bool) -> Result<(), Ended> {
        let length = self.arrived_len()?;
        let mut greeting = [0; LONGEST];
        let read = greeting.get_mut(..length.min(LONGEST)).filter(|read| !read.is_empty());
        let good = read.is_some_and(|read| self.window().copy_out(0, read).is_ok() && judge(read));
        if good {
            return Ok(());
        }
        tracing::debug!(length, "bad channel handshake, shutting the channel down");
        Err(self.endpoint.fail())
    }
}

/// Whether `bytes` start with a JSON object or `null`. What follows is ignored.
pub(super) fn is_object_or_null(bytes: &[u8]) -> bool {
    starts_with_value(bytes, b"{n")
}

/// Whether `bytes` start with a JSON object. What follows is ignored.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    starts_with_value(bytes, b"{")
}

fn starts_with_value(bytes: &[u8], first: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    bytes.first().is_some_and(|byte| first.contains(byte))
        && IgnoredAny::deserialize(&mut serde_json::Deserializer::from_slice(bytes)).is_ok()
}

/// An empty object and a newline, byte for byte what other implementations send.
const GREETING: [u8; GREETING_LENGTH as usize] = *b"{}\n";
const GREETING_LENGTH: u32 = 3;

/// Bytes of a greeting that are looked at. One that goes on is taken for cut off.
const LONGEST: usize = 4096;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_objects_and_null_are_greetings() {
        for good in ["{}", "{}\n", " \t\r\n{}", "{}{", "{}[", "{\"a\":[1,{\"b\":null}],\"c\":\"}\"}x", "{} trailing"] {
            assert!(is_object(good.as_bytes()), "{good:?}");
            assert!(is_object_or_null(good.as_bytes()), "{good:?}");
        }
        assert!(is_object_or_null(b"null"));
        assert!(!is_object(b"null"));
        for bad in ["", " ", "[]", "1", "\"{}\"", "true", "{", "{\"a\"", "{\"a\":}", "{a:1}", "{,}", "nul", "nothing"] {
            assert!(!is_object_or_null(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = [&b"{\"a\":"[..], &[b'['; LONGEST]].concat();
        assert!(!is_object(&deep));
    }
}
