//! The table as one JSON document.

use std::collections::BTreeMap;

use linerate_plan::{Compared, ComparisonRow, Subject};
use linerate_theory::compare::{ComparisonOutcome, RepeatSummary};
use linerate_theory::stats::Interval;
use serde::Serialize;

/// Version of the document.
const SCHEMA: &str = "linerate.compare/1";

/// Comparison of configurations.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareDocument {
    /// `linerate.compare/1`.
    schema: &'static str,
    /// Version of linerate.
    linerate: &'static str,
    /// The configuration that the others are compared with.
    base: String,
    /// The other configurations.
    candidates: Vec<String>,
    /// Differences between them other than the figures.
    differences: Vec<DifferenceOf>,
    /// One entry for each place, quantity and candidate.
    comparisons: Vec<ComparisonOf>,
    /// Figures of the base that a candidate lacks.
    missing: Vec<MissingOf>,
    /// Runs that were not completed and are not compared, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DifferenceOf {
    candidate: String,
    /// The differing property.
    what: String,
    base: String,
    other: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlaceOf {
    /// Values of the plan's axes; empty for runs outside plans.
    point: BTreeMap<String, String>,
    flow: String,
    /// `upload` or `download`.
    direction: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ComparisonOf {
    candidate: String,
    #[serde(flatten)]
    place: PlaceOf,
    quantity: &'static str,
    /// Unit of the numbers: `bit/s`, `bytes`, `ns` or `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    base: GroupOf,
    other: GroupOf,
    /// Hodges-Lehmann estimate of other minus base.
    shift: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift_interval: Option<IntervalOf>,
    /// The shift divided by the base's median; absent if that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<f64>,
    /// Probability of a difference at least as large if there is none (p value).
    p: f64,
    /// Number of pairs of repeats that were measured in turns; absent if all were compared with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<usize>,
    /// Typical difference between two single runs of the same configuration.
    noise_floor: f64,
    /// Smallest difference that the figures can show.
    resolution: f64,
    /// How repeats depend on preceding ones; absent if no dependence was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    dependence: Option<DependenceOf>,
    /// Whether the repeats are too few to test for dependence on preceding ones; absent if they are enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    independence_unknown: bool,
    /// `higher`, `lower`, `not_shown`, `below_noise` (below the resolution), `dependent` or `too_few`.
    outcome: &'static str,
    /// Whether a shown difference is an improvement; absent if none is shown or neither direction is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<bool>,
}

/// Dependence between repeats.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DependenceOf {
    /// Correlation of successive repeats.
    correlation: f64,
    /// Number of independent repeats with the same information.
    counts_as: f64,
    /// What `p` would be if the repeats were independent.
    p_if_independent: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GroupOf {
    repeats: usize,
    median: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<IntervalOf>,
    smallest: f64,
    largest: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct IntervalOf {
    low: f64,
    high: f64,
    coverage: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MissingOf {
    candidate: String,
    #[serde(flatten)]
    place: PlaceOf,
    quantity: &'static str,
}

impl CompareDocument {
    /// The comparison as a document.
    #[must_use]
    pub fn new(compared: &Compared) -> Self {
        let Compared { base, others, table, left_out } = compared;
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
            left_out: left_out.iter().map(|runs| (runs.name.clone(), runs.runs)).collect(),
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
}

/// The JSON Schema of the document.
#[cfg(feature = "schema")]
#[must_use]
pub fn compare_schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<CompareDocument>()
        .to_value()
}

impl ComparisonOf {
    fn of(row: &ComparisonRow, candidate: String) -> Self {
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
                ComparisonOutcome::Higher => "higher",
                ComparisonOutcome::Lower => "lower",
                ComparisonOutcome::NotShown => "not_shown",
                ComparisonOutcome::BelowNoise => "below_noise",
                ComparisonOutcome::Dependent => "dependent",
                ComparisonOutcome::TooFew => "too_few",
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
    fn of(group: &RepeatSummary) -> Self {
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
