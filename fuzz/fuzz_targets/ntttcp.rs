#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::ntttcp`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::ntttcp(bytes));

#[cfg(not(fuzzing))]
fn main() {}
