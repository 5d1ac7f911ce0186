#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::netperf`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::netperf(bytes));

#[cfg(not(fuzzing))]
fn main() {}
