//! What a series over message sizes measured: one point for each size, and the curve through them.

use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::{Deserialize, Serialize};

/// What was measured at one message size.
///
/// A time is that of one message in one direction: half a round trip where messages go to and fro, the time between
/// two messages at the receiver where they go one way, the time of one message each way where both ends send at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizePoint {
    /// Bytes of a message.
    pub message_bytes: Bytes,
    /// Trials that were evaluated; absent where a program of others does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// Messages in each trial; in the last one, where they became fewer because messages took longer than was thought.
    /// Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Time of one message in the best trial.
    #[serde(rename = "best_one_way_ns")]
    pub best: Span,
    /// Median of the trials' times; absent where only the best is known.
    #[serde(rename = "median_one_way_ns", default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Span>,
    /// Interval of that median; absent below six trials, which have none at 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeInterval>,
    /// Payload over the median time, or over the best where only that is known; both directions together where both
    /// ends send at once.
    ///
    /// Where messages go to and fro, the two ways may differ: this is then the rate at which they arrived in the slower one.
    #[serde(rename = "bitrate_bps", default, skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<Bitrate>,
    /// Whether the rate is above what the path sustains, so that it is the rate of a buffer or a cache on the way. It is
    /// known when the series is over: the log's own points do not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buffered: bool,
}

impl SizePoint {
    /// The time that stands for the size: the median, or the best where only that is known.
    #[must_use]
    pub fn one_way(&self) -> Span {
        self.median.unwrap_or(self.best)
    }
}

/// An interval of a time, from ranks alone, whatever the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeInterval {
    /// Its lower end.
    #[serde(rename = "low_ns")]
    pub low: Span,
    /// Its upper end.
    #[serde(rename = "high_ns")]
    pub high: Span,
    /// Probability with which such an interval holds the true median.
    pub coverage: Ratio,
}

/// What the points of a series amount to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeCurve {
    /// The smallest size.
    pub smallest_bytes: Bytes,
    /// Time of one message of it: the latency.
    #[serde(rename = "smallest_one_way_ns")]
    pub smallest_one_way: Span,
    /// The size with the highest rate that the path sustains.
    pub peak_bytes: Bytes,
    /// That rate.
    #[serde(rename = "peak_bps")]
    pub peak: Bitrate,
    /// The smallest size from which on every size reaches nine tenths of the highest rate; absent where the largest
    /// does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation_bytes: Option<Bytes>,
    /// The most that the path sustains: what the link can carry, or little more than what the largest messages reached,
    /// whichever is less. A rate above it is that of a buffer. Absent in logs of versions that did not ask.
    #[serde(rename = "sustained_bps", default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Bitrate>,
    /// The line `time = start-up + size / asymptotic rate`; absent where no such line goes through the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<SizeFit>,
}

impl SizeCurve {
    /// Whether the rate of a point is that of a buffer or cache, and not that of the path.
    #[must_use]
    pub fn is_buffered(&self, point: &SizePoint) -> bool {
        self.sustained.zip(point.bitrate).is_some_and(|(most, rate)| rate.bps() > most.bps())
    }
}

/// A line through the times of a series, fitted to relative errors (Hockney's model).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeFit {
    /// Time of a message without bytes.
    #[serde(rename = "startup_ns")]
    pub startup: Span,
    /// Rate of a message without start-up (r infinity).
    #[serde(rename = "asymptotic_bps")]
    pub asymptotic: Bitrate,
    /// Size that reaches half of that rate (n one-half).
    pub half_performance_bytes: Bytes,
    /// Largest distance of a point from the line, as a share of the point's time.
    pub largest_error: Ratio,
}
