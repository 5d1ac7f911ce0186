//! The measuring engine: pumps, pacing, sampling, and the driver of a protocol session.

// The data plane: one side of a flow.
mod arrivals;
mod caveats;
mod control;
mod counters;
mod error;
mod flow;
mod measured;
mod pacer;
mod plan;
mod prepare;
mod pump;
mod run;
mod sampler;
mod settings;
mod setup;
mod stamp;
mod tally;

pub use error::EngineError;
pub use run::{FlowHandle, FlowReport, Progress, start};
pub use setup::{FlowSetup, Sockets};
pub use tally::settle_udp;
