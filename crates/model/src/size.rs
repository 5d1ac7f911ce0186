//! Results of a sweep over message sizes: one point for each size, and the curve through them.

use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::{Deserialize, Serialize};

/// The measurement of one message size.
///
/// A time is that of one message in one direction: half a round trip for ping-pong, the time between two
/// messages at the receiver for one-way streams, the time of one message each way if both ends send at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizePoint {
    /// Bytes of a message.
    pub message_bytes: Bytes,
    /// Evaluated trials; absent if a foreign program does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// Messages in each trial. If messages took longer than expected and later trials had fewer, the number in
    /// the last trial. Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Time of one message in the best trial.
    #[serde(rename = "best_one_way_ns")]
    pub best: Span,
    /// Median of the trials' times; absent if only the best is known.
    #[serde(rename = "median_one_way_ns", default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Span>,
    /// Interval of the median; absent below six trials, which have no interval at 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeInterval>,
    /// Payload divided by the median time, or by the best time if only that is known. Sum of both directions if
    /// both ends send at once.
    ///
    /// With ping-pong the two directions can differ: in that case this is the arrival rate in the slower one.
    #[serde(rename = "bitrate_bps", default, skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<Bitrate>,
    /// Whether the rate is above what the path sustains, and so is the rate of a buffer or cache on the way.
    /// This is only known at the end of the sweep: the points in the log do not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buffered: bool,
}

impl SizePoint {
    /// The representative time of the size: the median, or the best if only that is known.
    #[must_use]
    pub fn one_way(&self) -> Span {
        self.median.unwrap_or(self.best)
    }
}

/// A distribution-free interval of a time, from ranks only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeInterval {
    /// Its lower end.
    #[serde(rename = "low_ns")]
    pub low: Span,
    /// Its upper end.
    #[serde(rename = "high_ns")]
    pub high: Span,
    /// Probability that such an interval contains the true median.
    pub coverage: Ratio,
}

/// Summary of the points of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeCurve {
    /// The smallest size.
    pub smallest_bytes: Bytes,
    /// Time of one message of the smallest size: the latency.
    #[serde(rename = "smallest_one_way_ns")]
    pub smallest_one_way: Span,
    /// The size with the highest rate that the path sustains.
    pub peak_bytes: Bytes,
    /// That rate.
    #[serde(rename = "peak_bps")]
    pub peak: Bitrate,
    /// The smallest size from which on every size reaches nine tenths of the highest rate; absent if the
    /// largest size does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation_bytes: Option<Bytes>,
    /// The maximum that the path sustains: the capacity of the link, or slightly more than the rate of the
    /// largest messages, whichever is less. A higher rate is that of a buffer. Absent in logs of versions that
    /// did not determine it.
    #[serde(rename = "sustained_bps", default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Bitrate>,
    /// The line `time = start-up + size / asymptotic rate`; absent if no such line fits the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<SizeFit>,
}

impl SizeCurve {
    /// Whether the rate of a point is that of a buffer or cache, not that of the path.
    #[must_use]
    pub fn is_buffered(&self, point: &SizePoint) -> bool {
        self.sustained.zip(point.bitrate).is_some_and(|(most, rate)| rate.bps() > most.bps())
    }
}

/// A line through the times of a sweep, fitted to relative errors (Hockney's model).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeFit {
    /// Time of an empty message.
    #[serde(rename = "startup_ns")]
    pub startup: Span,
    /// Rate of a message without the start-up time (r infinity).
    #[serde(rename = "asymptotic_bps")]
    pub asymptotic: Bitrate,
    /// Size that reaches half of that rate (n one-half).
    pub half_performance_bytes: Bytes,
    /// Largest distance of a point from the line, as a share of the point's time.
    pub largest_error: Ratio,
}
