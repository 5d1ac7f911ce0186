#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::plan`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::plan(bytes));

#[cfg(not(fuzzing))]
fn main() {}
