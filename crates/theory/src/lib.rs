//! Formulas with domain and source, statistics, and the rules that turn evidence into a verdict.
//!
//! Formulas take and return plain `f64` in SI units. The unit is part of the argument's name (`link_bps`,
//! `rtt_s`). Every formula returns `None` outside its domain or if its result is not finite, and none panics.

pub mod bdp;
pub mod block_size;
pub mod buffer;
mod caveats;
pub mod ceilings;
pub mod claims;
pub mod compare;
pub mod conversion;
pub mod delay;
pub mod diagnose;
mod domain;
pub mod encapsulation;
pub mod envelope;
pub mod ethernet;
pub mod evidence;
pub mod follow_up;
mod format;
pub mod framing;
pub mod host;
pub mod host_limit;
pub mod lag;
pub mod queueing;
pub mod ramp;
mod rate_after_remedy;
pub mod reconcile;
pub mod rfc2544;
pub mod rfc6349;
pub mod rfc8337;
pub mod rfc9097;
mod rules;
pub mod sender_error;
pub mod slow_start;
pub mod stats;
pub mod tcp_rate;
pub mod uncertainty;

pub use diagnose::{Diagnosis, diagnose};
pub use evidence::Evidence;
