//! Both ends of a flow on loopback: what is written is read and counted once, and every order ends the flow.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod borrowed_tcp;
mod borrowed_udp;
mod encrypted;
mod ends;
mod exchange;
mod many;
mod tcp;
mod transactions;
mod udp;
mod zerocopy;
