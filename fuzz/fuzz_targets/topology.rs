#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::topology`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::topology(bytes));

#[cfg(not(fuzzing))]
fn main() {}
