//! Emulated networks: what a cable, a queue, a shaper, a policer and a switch do to packets.
//!
//! The stages are state machines: packets and time in, packets and deadlines out. A fabric joins them
//! to a network of hosts and switches, driven by whoever has a clock: the crate `lab` in real time, over
//! TAP devices and network namespaces, or a model of TCP in virtual time. The same code, the same seed, the same drops.
//!
//! There is no clock, no input or output, and no randomness but that of a seed.

pub mod fabric;
pub mod frame;
pub mod link_direction;
pub mod packet_batch;
pub mod port;
pub mod stage;
pub mod topology;
