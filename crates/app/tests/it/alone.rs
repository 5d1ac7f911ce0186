//! Tests that measure or load the machine.

mod calibration;
mod hostile;
mod hostile_peers;
mod scale;
