#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::event_log`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::event_log(bytes));

#[cfg(not(fuzzing))]
fn main() {}
