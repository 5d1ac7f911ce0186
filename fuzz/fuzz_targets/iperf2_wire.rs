#![cfg_attr(fuzzing, no_main)]
//! See `linerate_fuzz::iperf2_wire`.

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_fuzz::iperf2_wire(bytes));

#[cfg(not(fuzzing))]
fn main() {}
