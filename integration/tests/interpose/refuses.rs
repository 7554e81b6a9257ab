//! What cannot be combined is refused by name, and leaves nothing.

use std::fs;
use std::path::Path;

use gofer_integration::Gofer;

use super::{Place, each, install, sentence, switch};

/// Refuses `file`, leaves no output, and says why.
fn refusal(place: &Place, file: &Path) -> String {
    let before = place.names();
    let said = sentence(&install(file, &place.path("out"), &[]));
    assert_eq!(place.names(), before, "nothing is left");
    said
}

#[test]
fn a_text_file_is_refused() {
    let place = Place::new();
    let script = place.path("script");
    fs::write(&script, "#!/bin/sh\nexec runsc \"$@\"\n").expect("written");
    let said = refusal(&place, &script);
    assert!(said.contains("script is not a 64-bit little-endian ELF file"), "{said}");
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::new();
    let said = refusal(&place, &place.path("absent"));
    assert!(said.starts_with("gofer: cannot read ") && said.contains("/absent: No such file"), "{said}");
}

#[test]
fn a_dynamic_program_is_refused() {
    let said = refusal(&Place::new(), Path::new("/bin/ls"));
    assert!(said.contains("/bin/ls is dynamically linked"), "{said}");
}

#[test]
fn a_position_independent_program_is_refused() {
    // This program is one, without a loader.
    let said = refusal(&Place::new(), &Gofer::binary());
    assert!(said.contains("is position-independent"), "{said}");
}

#[test]
fn a_truncated_runsc_is_refused() {
    each(|runsc| {
        let place = Place::new();
        let whole = fs::read(&runsc.path).expect("runsc");
        for (len, why) in [(whole.len() / 2, "truncated"), (100, "program headers"), (10, "not a 64-bit")] {
            fs::write(place.path("cut"), &whole[..len]).expect("written");
            let said = refusal(&place, &place.path("cut"));
            assert!(said.contains(why), "{len} bytes of {runsc:?}: {said}");
        }
    });
}

#[test]
fn a_program_that_is_no_runsc_is_refused() {
    each(|runsc| {
        let place = Place::new();
        // Another architecture: a changed machine number of a file that is fine otherwise.
        let mut other = fs::read(&runsc.path).expect("runsc");
        other[18] = 183;
        fs::write(place.path("arm"), other).expect("written");
        let said = refusal(&place, &place.path("arm"));
        assert!(said.contains("another architecture"), "{said}");
    });
}

#[test]
fn what_others_installed_is_not_replaced() {
    each(|runsc| {
        let place = Place::new();
        let out = place.path("runsc");
        fs::copy(&runsc.path, &out).expect("copied");
        for from in [&runsc.path, &out] {
            let said = sentence(&install(from, &out, &[]));
            assert!(said.contains("was not made by `gofer install`"), "{said}");
        }
        assert_eq!(fs::read(&out).expect("read"), fs::read(&runsc.path).expect("read"));
        let said = sentence(&switch("stock", &out));
        assert!(said.contains("is not a whole file that `gofer install` made"), "{said}");
    });
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    each(|runsc| {
        let place = Place::new();
        let said = sentence(&install(&runsc.path, &place.path("absent/out"), &[]));
        assert!(said.contains("cannot write") && said.contains("absent/out"), "{said}");
        assert!(place.names().is_empty());
    });
}
