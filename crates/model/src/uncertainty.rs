//! How well a rate is known, and why not better.

use linerate_units::{Bitrate, RateInterval, Ratio};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// The uncertainty of the rate of a flow, with what it is made of.
///
/// # Source
/// JCGM 100:2008 (GUM): standard uncertainties are combined as a root of squares, and expanded with a coverage factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uncertainty {
    /// How far the interval that holds the rate which the path sustains reaches to either side of the receiver's rate.
    pub expanded_bps: Bitrate,
    /// How much further the interval reaches upwards: the rate at which latency probes and the control connection used the
    /// path, headers included. Without them the flow might have had it. Counted, so not a part of the uncertainty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_bps: Option<Bitrate>,
    /// Probability for which the interval is made.
    pub coverage: Ratio,
    /// By what the combined standard uncertainty was multiplied for it.
    pub coverage_factor: f64,
    /// The largest contribution.
    pub main: UncertaintySource,
    /// All contributions, largest first.
    pub contributions: Vec<Contribution>,
}

impl Uncertainty {
    /// The receiver's rate with the interval in which the rate lies that the path sustains.
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
    /// What is not known exactly.
    pub source: UncertaintySource,
    /// What that makes of the rate, as a standard deviation.
    pub standard_bps: Bitrate,
    /// The numbers behind it, for a person.
    pub because: ForeignText,
}

/// What makes a rate uncertain. These names are part of the public result format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UncertaintySource {
    /// The rate changed while it was measured: another stretch of the same length would have another mean.
    Variation,
    /// The start was slower than the rest and is in the mean.
    RampUp,
    /// What had arrived and was not read yet when the time began and ended.
    Edges,
    /// How late the receiving thread wakes.
    WakeUp,
    /// The frequency of the receiver's clock, its step, and the time of a look at it.
    Clock,
    /// Bytes that no count explains.
    Unaccounted,
    /// What else of the run went the same way, in files of earlier versions; see [`Uncertainty::overhead_bps`].
    Beside,
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
            Self::Beside => "beside",
        }
    }
}
