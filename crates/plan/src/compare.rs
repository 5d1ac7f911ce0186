//! Compares configurations: runs, executed plans, or the values of one axis of a plan.
//!
//! The first one is the base for all others. All comparisons of a call are decided together.

mod candidate;
mod facts;

use linerate_model::Direction;
use linerate_model::metrics::Better;
use linerate_theory::compare::{Comparison, Pairing, compare, decide};

use crate::assertion::{AssertionQuantity, Dimension, QUANTITIES};

pub use candidate::{AxisError, Candidate, values_of_axis};
pub use facts::Difference;

/// Quantities that are compared by default, and which direction is better.
const DEFAULT_QUANTITIES: &[(&str, Better)] = &[
    ("goodput", Better::Higher),
    ("retransmits", Better::Lower),
    ("loss", Better::Lower),
    ("jitter", Better::Lower),
    ("rtt", Better::Lower),
    ("rtt_p95", Better::Lower),
    ("cpu_sender", Better::Lower),
    ("cpu_receiver", Better::Lower),
];

/// Two clocks with this difference show a difference of rates where there is none, parts per million: 50 each.
const MAX_CLOCK_DIFFERENCE_PPM: f64 = 100.0;

/// The subject of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The point of a plan by its axes and values; empty outside of plans.
    pub point: Vec<(String, String)>,
    /// The flow, by its name in the plan or in the run.
    pub flow: String,
    /// Its direction.
    pub direction: Direction,
}

/// One row: one candidate compared with the base, for one subject and one quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonRow {
    /// The subject.
    pub place: Subject,
    /// The quantity, by its name in assertions.
    pub quantity: &'static str,
    /// Its dimension.
    pub dimension: Dimension,
    /// Which direction is better.
    pub better: Better,
    /// Index of the candidate among those that are compared with the base.
    pub candidate: usize,
    /// The result.
    pub comparison: Comparison,
}

/// Configurations compared with a base.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComparisonTable {
    /// By subject, in the order of the base.
    pub rows: Vec<ComparisonRow>,
    /// Figures of the base that a candidate lacks, each with the candidate's index.
    pub missing: Vec<(usize, Subject, &'static str)>,
    /// Other differences between the configurations.
    pub differences: Vec<Difference>,
}

/// Configurations, and the result of their comparison.
#[derive(Debug)]
pub struct Compared {
    /// The configuration that the others are compared with.
    pub base: Candidate,
    /// The others, which `table` numbers in this order.
    pub others: Vec<Candidate>,
    /// The comparisons.
    pub table: ComparisonTable,
    /// Runs that are not compared, for each name that has such runs.
    pub left_out: Vec<LeftOutRuns>,
}

/// Runs with a name that are not compared because they were not completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutRuns {
    /// The name.
    pub name: String,
    /// Their number.
    pub runs: usize,
}

/// The name of no comparable quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No quantity has this name.
    #[error("there is no quantity '{name}'{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// Empty, or a similar name in words.
        hint: String,
    },
    /// Values of the quantity are words.
    #[error("'{0}' is a word, so its values have no difference")]
    Word(String),
}

/// The quantities to compare.
///
/// # Errors
/// A name that is no quantity, or a quantity of words, which have no size.
pub fn quantities(names: &[String]) -> Result<Vec<&'static AssertionQuantity>, QuantityError> {
    let known = |name: &str| QUANTITIES.iter().find(|quantity| quantity.name == name);
    if names.is_empty() {
        return Ok(DEFAULT_QUANTITIES.iter().filter_map(|(name, _)| known(name)).collect());
    }
    let find = |name: &String| {
        let numbers = QUANTITIES.iter().filter(|quantity| quantity.dimension != Dimension::Word);
        let hint = || linerate_config::hint(name, numbers.map(|quantity| quantity.name));
        let found = known(name).ok_or_else(|| QuantityError::Unknown { name: name.clone(), hint: hint() })?;
        match found.dimension {
            Dimension::Word => Err(QuantityError::Word(name.clone())),
            _ => Ok(found),
        }
    };
    names.iter().map(find).collect()
}

/// Which direction is better.
fn better(quantity: &str) -> Better {
    DEFAULT_QUANTITIES
        .iter()
        .find(|(name, _)| *name == quantity)
        .map_or(Better::Neither, |(_, better)| *better)
}

/// Compares candidates with a base.
#[must_use]
pub fn compare_with_base(
    base: &Candidate,
    others: &[Candidate],
    wanted: &[&'static AssertionQuantity],
    pairing: Pairing,
) -> ComparisonTable {
    let mut table =
        ComparisonTable { differences: facts::differences(base, others), ..ComparisonTable::default() };
    for place in base.places() {
        for quantity in wanted {
            let Some(of_base) = base.samples(place, quantity.name) else { continue };
            for (candidate, other) in others.iter().enumerate() {
                let of_other = other.samples(place, quantity.name);
                // Where other repeats are missing than in the base, values of different times would be paired.
                let in_turn = other.has_repeats_of(base, place, quantity.name);
                let pairing = if in_turn { pairing } else { Pairing::None };
                let resolution = resolution(quantity.dimension, of_base);
                match of_other.and_then(|samples| compare(of_base, samples, pairing, resolution)) {
                    Some(comparison) => table.rows.push(ComparisonRow {
                        place: place.clone(),
                        quantity: quantity.name,
                        dimension: quantity.dimension,
                        better: better(quantity.name),
                        candidate,
                        comparison,
                    }),
                    None => table.missing.push((candidate, place.clone(), quantity.name)),
                }
            }
        }
    }
    let mut comparisons: Vec<Comparison> = table.rows.iter().map(|row| row.comparison.clone()).collect();
    decide(&mut comparisons);
    for (row, decided) in table.rows.iter_mut().zip(comparisons) {
        row.comparison.outcome = decided.outcome;
    }
    table
}

/// The smallest difference that figures of a dimension can show.
fn resolution(dimension: Dimension, samples: &[f64]) -> f64 {
    let largest = samples.iter().fold(0.0_f64, |largest, sample| largest.max(sample.abs()));
    if dimension == Dimension::Rate { largest * MAX_CLOCK_DIFFERENCE_PPM * 1e-6 } else { 0.0 }
}

#[cfg(test)]
mod tests;
