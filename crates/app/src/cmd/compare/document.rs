//! The table as one JSON document.

use std::collections::BTreeMap;

use linerate_plan::{Row, Subject};
use linerate_theory::compare::{Group, Outcome};
use linerate_theory::stats::Interval;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Compared;

/// Version of the document.
const SCHEMA: &str = "linerate.compare/1";

/// Configurations beside each other.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "CompareDocument")]
pub(in crate::cmd) struct Document {
    /// `linerate.compare/1`.
    schema: &'static str,
    /// Version of the program that compared.
    linerate: &'static str,
    /// What the others are compared with.
    base: String,
    /// The others.
    candidates: Vec<String>,
    /// What differs between them beside the figures.
    differences: Vec<DifferenceOf>,
    /// One line for each place, quantity and candidate.
    comparisons: Vec<ComparisonOf>,
    /// Figures of the base that a candidate has not.
    missing: Vec<MissingOf>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DifferenceOf {
    candidate: String,
    /// What differs.
    what: String,
    base: String,
    other: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PlaceOf {
    /// Values of a plan's axes; empty outside of plans.
    point: BTreeMap<String, String>,
    flow: String,
    /// `upload` or `download`.
    direction: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ComparisonOf {
    candidate: String,
    #[serde(flatten)]
    place: PlaceOf,
    quantity: &'static str,
    /// What its numbers are measured in: `bit/s`, `bytes`, `ns` or `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    base: GroupOf,
    other: GroupOf,
    /// Hodges-Lehmann estimate of other minus base.
    shift: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift_interval: Option<IntervalOf>,
    /// The shift as a share of the base's median; absent when that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<f64>,
    /// Probability of a difference at least as clear when there is none.
    p: f64,
    /// Pairs of repeats that were measured in turn; absent when all were compared with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<usize>,
    /// What two single runs differ by when nothing differs.
    noise_floor: f64,
    /// The least difference that the figures can show.
    resolution: f64,
    /// How the repeats follow from the ones before them; absent where nothing shows that they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    dependence: Option<DependenceOf>,
    /// Whether the repeats are too few to tell whether they follow from the ones before them; absent where they are not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    independence_unknown: bool,
    /// `higher`, `lower`, `not_shown`, `below_noise` (below the resolution), `dependent` or `too_few`.
    outcome: &'static str,
    /// Whether a shown difference is for the better; absent where nothing is shown or neither way is.
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<bool>,
}

/// Repeats that are not independent.
#[derive(Debug, Serialize, JsonSchema)]
struct DependenceOf {
    /// Correlation of neighbours.
    correlation: f64,
    /// So many independent repeats would tell as much.
    counts_as: f64,
    /// The probability that `p` would be if they were independent.
    p_if_independent: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GroupOf {
    repeats: usize,
    median: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<IntervalOf>,
    smallest: f64,
    largest: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct IntervalOf {
    low: f64,
    high: f64,
    coverage: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MissingOf {
    candidate: String,
    #[serde(flatten)]
    place: PlaceOf,
    quantity: &'static str,
}

impl Document {
    pub(super) fn new(compared: &Compared) -> Self {
        let Compared { base, others, table } = compared;
        let name =
            |candidate: usize| others.get(candidate).map(|other| other.name.clone()).unwrap_or_default();
        Self {
            schema: SCHEMA,
            linerate: env!("CARGO_PKG_VERSION"),
            base: base.name.clone(),
            candidates: others.iter().map(|other| other.name.clone()).collect(),
            differences: table
                .differences
                .iter()
                .map(|difference| DifferenceOf {
                    candidate: name(difference.candidate),
                    what: difference.what.clone(),
                    base: difference.base.clone(),
                    other: difference.other.clone(),
                })
                .collect(),
            comparisons: table.rows.iter().map(|row| ComparisonOf::of(row, name(row.candidate))).collect(),
            missing: table
                .missing
                .iter()
                .map(|(candidate, place, quantity)| MissingOf {
                    candidate: name(*candidate),
                    place: PlaceOf::of(place),
                    quantity,
                })
                .collect(),
        }
    }

    /// Its JSON Schema.
    pub(in crate::cmd) fn schema() -> Value {
        schemars::generate::SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator()
            .into_root_schema_for::<Self>()
            .to_value()
    }
}

impl ComparisonOf {
    fn of(row: &Row, candidate: String) -> Self {
        let comparison = &row.comparison;
        Self {
            candidate,
            place: PlaceOf::of(&row.place),
            quantity: row.quantity,
            unit: row.dimension.unit(),
            base: GroupOf::of(&comparison.base),
            other: GroupOf::of(&comparison.other),
            shift: comparison.shift,
            shift_interval: comparison.interval.map(IntervalOf::of),
            relative: comparison.relative(),
            p: comparison.p,
            pairs: comparison.pairs,
            noise_floor: comparison.noise_floor,
            resolution: comparison.resolution,
            dependence: comparison.dependence.map(|found| DependenceOf {
                correlation: found.correlation,
                counts_as: found.counts_as,
                p_if_independent: found.p_if_independent,
            }),
            independence_unknown: comparison.is_independence_unknown(),
            outcome: match comparison.outcome {
                Outcome::Higher => "higher",
                Outcome::Lower => "lower",
                Outcome::NotShown => "not_shown",
                Outcome::BelowNoise => "below_noise",
                Outcome::Dependent => "dependent",
                Outcome::TooFew => "too_few",
            },
            better: comparison.outcome.is_better(row.better),
        }
    }
}

impl PlaceOf {
    fn of(place: &Subject) -> Self {
        Self {
            point: place.point.iter().cloned().collect(),
            flow: place.flow.clone(),
            direction: place.direction.name(),
        }
    }
}

impl GroupOf {
    fn of(group: &Group) -> Self {
        Self {
            repeats: group.repeats,
            median: group.median,
            interval: group.interval.map(IntervalOf::of),
            smallest: group.smallest,
            largest: group.largest,
        }
    }
}

impl IntervalOf {
    fn of(interval: Interval) -> Self {
        Self { low: interval.low, high: interval.high, coverage: interval.coverage }
    }
}
