//! Results of the trials of a plan, and their summaries per point.

use std::collections::BTreeMap;

use linerate_model::{Direction, FlowRecord, PlanRecord, PointSummary, RunRecord, SummaryInterval};
use linerate_theory::stats::order::{median, median_interval};
use linerate_units::Bitrate;

use crate::assertion::{AssertionQuantity, Measurements, QUANTITIES, QuantityScope, QuantityValue};
use crate::cross_flow::{self, QueueObservation};
use crate::plan::Plan;
use crate::point::{Point, PointId};

/// Smallest coverage of a median's interval.
const CONFIDENCE: f64 = 0.95;

/// Measurements of one run: for each direction the quantities, in the order of [`QUANTITIES`], and the
/// observation of its queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunMeasurements(Vec<(Direction, Vec<Option<QuantityValue>>, Option<QueueObservation>)>);

impl RunMeasurements {
    /// The figures of a run.
    #[must_use]
    pub fn of(record: &RunRecord) -> Self {
        let of_flow =
            |flow: &FlowRecord| QUANTITIES.iter().map(|quantity| (quantity.of)(record, flow)).collect();
        let way =
            |flow: &FlowRecord| (flow.plan.direction, of_flow(flow), QueueObservation::of(record, flow));
        Self(record.flows.iter().map(way).collect())
    }

    /// The goodput of each direction that has one: the result of the run.
    pub fn goodputs(&self) -> impl Iterator<Item = (Direction, Bitrate)> {
        let at = QUANTITIES.iter().position(|quantity| quantity.name == "goodput");
        self.0.iter().filter_map(move |(direction, figures, _)| match figures.get(at?)?.as_ref()? {
            QuantityValue::Number(bps) => Some((*direction, Bitrate::from_bps(*bps)?)),
            _ => None,
        })
    }

    pub(crate) fn get(&self, direction: Direction, quantity: usize) -> Option<&QuantityValue> {
        let found = self.0.iter().find(|(known, ..)| *known == direction);
        found.and_then(|(_, figures, _)| figures.get(quantity)?.as_ref())
    }

    pub(crate) fn set(&mut self, direction: Direction, quantity: usize, measured: &QuantityValue) {
        for (_, figures, _) in self.0.iter_mut().filter(|(of, ..)| *of == direction) {
            if let Some(figure) = figures.get_mut(quantity) {
                *figure = Some(measured.clone());
            }
        }
    }

    pub(crate) fn queue_observation(&self, direction: Direction) -> Option<&QueueObservation> {
        let found = self.0.iter().find(|(known, ..)| *known == direction);
        found.and_then(|(_, _, queue)| queue.as_ref())
    }
}

/// A trial of a point: for each flow of the plan the measurements of its run; `None` if it was not completed.
pub type TrialFigures = Vec<Option<RunMeasurements>>;

/// The figures of all trials.
#[derive(Debug, Clone, Default)]
pub struct TrialResults(BTreeMap<PointId, BTreeMap<u32, TrialFigures>>);

impl TrialResults {
    /// Adds a trial. It replaces an earlier one of the same repeat.
    pub fn take(&mut self, plan: &Plan, point: &Point, repeat: u32, mut trial: TrialFigures) {
        cross_flow::add(plan, point, &mut trial);
        self.0.entry(point.id).or_default().insert(repeat, trial);
    }

    /// Summaries of the trials of a point by quantity; quantities that were not measured are absent.
    #[must_use]
    pub fn sum(&self, plan: &Plan, point: &Point) -> Vec<PointSummary> {
        let Some(trials) = self.0.get(&point.id) else { return Vec::new() };
        let mut summaries = Vec::new();
        for (number, flow) in plan.flows.iter().enumerate() {
            let Some(test) = point.test_of(&flow.name) else { continue };
            for direction in test.spec.phases().into_iter().flatten() {
                for (at, quantity) in QUANTITIES.iter().enumerate() {
                    let found = trials.iter().filter_map(|(repeat, trial)| {
                        Some((*repeat, trial.get(number)?.as_ref()?.get(direction, at)?))
                    });
                    summaries.extend(summary(point.id, &flow.name, direction, quantity, found));
                }
            }
        }
        summaries
    }

    /// Whether the interval of the goodput of every flow that is not cross traffic is at most `share` of
    /// its median wide.
    pub(crate) fn is_narrow(&self, plan: &Plan, point: &Point, share: f64) -> bool {
        let summaries = self.sum(plan, point);
        let mut flows = point.tests.iter().filter(|test| !test.cross_traffic);
        flows.all(|test| {
            test.spec.phases().into_iter().flatten().all(|direction| {
                let is = |one: &&PointSummary| {
                    one.flow == test.flow && one.direction == direction && one.quantity == "goodput"
                };
                let found = summaries.iter().find(is);
                found.is_some_and(|one| match (one.interval, one.median) {
                    (Some(interval), Some(median)) => interval.high - interval.low <= share * median,
                    _ => false,
                })
            })
        })
    }
}

/// The summary of a quantity, from its values with their repeats, from 1.
fn summary<'m>(
    point: PointId,
    flow: &str,
    direction: Direction,
    quantity: &AssertionQuantity,
    found: impl Iterator<Item = (u32, &'m QuantityValue)>,
) -> Option<PointSummary> {
    let (mut values, mut repeats, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for (repeat, measured) in found {
        match measured {
            QuantityValue::Number(number) => {
                values.push(*number);
                repeats.push(repeat.saturating_sub(1));
            }
            other => words.extend(other.words().iter().cloned()),
        }
    }
    if values.is_empty() && words.is_empty() {
        return None;
    }
    let interval = median_interval(&values, CONFIDENCE);
    Some(PointSummary {
        point: point.to_string().into(),
        flow: flow.into(),
        direction,
        quantity: quantity.name.into(),
        unit: quantity.dimension.unit().map(Into::into),
        median: median(&values),
        interval: interval.map(|known| SummaryInterval {
            low: known.low,
            high: known.high,
            coverage: known.coverage,
        }),
        values,
        repeats,
        words: words.into_iter().map(Into::into).collect(),
    })
}

/// Key of a summary: point, flow, direction, quantity.
type SummaryKey<'r> = (PointId, &'r str, &'static str, &'r str);

/// Summaries for assertions: the median of the trials, or their words.
#[derive(Debug, Default)]
pub struct Summed<'r> {
    here: BTreeMap<SummaryKey<'r>, &'r PointSummary>,
    others: BTreeMap<&'r str, BTreeMap<SummaryKey<'r>, &'r PointSummary>>,
}

impl<'r> Summed<'r> {
    /// Summaries of this plan, and of other plans by their names in assertions.
    #[must_use]
    pub fn new(here: &'r [PointSummary], others: &'r BTreeMap<String, PlanRecord>) -> Self {
        let others = others.iter().map(|(name, record)| (name.as_str(), index(&record.summaries)));
        Self { here: index(here), others: others.collect() }
    }
}

fn index(summaries: &[PointSummary]) -> BTreeMap<SummaryKey<'_>, &PointSummary> {
    let place = |one: &PointSummary| one.point.parse::<PointId>().ok();
    let row = |one| {
        let &PointSummary { ref flow, direction, ref quantity, .. } = one;
        Some(((place(one)?, flow.as_str(), direction.name(), quantity.as_str()), one))
    };
    summaries.iter().filter_map(row).collect()
}

impl Measurements for Summed<'_> {
    fn measured(&self, scope: QuantityScope<'_>, quantity: &AssertionQuantity) -> Option<QuantityValue> {
        let summaries = match scope.run {
            None => &self.here,
            Some(run) => self.others.get(run)?,
        };
        let place = (scope.point, scope.flow, scope.direction.name(), quantity.name);
        let found = summaries.get(&place)?;
        if let Some(median) = found.median {
            return Some(QuantityValue::Number(median));
        }
        let mut words = found.words.clone();
        words.sort();
        words.dedup();
        match words.as_slice() {
            [] => None,
            [one] => Some(QuantityValue::Word(one.to_string())),
            _ => Some(QuantityValue::Words(words.into_iter().map(Into::into).collect())),
        }
    }
}
