#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::netperf_client`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::netperf_client(bytes));

#[cfg(not(fuzzing))]
fn main() {}
