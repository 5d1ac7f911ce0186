#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::spec`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::spec(bytes));

#[cfg(not(fuzzing))]
fn main() {}
