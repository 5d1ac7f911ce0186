//! Assertions: conditions that the results of a plan must meet.
//!
//! An assertion compares two sides. A side consists of quantities ([`QUANTITIES`]), numbers with units, `+ - *
//! /` and parentheses; `0.98 ceiling` is a product. `point(streams = 1).goodput` is the same quantity at the
//! point that differs only in these axes, `run("name").goodput` that of the same point in another run.

mod flight;
mod judge;
mod quantities;
mod syntax;

use std::collections::BTreeMap;

use linerate_config::hint;
use linerate_model::Direction;
use linerate_units::{Bitrate, Bytes, ParseError, Ratio, Span};

use crate::axis::{Axis, PointSelection};

pub use judge::{AssertionOutcome, AssertionResult, Measurements, QuantityScope, judge, judge_at};
pub use quantities::{AssertionQuantity, Dimension, QUANTITIES, QuantityValue};
pub(crate) use quantities::{BUFFER, BUFFER_KIND, BUFFER_LOAD, FAIRNESS, TOTAL};
pub(crate) use syntax::AssertionSyntaxError;
pub use syntax::ComparisonOperator;
use syntax::{AssertionForm, AssertionNode, fault};

/// One assertion of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// Name in the report.
    pub name: String,
    /// The text as written.
    pub text: String,
    /// The points that it applies to.
    pub points: PointSelection,
    /// The flow that it applies to; absent: every flow except those in the cross_traffic.
    pub flow: Option<String>,
    /// The direction that it applies to; absent: each that is measured.
    pub direction: Option<Direction>,
    /// The comparison.
    pub relation: Relation,
}

/// Two sides and how they are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    left: Expression,
    comparison: ComparisonOperator,
    right: Expression,
    dimension: Dimension,
}

/// A side with all names resolved.
#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Number(f64),
    Word(String),
    /// Index in [`QUANTITIES`], and where it is looked up.
    Quantity(usize, QuantityOrigin),
    Pair(char, Box<Self>, Box<Self>),
}

/// Where a quantity is looked up.
#[derive(Debug, Clone, PartialEq)]
enum QuantityOrigin {
    Here,
    /// At the point with these values of these axes, by index.
    Point(BTreeMap<usize, usize>),
    Run(String),
}

/// Parses a relation. `point(…)` may name these axes.
pub(crate) fn read(text: &str, axes: &[Axis]) -> Result<Relation, AssertionSyntaxError> {
    let (left, comparison, right) = syntax::parse(text)?;
    let reader = AssertionReader { axes };
    // The side with a quantity determines the dimension of the numbers on the other side.
    let (left_is, right_is) = (reader.dimension(&left)?, reader.dimension(&right)?);
    let dimension = match (left_is, right_is) {
        (None, None) => {
            // A name here is no quantity, or there would be a dimension.
            if let Some((at, name)) = first_name(&left).or_else(|| first_name(&right)) {
                known_quantity(name, at)?;
            }
            return fault(0, "the comparison has no measured quantity; add one such as goodput");
        }
        (Some(one), Some(other)) if one != other => {
            let text = format!(
                "{} cannot be compared with {}; compare quantities of the same kind",
                one.name(),
                other.name()
            );
            return fault(right.at, text);
        }
        (Some(one), _) | (None, Some(one)) => one,
    };
    if dimension == Dimension::Word
        && !matches!(comparison, ComparisonOperator::Equal | ComparisonOperator::Other)
    {
        return fault(left.at, "words have no order; use == or !=");
    }
    let words = [&left, &right].into_iter().find_map(|side| reader.words(side));
    let side = |node: &AssertionNode| match (&node.form, &words) {
        (AssertionForm::Name(word), Some(words)) if quantity(word).is_none() => {
            if words.iter().any(|known| known == word) {
                return Ok(Expression::Word(word.clone()));
            }
            fault(node.at, format!("unknown word '{word}'{}", hint(word, words.iter().map(String::as_str))))
        }
        _ => reader.expression(node, dimension),
    };
    Ok(Relation { left: side(&left)?, comparison, right: side(&right)?, dimension })
}

fn quantity(name: &str) -> Option<usize> {
    QUANTITIES.iter().position(|quantity| quantity.name == name)
}

/// The first name on a side, with its position.
fn first_name(node: &AssertionNode) -> Option<(usize, &str)> {
    match &node.form {
        AssertionForm::Name(name) => Some((node.at, name)),
        AssertionForm::Pair(_, left, right) => first_name(left).or_else(|| first_name(right)),
        AssertionForm::Literal(_) | AssertionForm::AtPoint(..) | AssertionForm::InRun(..) => None,
    }
}

fn known_quantity(name: &str, at: usize) -> Result<usize, AssertionSyntaxError> {
    let missing = || AssertionSyntaxError {
        at,
        text: format!("there is no quantity '{name}'{}", hint(name, QUANTITIES.iter().map(|one| one.name))),
    };
    quantity(name).ok_or_else(missing)
}

struct AssertionReader<'a> {
    axes: &'a [Axis],
}

impl AssertionReader<'_> {
    /// The words that a lone quantity can have; `None` for a number.
    fn words(&self, node: &AssertionNode) -> Option<Vec<String>> {
        let name = match &node.form {
            AssertionForm::Name(name)
            | AssertionForm::AtPoint(_, _, name)
            | AssertionForm::InRun(_, _, name) => name,
            AssertionForm::Literal(_) | AssertionForm::Pair(..) => return None,
        };
        let quantity = &QUANTITIES[quantity(name)?];
        (quantity.dimension == Dimension::Word).then(|| quantity.words())
    }

    /// The dimension of a side; `None` if it has only numbers and unknown words.
    fn dimension(&self, node: &AssertionNode) -> Result<Option<Dimension>, AssertionSyntaxError> {
        match &node.form {
            AssertionForm::Literal(_) => Ok(None),
            AssertionForm::Name(name) => Ok(quantity(name).map(|number| QUANTITIES[number].dimension)),
            AssertionForm::AtPoint(_, at, name) | AssertionForm::InRun(_, at, name) => {
                Ok(Some(QUANTITIES[known_quantity(name, *at)?].dimension))
            }
            AssertionForm::Pair(sign, left, right) => {
                let dimensions = (self.dimension(left)?, self.dimension(right)?);
                if dimensions.0 == Some(Dimension::Word) || dimensions.1 == Some(Dimension::Word) {
                    return fault(node.at, "words cannot be used in arithmetic; use == or != with them");
                }
                self.pair(*sign, right.at, dimensions)
            }
        }
    }

    fn pair(
        &self,
        sign: char,
        at: usize,
        dimensions: (Option<Dimension>, Option<Dimension>),
    ) -> Result<Option<Dimension>, AssertionSyntaxError> {
        use Dimension::Plain;
        match (sign, dimensions) {
            ('+' | '-', (Some(one), Some(other))) if one != other => {
                let text = format!("{} and {} cannot be added or subtracted", one.name(), other.name());
                fault(at, text)
            }
            ('+' | '-', (one, other)) => Ok(one.or(other)),
            // A bare number in a product or after a slash is a factor.
            ('*', (Some(one), Some(other))) if one != Plain && other != Plain => {
                fault(at, format!("{} times {} is not a known kind of quantity", one.name(), other.name()))
            }
            ('*', (one, other)) => {
                Ok([one, other].into_iter().flatten().find(|one| *one != Plain).or(one).or(other))
            }
            (_, (Some(one), Some(other))) if one == other => Ok(Some(Plain)),
            (_, (one, None | Some(Plain))) => Ok(one),
            (_, (one, Some(other))) => {
                let one = one.unwrap_or(Plain);
                fault(
                    at,
                    format!("{} divided by {} is not a known kind of quantity", one.name(), other.name()),
                )
            }
        }
    }

    /// Resolves names, and parses numbers in the dimension of the side.
    fn expression(
        &self,
        node: &AssertionNode,
        dimension: Dimension,
    ) -> Result<Expression, AssertionSyntaxError> {
        match &node.form {
            AssertionForm::Literal(text) => {
                number(text, dimension).map_err(|text| AssertionSyntaxError { at: node.at, text })
            }
            AssertionForm::Name(name) => {
                Ok(Expression::Quantity(known_quantity(name, node.at)?, QuantityOrigin::Here))
            }
            AssertionForm::InRun(run, at, name) => {
                Ok(Expression::Quantity(known_quantity(name, *at)?, QuantityOrigin::Run(run.clone())))
            }
            AssertionForm::AtPoint(changed, at, name) => {
                let mut values = BTreeMap::new();
                for (axis_at, axis, value) in changed {
                    let (number, value) = self.value(*axis_at, axis, value)?;
                    values.insert(number, value);
                }
                Ok(Expression::Quantity(known_quantity(name, *at)?, QuantityOrigin::Point(values)))
            }
            AssertionForm::Pair(sign, left, right) => {
                let (left_is, right_is) = (self.dimension(left)?, self.dimension(right)?);
                let (for_left, for_right) = match sign {
                    '+' | '-' => (dimension, dimension),
                    '*' => (left_is.unwrap_or(Dimension::Plain), right_is.unwrap_or(Dimension::Plain)),
                    _ => (left_is.unwrap_or(dimension), right_is.unwrap_or(Dimension::Plain)),
                };
                let left = self.expression(left, for_left)?;
                let right = self.expression(right, for_right)?;
                Ok(Expression::Pair(*sign, Box::new(left), Box::new(right)))
            }
        }
    }

    fn value(&self, at: usize, axis: &str, value: &str) -> Result<(usize, usize), AssertionSyntaxError> {
        let Some(number) = self.axes.iter().position(|one| one.name == axis) else {
            let hint = hint(axis, self.axes.iter().map(|axis| axis.name.as_str()));
            return fault(at, format!("there is no axis '{axis}'{hint}"));
        };
        let meant = linerate_config::ConfigValue {
            at: linerate_config::SourcePosition::START,
            content: linerate_config::ConfigContent::Typed(value.to_owned()),
        };
        match self.axes[number].find(&meant) {
            Ok(value) => Ok((number, value)),
            Err(text) => fault(at, text),
        }
    }
}

/// Parses a number in a dimension.
fn number(text: &str, dimension: Dimension) -> Result<Expression, String> {
    let number = match dimension {
        Dimension::Rate => text.parse::<Bitrate>().map(Bitrate::bps),
        Dimension::Time => text.parse::<Span>().map(|span| span.as_ns() as f64),
        Dimension::Memory => text.parse::<Bytes>().map(|bytes| bytes.get() as f64),
        Dimension::Plain => text.parse::<Ratio>().map(Ratio::get),
        Dimension::Word => {
            return Err(format!("{text} can only be compared with a word, as in verdict != unknown"));
        }
    };
    number.map(Expression::Number).map_err(|error: ParseError| error.to_string())
}
