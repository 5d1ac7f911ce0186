#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::ttcp_argv`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::ttcp_argv(bytes));

#[cfg(not(fuzzing))]
fn main() {}
