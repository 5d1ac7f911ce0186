#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::tcp_info`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::tcp_info(bytes));

#[cfg(not(fuzzing))]
fn main() {}
