#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::native_server`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::native_server(bytes));

#[cfg(not(fuzzing))]
fn main() {}
