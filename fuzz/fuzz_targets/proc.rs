#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::proc`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::proc(bytes));

#[cfg(not(fuzzing))]
fn main() {}
