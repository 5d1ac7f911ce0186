#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::responsiveness`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::responsiveness(bytes));

#[cfg(not(fuzzing))]
fn main() {}
