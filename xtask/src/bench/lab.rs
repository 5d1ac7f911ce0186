//! Figures of the lab: throughput, delay and loss of its networks compared with theory, and their costs.

mod ab;
mod carried;
mod expected;
mod known;
mod limits;
mod meter;
mod network;
mod plans;
mod result;
mod switch;
mod tcp;

use std::time::Duration;

use super::bench_network::is_root;
use super::figure::{BenchGoal, FigureReadings};
use super::{BenchContext, BenchOutcome, report};

/// One measurement of one or more figures.
pub(super) struct LabMeasurement {
    figures: &'static [LabFigure],
    /// Returns the readings of the figures, in order.
    measure: fn(&BenchContext) -> Result<Vec<FigureReadings>, String>,
}

/// One figure.
struct LabFigure {
    name: &'static str,
    unit: &'static str,
    goal: BenchGoal,
}

const SHARE: &str = "of the ceiling";
const WITHIN_0_1_PERCENT: BenchGoal = BenchGoal::Within { low: 0.999, high: 1.001 };
const OF_THEORY: &str = "of theory";
const WITHIN_FACTOR_1_5: BenchGoal = BenchGoal::Within { low: 1.0 / 1.5, high: 1.5 };
const WITHIN_3_PERCENT: BenchGoal = BenchGoal::Within { low: 0.97, high: 1.03 };

/// In order of execution.
pub(super) const TRIALS: &[LabMeasurement] = &[
    LabMeasurement {
        figures: &[row("lab-goodput-1500", SHARE, WITHIN_0_1_PERCENT)],
        measure: |b| carried::goodput(b, 1e9, 1500, 0),
    },
    LabMeasurement {
        figures: &[row("lab-goodput-9000", SHARE, WITHIN_0_1_PERCENT)],
        measure: |b| carried::goodput(b, 1e9, 9000, 0),
    },
    LabMeasurement {
        figures: &[row("lab-goodput-100m", SHARE, WITHIN_0_1_PERCENT)],
        measure: |b| carried::goodput(b, 1e8, 1500, 0),
    },
    LabMeasurement {
        figures: &[row("lab-goodput-tagged", SHARE, WITHIN_0_1_PERCENT)],
        measure: |b| carried::goodput(b, 1e9, 1500, 1),
    },
    LabMeasurement {
        // The range that rounds to 941.
        figures: &[row("lab-iperf3-1500", "Mb/s", BenchGoal::Within { low: 940.5, high: 941.5 })],
        measure: carried::iperf3,
    },
    LabMeasurement {
        figures: &[
            row("lab-10g-50ms", "Gb/s", BenchGoal::AtLeast(9.8)),
            row("lab-10g-50ms-cpu", "of a core", BenchGoal::Below(0.5)),
            // Half a core, at 1.25 GB per second.
            row("lab-10g-50ms-cost", "CPU s/GB", BenchGoal::Below(0.4)),
            row("lab-memory", "MiB", BenchGoal::Below(50.0)),
        ],
        measure: switch::long_fat_line,
    },
    LabMeasurement {
        figures: &[
            row("lab-port-no-delay", "Gb/s", BenchGoal::AtLeast(15.0)),
            row("lab-port-no-delay-cost", "CPU s/GB", BenchGoal::Nothing),
        ],
        measure: carried::without_delay,
    },
    LabMeasurement {
        figures: &[row("lab-small-packets", "packets/s", BenchGoal::Nothing)],
        measure: limits::small_packets,
    },
    LabMeasurement {
        figures: &[row("lab-small-frames", "packets/s", BenchGoal::Nothing)],
        measure: limits::small_frames,
    },
    LabMeasurement {
        figures: &[row("lab-delay-p99", "us", BenchGoal::Below(100.0))],
        measure: switch::lateness,
    },
    LabMeasurement {
        figures: &[
            row("lab-up-time", "s", BenchGoal::Below(1.0)),
            row("lab-down-time", "s", BenchGoal::Below(1.0)),
        ],
        measure: switch::up_and_down,
    },
    LabMeasurement {
        figures: &[row("lab-known-to", "of the runs", BenchGoal::AtLeast(0.93))],
        measure: known::coverage,
    },
    LabMeasurement {
        figures: &[row("lab-loss-cubic", OF_THEORY, WITHIN_FACTOR_1_5)],
        measure: |b| tcp::loss(b, "cubic"),
    },
    LabMeasurement {
        figures: &[row("lab-loss-reno", OF_THEORY, WITHIN_FACTOR_1_5)],
        measure: |b| tcp::loss(b, "reno"),
    },
    LabMeasurement {
        figures: &[row("lab-window-16384", OF_THEORY, WITHIN_3_PERCENT)],
        measure: |b| tcp::window(b, 16384),
    },
    LabMeasurement {
        figures: &[row("lab-window-65536", OF_THEORY, WITHIN_3_PERCENT)],
        measure: |b| tcp::window(b, 65536),
    },
    LabMeasurement {
        figures: &[row("lab-window-262144", OF_THEORY, WITHIN_3_PERCENT)],
        measure: |b| tcp::window(b, 262_144),
    },
    LabMeasurement {
        figures: &[row("lab-window-1048576", OF_THEORY, WITHIN_3_PERCENT)],
        measure: |b| tcp::window(b, 1_048_576),
    },
    LabMeasurement {
        figures: &[row("lab-first-drop", OF_THEORY, BenchGoal::Within { low: 0.9, high: 1.1 })],
        measure: tcp::first_drop,
    },
    LabMeasurement {
        figures: &[
            row("lab-compare-1-percent", "found", BenchGoal::AtLeast(1.0)),
            row("lab-compare-equal", "false alarms", BenchGoal::Below(1.0)),
        ],
        measure: ab::planted,
    },
    LabMeasurement {
        figures: &[row("plan-overhead", "measuring times", BenchGoal::Below(2.0))],
        measure: plans::overhead,
    },
    LabMeasurement {
        figures: &[row("plan-start-error", "ms", BenchGoal::Below(1.0))],
        measure: plans::start_error,
    },
];

const fn row(name: &'static str, unit: &'static str, goal: BenchGoal) -> LabFigure {
    LabFigure { name, unit, goal }
}

impl LabMeasurement {
    /// Names of all its figures.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.figures.iter().map(|figure| figure.name)
    }

    /// Name of the first figure, for messages about all of them.
    pub(super) fn name(&self) -> &'static str {
        self.figures.first().map_or("lab", |figure| figure.name)
    }

    /// Brings up a network, measures, and removes it.
    pub(super) fn run(&self, bed: &BenchContext) -> Result<BenchOutcome, String> {
        if !is_root() {
            return Ok(BenchOutcome::Skipped("a lab in namespaces with names needs root"));
        }
        report::progress(self.name());
        let readings = (self.measure)(bed)?;
        let rows = self.figures.iter().zip(readings);
        let figures = rows.map(|(row, readings)| readings.figure(row.name, row.unit, row.goal));
        Ok(BenchOutcome::Measured(figures.collect::<Result<Vec<_>, _>>()?))
    }
}

/// Duration of a measurement: `quick` for a quick run.
fn length(bed: &BenchContext, full: u64, quick: u64) -> Duration {
    Duration::from_secs(if bed.quick { quick } else { full })
}

/// The switch's report on its lateness, for a note.
fn kept_up(keeping_up: &serde_json::Value) -> String {
    let ns = |key: &str| keeping_up[key].as_f64().unwrap_or(f64::NAN) / 1e3;
    format!("late by {:.0} us (p99), {:.0} us (worst)", ns("late_p99_ns"), ns("late_max_ns"))
}
