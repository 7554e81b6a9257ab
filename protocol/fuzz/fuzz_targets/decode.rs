//! No payload makes decoding panic, and what decodes means the same once it was encoded again.
#![no_main]

use gofer_protocol::Mid;
use libfuzzer_sys::fuzz_target;

use every::Direction;

#[path = "../../tests/every/mod.rs"]
mod every;

fuzz_target!(|bytes: &[u8]| {
    let [kind, payload @ ..] = bytes else { return };
    let direction = if kind & 0x80 == 0 { Direction::Request } else { Direction::Reply };
    let mid = Mid(u16::from(kind & 0x7f));

    let inspected = every::inspect(direction, mid, payload);
    let Some(Ok(encoded)) = every::encode_again(direction, mid, payload) else {
        assert!(!matches!(inspected, Some(Ok(()))));
        return;
    };
    // Shorter where bytes trailed; and stable, for only padding may differ.
    assert!(encoded.len() <= payload.len());
    assert_eq!(every::encode_again(direction, mid, &encoded), Some(Ok(encoded)));
});
