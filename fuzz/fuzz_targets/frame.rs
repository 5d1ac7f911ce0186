#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::frame`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::frame(bytes));

#[cfg(not(fuzzing))]
fn main() {}
