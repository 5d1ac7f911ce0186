#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::agent`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::agent(bytes));

#[cfg(not(fuzzing))]
fn main() {}
