//! Runs the target named by `PARCELO_FUZZ_TARGET` under libFuzzer; `just fuzz` builds and starts it.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use parcelo_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PARCELO_FUZZ_TARGET").expect("PARCELO_FUZZ_TARGET names a target");
    Target::by_name(&name).unwrap_or_else(|| panic!("{name} is not a target"))
});

fuzz_target!(|input: &[u8]| (TARGET.check)(input));
