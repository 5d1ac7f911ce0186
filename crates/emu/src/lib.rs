//! Emulated networks: what a cable, a queue, a shaper, a policer and a switch do to packets.
//!
//! The stages are state machines: packets and time in, packets and deadlines out. A fabric joins them
//! to a network of hosts and switches, driven by whoever has a clock: the `shell` of this room in real time, over
//! TAP devices and network namespaces, or a model of TCP in virtual time. The same code, the same seed, the same drops.
//!
//! Outside `shell` there is no clock, no input or output, and no randomness but that of a seed.

pub mod fabric;
pub mod frame;
pub mod link_direction;
pub mod packet_batch;
pub mod port;
#[cfg(feature = "shell")]
pub mod shell;
pub mod stage;
pub mod topology;
