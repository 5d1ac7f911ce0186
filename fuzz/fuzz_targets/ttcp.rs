#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::ttcp`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::ttcp(bytes));

#[cfg(not(fuzzing))]
fn main() {}
