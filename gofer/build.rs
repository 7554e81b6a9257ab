//! Makes `shim_start` of `gofer-early` the first instruction of the executable, ahead of libc's `_start`.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |what: &str, wanted: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).is_ok_and(|value| value == wanted);
    if is("ARCH", "x86_64") && is("OS", "linux") {
        println!("cargo:rustc-link-arg-bins=-Wl,--entry=shim_start");
    }
}
