//! Formulas with domain and source, statistics, and the rules that turn evidence into a verdict.
//!
//! Formulas take and return plain `f64` in SI units. The unit is part of the argument's name (`link_bps`,
//! `rtt_s`). Every formula returns `None` outside its domain or if its result is not finite, and none panics.

pub mod accounting;
pub mod buffer;
mod caveats;
pub mod ceilings;
pub mod claims;
pub mod diagnose;
pub mod envelope;
pub mod evidence;
pub mod follow_up;
mod format;
mod formulas;
pub mod host_limit;
mod rate_after_remedy;
mod rules;
pub mod stats;
pub mod typed;

use formulas::domain;
pub use formulas::{
    bdp, block_size, conversion, delay, encapsulation, ethernet, framing, host, lag, queueing,
    responsiveness, rfc2544, rfc6349, rfc8337, rfc9097, sender_error, slow_start, tcp_rate,
};
pub use stats::{compare, ramp, uncertainty};

pub use diagnose::{Diagnosis, diagnose};
pub use evidence::Evidence;
