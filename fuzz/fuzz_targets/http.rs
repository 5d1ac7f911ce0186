#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::http`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::http(bytes));

#[cfg(not(fuzzing))]
fn main() {}
