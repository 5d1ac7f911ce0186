#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::responsiveness_test`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::responsiveness_test(bytes));

#[cfg(not(fuzzing))]
fn main() {}
