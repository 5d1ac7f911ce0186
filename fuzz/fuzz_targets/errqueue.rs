#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::errqueue`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::errqueue(bytes));

#[cfg(not(fuzzing))]
fn main() {}
