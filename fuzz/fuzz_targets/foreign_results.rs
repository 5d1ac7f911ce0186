#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::foreign_results`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::foreign_results(bytes));

#[cfg(not(fuzzing))]
fn main() {}
