//! Exact quantities: bit rates, byte counts, times and ratios.
//!
//! Rates are decimal (1 Mb/s is 10^6 bit/s), memory is binary (1 MiB is 2^20 B), and both are always labelled.
//! A bare `K`, `M`, `G` or `T` is binary after a byte count and decimal after a rate, as on the command line of
//! iperf3. `kB`, `MB`, … are always decimal, and `KiB`, `MiB`, … always binary.
//!
//! Every type prints in two ways: `Display` is short and for people, `exact` can be parsed back to the same
//! value. This crate reads no clock, knows no protocol, and rounds only in `Display`.

mod above_zero;
mod bitrate;
mod bytes;
mod decimal;
mod parse;
mod ratio;
#[cfg(feature = "serde")]
mod serial;
mod time;

pub use above_zero::{AboveZeroError, above_zero};
pub use bitrate::{Bitrate, RateInterval};
pub use bytes::Bytes;
pub use parse::{ParseError, ParseErrorKind};
pub use ratio::Ratio;
pub use time::{Span, Timestamp};
