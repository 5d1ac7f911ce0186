#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::netpipe`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::netpipe(bytes));

#[cfg(not(fuzzing))]
fn main() {}
