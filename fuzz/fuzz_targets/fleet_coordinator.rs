#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::fleet_coordinator`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::fleet_coordinator(bytes));

#[cfg(not(fuzzing))]
fn main() {}
