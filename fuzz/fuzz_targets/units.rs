#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::units`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::units(bytes));

#[cfg(not(fuzzing))]
fn main() {}
