//! The measuring engine: pumps, pacing, sampling, and the driver of a protocol session.

// The data plane: one side of a flow.
mod error;
mod run;
mod setup;

pub use error::EngineError;
pub use run::{FlowHandle, FlowReport, Progress, settle_udp, start};
pub use setup::{Endian, FlowSetup, Sockets, StampLayout};
