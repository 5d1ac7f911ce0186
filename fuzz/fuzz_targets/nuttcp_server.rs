#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::nuttcp_server`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::nuttcp_server(bytes));

#[cfg(not(fuzzing))]
fn main() {}
