//! System calls on real sockets, devices and namespaces. Tests that need root are ignored by default: run them
//! with `cargo test -p linerate-sock -- --ignored`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod departure;
mod emulated_host;
mod host_settings;
mod multicast;
mod namespaces;
mod tcp;
mod udp;
mod zero_copy;
