//! Tests that run while no other test does; see `support/turn.rs`.

mod calibration;
mod hostile;
mod hostile_peers;
mod scale;
mod truth;
