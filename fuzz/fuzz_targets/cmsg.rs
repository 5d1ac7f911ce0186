#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::cmsg`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::cmsg(bytes));

#[cfg(not(fuzzing))]
fn main() {}
