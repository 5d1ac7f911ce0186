//! A plan after reading.

use std::collections::BTreeMap;

use linerate_model::Sweep;
use linerate_units::{Ratio, Span};

use crate::assertion::Assertion;
use crate::axis::Axis;
use crate::error::Source;
use crate::kind::SettingValue;
use crate::method::Method;
use crate::search::Search;
use crate::sweep::Grid;

/// A checked plan: names are unique and known, and every point can be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Purpose, one line.
    pub about: String,
    /// The method, which presents the results in its own terms.
    pub method: Option<Method>,
    /// Further notes of the file, such as the tester's name or the device.
    pub notes: BTreeMap<String, String>,
    /// The files that it was read from, the plan itself first.
    pub files: Vec<Source>,
    /// Hosts, in the order of the file, then those of the lab's topology.
    pub hosts: Vec<Host>,
    /// The emulated network, if it has one.
    pub lab: Option<PlanLab>,
    /// Digest of the text of its topology: another text under the same name is another network.
    pub topology_digest: Option<u64>,
    /// Flows of each trial, in the order of the file.
    pub flows: Vec<Flow>,
    /// Knobs of all flows.
    pub test: BTreeMap<String, SettingValue>,
    /// Swept axes, in the order of the file; the last one varies fastest.
    pub axes: Vec<Axis>,
    /// The combinations of the axes that are points.
    pub grid: Grid,
    /// The axis that is searched at every point.
    pub search: Option<Search>,
    /// Number of repeats of each point.
    pub repeats: u32,
    /// A point is repeated until the interval of its goodput is at most this share of it wide.
    pub until: Option<Ratio>,
    /// Largest number of repeats with `until`.
    pub max_repeats: u32,
    /// Order of the trials.
    pub order: TrialOrder,
    /// Seed for [`TrialOrder::Shuffled`].
    pub seed: u64,
    /// Pause between two trials.
    pub pause: Span,
    /// Length of the path in kilometres, if known.
    pub distance_km: Option<u64>,
    /// Longest accepted estimate.
    pub max_time: Option<Span>,
    /// Conditions for the results.
    pub assertions: Vec<Assertion>,
    /// Assertions of the file about points that settings of the command line removed.
    pub left_out: Vec<String>,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Name or address at which `linerate serve` runs there; absent if only the lab has it.
    pub address: Option<String>,
    /// The port there.
    pub port: u16,
    /// The interface that settings apply to; absent: that of the route to the other hosts.
    pub interface: Option<String>,
    /// Settings by name; others keep their values.
    pub settings: BTreeMap<String, SettingValue>,
    /// Whether the host is part of the lab's topology.
    pub in_lab: bool,
}

/// The emulated network of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLab {
    /// Name of a bundled topology, or a file.
    pub topology: String,
    /// Its settings, as for `--set`.
    pub set: BTreeMap<String, String>,
}

/// A flow of every trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The host that is its client.
    pub from: String,
    /// The host that is its server.
    pub to: String,
    /// Start time after the start of the trial or the end of the flows in `after`.
    pub at: Span,
    /// Flows that must end first.
    pub after: Vec<String>,
    /// Whether it runs until the others have ended.
    pub cross_traffic: bool,
    /// Knobs of this flow only.
    pub test: BTreeMap<String, SettingValue>,
    /// The series over message sizes; absent in a test.
    pub series: Option<Sweep>,
}

/// Knobs that end a test. Cross traffic ends with the flows that it accompanies instead.
pub(crate) const ENDING_KNOBS: &[&str] = &["duration", "until", "bytes", "blocks", "requests"];

impl Flow {
    /// Whether this knob, set for all flows, does not apply to this one.
    pub(crate) fn ignores(&self, knob: &str) -> bool {
        self.cross_traffic && ENDING_KNOBS.contains(&knob)
    }
}

/// Order of the trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrialOrder {
    /// Each repeat visits all points, every second repeat in reverse order.
    #[default]
    Interleaved,
    /// All trials of a point, then those of the next.
    Sequential,
    /// Random.
    Shuffled,
}

impl TrialOrder {
    /// Name in a plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
        }
    }
}

/// Fewer trials give no 95 % interval of their median.
pub(crate) const MIN_TRIALS_FOR_INTERVAL: u32 = 6;

impl Plan {
    /// Smallest number of repeats of each point.
    #[must_use]
    pub fn least_repeats(&self) -> u32 {
        let least =
            if self.until.is_some() { self.repeats.max(MIN_TRIALS_FOR_INTERVAL) } else { self.repeats };
        least.min(self.largest_repeats())
    }

    /// Largest number of repeats of each point.
    #[must_use]
    pub fn largest_repeats(&self) -> u32 {
        if self.until.is_some() { self.max_repeats.max(self.repeats) } else { self.repeats }
    }

    /// The flow with this name.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.name == name)
    }
}
