#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::fleet_message`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::fleet_message(bytes));

#[cfg(not(fuzzing))]
fn main() {}
