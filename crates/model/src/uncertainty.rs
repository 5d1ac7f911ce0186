//! How well a rate is known, and why not better.

use linerate_units::{Bitrate, RateInterval, Ratio};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// The uncertainty of a flow's rate and its contributions.
///
/// # Source
/// JCGM 100:2008 (GUM): standard uncertainties are combined as the root of the sum of squares and multiplied by
/// a coverage factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uncertainty {
    /// Half-width around the receiver's rate of the interval that contains the rate the path sustains.
    pub expanded_bps: Bitrate,
    /// Upward extension of the interval: the rate at which latency probes and the control connection used the
    /// path, headers included. Without them the flow might have reached this much more. It is counted, so it is
    /// not part of the uncertainty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_bps: Option<Bitrate>,
    /// Coverage probability of the interval.
    pub coverage: Ratio,
    /// The factor between the combined standard uncertainty and the expanded uncertainty.
    pub coverage_factor: f64,
    /// The largest contribution.
    pub main: UncertaintySource,
    /// All contributions, largest first.
    pub contributions: Vec<Contribution>,
}

impl Uncertainty {
    /// The receiver's rate with the interval that contains the rate the path sustains.
    #[must_use]
    pub fn around(&self, rate: Bitrate) -> Option<RateInterval> {
        let within = rate.within(self.expanded_bps)?;
        Some(self.overhead_bps.map_or(within, |overhead| within.extended_upwards(overhead)))
    }
}

/// One contribution to an uncertainty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contribution {
    /// The source of uncertainty.
    pub source: UncertaintySource,
    /// Its effect on the rate, as a standard deviation.
    pub standard_bps: Bitrate,
    /// The relevant numbers, for the user.
    pub because: ForeignText,
}

/// Sources of uncertainty of a rate. These names are part of the public result format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UncertaintySource {
    /// The rate changed during the measurement: another period of the same length would have another mean.
    Variation,
    /// The start was slower than the rest and is included in the mean.
    RampUp,
    /// Data that had arrived but was not yet read when the measuring time began and ended.
    Edges,
    /// Wake-up latency of the receiving thread.
    WakeUp,
    /// The frequency error and resolution of the receiver's clock, and the time to read it.
    Clock,
    /// Bytes that no count explains.
    Unaccounted,
    /// The run's other traffic in the same direction, in files of earlier versions; see
    /// [`Uncertainty::overhead_bps`].
    Overhead,
}

impl UncertaintySource {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Variation => "variation",
            Self::RampUp => "ramp_up",
            Self::Edges => "edges",
            Self::WakeUp => "wake_up",
            Self::Clock => "clock",
            Self::Unaccounted => "unaccounted",
            Self::Overhead => "overhead",
        }
    }
}
