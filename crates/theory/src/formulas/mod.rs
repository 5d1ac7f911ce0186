//! Formulas: what a path, a protocol or a host can do at most, and what it costs.

pub mod bdp;
pub mod block_size;
pub mod conversion;
pub mod delay;
pub(crate) mod domain;
pub mod encapsulation;
pub mod ethernet;
pub mod framing;
pub mod host;
pub mod lag;
pub mod queueing;
pub mod responsiveness;
pub mod rfc2544;
pub mod rfc6349;
pub mod rfc8337;
pub mod rfc9097;
pub mod sender_error;
pub mod slow_start;
pub mod tcp_rate;
