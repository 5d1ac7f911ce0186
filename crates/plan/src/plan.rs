//! A plan as it was read.

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

/// A checked plan: names are unique and known, every point can be carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it is for, one line.
    pub about: String,
    /// The method that it follows, which says in its own terms what the points amount to.
    pub method: Option<Method>,
    /// What else the file says of itself, as the tester's name or the device.
    pub notes: BTreeMap<String, String>,
    /// The files that it was read from, the plan itself first.
    pub files: Vec<Source>,
    /// Hosts, in the order of the file, those of the lab's topology behind them.
    pub hosts: Vec<Host>,
    /// The emulated network, if it has one.
    pub lab: Option<Lab>,
    /// Flows of each trial, in the order of the file.
    pub flows: Vec<Flow>,
    /// Knobs of all flows.
    pub test: BTreeMap<String, SettingValue>,
    /// What is swept, in the order of the file; the last one varies fastest.
    pub axes: Vec<Axis>,
    /// Which combinations of the axes are points.
    pub grid: Grid,
    /// What is searched at every point.
    pub search: Option<Search>,
    /// How often each point is measured.
    pub repeats: u32,
    /// A point is repeated until the interval of its goodput is no wider than this share of it.
    pub until: Option<Ratio>,
    /// At most so often.
    pub most_repeats: u32,
    /// In which order.
    pub order: Order,
    /// What [`Order::Shuffled`] draws from.
    pub seed: u64,
    /// Rest between two trials.
    pub pause: Span,
    /// Length of the path in kilometres, where it is known.
    pub distance_km: Option<u64>,
    /// The longest estimate that is accepted.
    pub max_time: Option<Span>,
    /// What must hold of the results.
    pub assertions: Vec<Assertion>,
    /// Assertions of the file about points that settings of the command line have taken away.
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
    /// The interface that settings are for; absent: that of the way to the other hosts.
    pub interface: Option<String>,
    /// Its settings, by name; those that are not named stay as they are found.
    pub settings: BTreeMap<String, SettingValue>,
    /// True if the lab's topology has it.
    pub in_lab: bool,
}

/// The emulated network of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lab {
    /// A bundled topology, or a file.
    pub topology: String,
    /// What is set in it, as `--set` takes it.
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
    /// When it begins, after the start of the trial or the end of `after`.
    pub at: Span,
    /// Flows whose end it waits for.
    pub after: Vec<String>,
    /// True if it runs until the others have ended.
    pub background: bool,
    /// Knobs of this flow alone.
    pub test: BTreeMap<String, SettingValue>,
    /// The series over message sizes that it is; absent in a test.
    pub series: Option<Sweep>,
}

/// In which order trials are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Round by round through all points, every second round backwards.
    #[default]
    Interleaved,
    /// All trials of a point, then those of the next.
    Sequential,
    /// By lot.
    Shuffled,
}

impl Order {
    /// Its name in a plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
        }
    }
}

/// Fewer trials have no interval of their median at 95 %.
pub(crate) const MIN_TRIALS_FOR_INTERVAL: u32 = 6;

impl Plan {
    /// How often each point is measured at least.
    #[must_use]
    pub fn least_repeats(&self) -> u32 {
        let least =
            if self.until.is_some() { self.repeats.max(MIN_TRIALS_FOR_INTERVAL) } else { self.repeats };
        least.min(self.largest_repeats())
    }

    /// How often each point is measured at most.
    #[must_use]
    pub fn largest_repeats(&self) -> u32 {
        if self.until.is_some() { self.most_repeats.max(self.repeats) } else { self.repeats }
    }

    /// The flow of that name.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    /// The axis of that name, and its number.
    #[must_use]
    pub fn axis(&self, name: &str) -> Option<(usize, &Axis)> {
        self.axes.iter().enumerate().find(|(_, axis)| axis.name == name)
    }
}
