//! Checks whether assertions hold.

use linerate_model::Direction;
use serde::Serialize;

use super::quantities::{AssertionQuantity, QUANTITIES, QuantityValue};
use super::syntax::ComparisonOperator;
use super::{Expression, QuantityOrigin, Relation};
use crate::plan::Plan;
use crate::point::{Point, PointId};

/// Where a quantity is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantityScope<'a> {
    /// Name of another run; absent: this run.
    pub run: Option<&'a str>,
    /// The point.
    pub point: PointId,
    /// The flow.
    pub flow: &'a str,
    /// Its direction.
    pub direction: Direction,
}

/// Measurements of a run. For several trials of a point, their summary.
pub trait Measurements {
    /// The quantity in this scope; `None` if it was not measured.
    fn measured(&self, scope: QuantityScope<'_>, quantity: &AssertionQuantity) -> Option<QuantityValue>;
}

/// Result of an assertion at one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssertionResult {
    /// The assertion's name.
    pub assertion: String,
    /// The point.
    pub point: PointId,
    /// The flow.
    pub flow: String,
    /// Its direction.
    pub direction: Direction,
    /// The result.
    pub outcome: AssertionOutcome,
}

/// Result of an assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AssertionOutcome {
    /// The assertion holds.
    Holds,
    /// The assertion fails; the text shows both sides.
    Fails(String),
    /// The result is unknown because this was not measured. That counts as a failure too.
    NotMeasured(String),
}

impl AssertionOutcome {
    /// Whether the assertion holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        *self == Self::Holds
    }
}

/// Checks every assertion at every point, flow and direction that it applies to.
#[must_use]
pub fn judge(plan: &Plan, results: &dyn Measurements) -> Vec<AssertionResult> {
    let mut judgements = Vec::new();
    for assertion in &plan.assertions {
        for number in 0..plan.grid.len() {
            let Some(choice) = plan.grid.choice(number) else { continue };
            if !assertion.points.holds(&choice) {
                continue;
            }
            let Ok(point) = plan.point(number) else { continue };
            for test in &point.tests {
                let named = assertion.flow.as_deref();
                let wanted = named.map_or(!test.cross_traffic, |name| name == test.flow);
                if !wanted {
                    continue;
                }
                for direction in test.spec.phases().into_iter().flatten() {
                    if assertion.direction.is_some_and(|only| only != direction) {
                        continue;
                    }
                    let judge =
                        AssertionJudge { plan, results, choice: &choice, flow: &test.flow, direction };
                    judgements.push(AssertionResult {
                        assertion: assertion.name.clone(),
                        point: point.id,
                        flow: test.flow.clone(),
                        direction,
                        outcome: judge.outcome(&assertion.relation),
                    });
                }
            }
        }
    }
    judgements
}

/// Checks a relation at one point, for every flow that is not cross traffic and each of its directions.
#[must_use]
pub fn judge_at(
    plan: &Plan,
    relation: &Relation,
    point: &Point,
    results: &dyn Measurements,
) -> Vec<AssertionOutcome> {
    let Some(choice) = plan.grid.choice(point.number) else { return Vec::new() };
    let flows = point.tests.iter().filter(|test| !test.cross_traffic);
    let ways = flows.flat_map(|test| {
        let directions = test.spec.phases().into_iter().flatten();
        directions.map(move |direction| (test.flow.as_str(), direction))
    });
    let outcome = |(flow, direction)| {
        AssertionJudge { plan, results, choice: &choice, flow, direction }.outcome(relation)
    };
    ways.map(outcome).collect()
}

struct AssertionJudge<'a> {
    plan: &'a Plan,
    results: &'a dyn Measurements,
    choice: &'a [usize],
    flow: &'a str,
    direction: Direction,
}

impl AssertionJudge<'_> {
    fn outcome(&self, relation: &Relation) -> AssertionOutcome {
        let sides = self.side(&relation.left).and_then(|left| Ok((left, self.side(&relation.right)?)));
        match sides {
            Err(missing) => AssertionOutcome::NotMeasured(missing),
            Ok((left, right)) if compare(&left, relation.comparison, &right) => AssertionOutcome::Holds,
            Ok((left, right)) => AssertionOutcome::Fails(relation.show(&left, &right)),
        }
    }

    /// The value of a side, or the missing quantity as an error.
    fn side(&self, expression: &Expression) -> Result<QuantityValue, String> {
        match expression {
            Expression::Number(number) => Ok(QuantityValue::Number(*number)),
            Expression::Word(word) => Ok(QuantityValue::Word(word.clone())),
            Expression::Quantity(number, place) => self.look_up(&QUANTITIES[*number], place),
            Expression::Pair(sign, left, right) => match (self.side(left)?, self.side(right)?) {
                (QuantityValue::Number(left), QuantityValue::Number(right)) => {
                    let result = match sign {
                        '+' => left + right,
                        '-' => left - right,
                        '*' => left * right,
                        _ => left / right,
                    };
                    let finite = result.is_finite().then_some(QuantityValue::Number(result));
                    finite.ok_or_else(|| "a quotient with divisor 0".to_owned())
                }
                _ => Err("a number".to_owned()),
            },
        }
    }

    fn look_up(&self, quantity: &AssertionQuantity, place: &QuantityOrigin) -> Result<QuantityValue, String> {
        let mut choice = self.choice.to_vec();
        let mut run = None;
        match place {
            QuantityOrigin::Here => {}
            QuantityOrigin::Run(name) => run = Some(name.as_str()),
            QuantityOrigin::Point(changed) => {
                for (axis, value) in changed {
                    if let Some(old) = choice.get_mut(*axis) {
                        *old = *value;
                    }
                }
            }
        }
        let label = self.plan.label(&choice);
        if self.plan.grid.find(&choice).is_none() {
            return Err(format!("the point {label}, which the plan excludes"));
        }
        let point = self.plan.id(&choice);
        let scope = QuantityScope { run, point, flow: self.flow, direction: self.direction };
        self.results.measured(scope, quantity).ok_or_else(|| {
            let run = run.map(|run| format!(" in the run '{run}'")).unwrap_or_default();
            format!("{} of {} {} at {label}{run}", quantity.name, self.flow, self.direction.name())
        })
    }
}

fn compare(left: &QuantityValue, comparison: ComparisonOperator, right: &QuantityValue) -> bool {
    match (left, right) {
        (QuantityValue::Number(left), QuantityValue::Number(right)) => match comparison {
            ComparisonOperator::AtLeast => left >= right,
            ComparisonOperator::AtMost => left <= right,
            ComparisonOperator::Above => left > right,
            ComparisonOperator::Below => left < right,
            ComparisonOperator::Equal => left == right,
            ComparisonOperator::Other => left != right,
        },
        (QuantityValue::Number(_), _) | (_, QuantityValue::Number(_)) => false,
        // Several words or values: equal means that all pairs are equal, not equal that no pair is.
        (left, right) => {
            let mut pairs =
                left.words().iter().flat_map(|left| right.words().iter().map(move |right| left == right));
            match comparison {
                ComparisonOperator::Equal => pairs.all(|same| same),
                ComparisonOperator::Other => !pairs.any(|same| same),
                _ => false,
            }
        }
    }
}

impl Relation {
    /// The other runs that the relation refers to.
    #[must_use]
    pub fn runs(&self) -> Vec<&str> {
        fn names<'e>(side: &'e Expression, found: &mut Vec<&'e str>) {
            match side {
                Expression::Quantity(_, QuantityOrigin::Run(name)) => found.push(name),
                Expression::Pair(_, left, right) => {
                    names(left, found);
                    names(right, found);
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        names(&self.left, &mut found);
        names(&self.right, &mut found);
        found
    }

    /// Both sides as text.
    fn show(&self, left: &QuantityValue, right: &QuantityValue) -> String {
        let show = |side: &QuantityValue| match side {
            QuantityValue::Number(number) => self.dimension.show(*number),
            QuantityValue::Word(word) => word.clone(),
            QuantityValue::Words(words) => words.join(" and "),
        };
        format!("found {}, but required {} {}", show(left), self.comparison.sign(), show(right))
    }
}
