//! The measuring engine: runs one side of a flow, from its open sockets to its counts. Contains pumps, pacing
//! and sampling.

mod arrivals;
mod byte_account;
mod caveats;
mod channel;
mod control;
mod counters;
mod error;
mod exchange;
mod flow;
mod flow_counts;
mod histogram;
mod measured;
mod pacer;
mod plan;
mod prepare;
mod pump;
mod run;
mod sampler;
mod send_method;
mod settings;
mod setup;
mod slots;
mod socket_counts;
mod stamp;
mod start_gate;
mod tally;
mod transactions;
mod transit;

pub use byte_account::ByteAccount;
pub use caveats::clamped_buffers;
pub use channel::SecureChannel;
pub use error::EngineError;
pub use exchange::{exchange, exchange_both};
pub use flow_counts::{connection_counts, update_sender};
pub use plan::{block_length, memory_needed};
pub use pump::reason;
pub use run::{FlowHandle, FlowProgress, FlowReport, arm, start};
pub use settings::stream_settings;
pub use setup::{FlowFile, FlowSetup, Sockets, Txtime};
pub use socket_counts::socket_counts;
pub use tally::complete_udp;
pub use transactions::{AcceptedConnections, Connector, TransactionConnections, TransactionSetup};
