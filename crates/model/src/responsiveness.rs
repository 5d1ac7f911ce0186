//! Responsiveness under working conditions: what a test of it found.

use linerate_units::Span;
use serde::{Deserialize, Serialize};

use crate::spec::Direction;

/// The responsiveness of a path while it carries load in one direction, or in both.
///
/// Source: draft-ietf-ippm-responsiveness-09.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponsivenessReport {
    /// The directions that carried load at the same time.
    pub loaded: Vec<Direction>,
    /// Round trips per minute (RPM); absent if too few probes were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Those over new connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_rpm: Option<f64>,
    /// Those over connections that carried load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_rpm: Option<f64>,
    /// Those over new connections, before the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_rpm: Option<f64>,
    /// Trimmed mean of the TCP handshakes.
    #[serde(rename = "tcp_ns", default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Span>,
    /// Trimmed mean of the TLS handshakes, each of one round trip; absent without TLS.
    #[serde(rename = "tls_ns", default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Span>,
    /// Trimmed mean of the requests of one byte over new connections.
    #[serde(rename = "http_ns", default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Span>,
    /// Trimmed mean of the requests of one byte over connections that carried load.
    #[serde(rename = "loaded_http_ns", default, skip_serializing_if = "Option::is_none")]
    pub loaded_http: Option<Span>,
    /// Trimmed mean of the time by which this program sent probes too late, because it had no CPU or was busy with the load.
    /// Answers wait as long.
    #[serde(rename = "late_ns", default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Span>,
    /// How far the rate can be relied on as the most that the path carries.
    pub rate_confidence: ResponsivenessConfidence,
    /// How far the responsiveness can be relied on.
    pub confidence: ResponsivenessConfidence,
    /// Probes over new connections whose results count, and over loaded connections.
    pub probes: [u64; 2],
    /// Probes that failed, or were not answered in time.
    pub lost: u64,
    /// Most connections that carried load at once, of all directions together.
    pub connections: u32,
    /// Number of intervals in which the path carried load.
    pub intervals: u32,
    /// Length of an interval.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
    /// Whether the connections were encrypted.
    pub encrypted: bool,
}

/// How far a result can be relied on.
///
/// Source: draft-ietf-ippm-responsiveness-09, "Confidence of Test-Results".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResponsivenessConfidence {
    /// There was no time for as many intervals as a moving average has.
    #[default]
    Low,
    /// There was time, but the moving averages were not stable.
    Medium,
    /// The moving averages were stable.
    High,
}

impl ResponsivenessConfidence {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
