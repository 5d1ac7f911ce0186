//! What a comparison found, as a sentence: "new is 3.1 % faster than old (2.0 to 4.2 %)".

use linerate_plan::ComparisonRow;
use linerate_theory::compare::{Comparison, ComparisonOutcome};

use super::{PRIMARY_QUANTITY, too_few, unit};
use crate::quantity::{in_one_unit, in_unit};

/// The sentence of a row, with the names of both configurations.
pub(crate) fn sentence(row: &ComparisonRow, base: &str, other: &str) -> String {
    let comparison = &row.comparison;
    let goodput = row.quantity == PRIMARY_QUANTITY;
    let what = row.quantity.replace('_', " ");
    let higher = match comparison.outcome {
        ComparisonOutcome::Higher => true,
        ComparisonOutcome::Lower => false,
        ComparisonOutcome::TooFew => {
            return format!("{what} of {other} and {base} cannot be compared: {}", too_few(comparison));
        }
        outcome => return none_shown(row, &format!("of {what} between {other} and {base}"), outcome),
    };
    let by = size(row, comparison.shift);
    let ends = comparison.interval.map(|interval| between(row, interval.low, interval.high));
    let ends = ends.map(|ends| format!(" ({ends})")).unwrap_or_default();
    if goodput {
        let word = if higher { "faster" } else { "slower" };
        format!("{other} is {by} {word} than {base}{ends}")
    } else {
        let word = if higher { "higher" } else { "lower" };
        format!("{what} of {other} is {by} {word} than that of {base}{ends}")
    }
}

/// That no difference is shown, and how large one may be that was not seen.
fn none_shown(row: &ComparisonRow, what: &str, outcome: ComparisonOutcome) -> String {
    let comparison = &row.comparison;
    match outcome {
        ComparisonOutcome::Dependent => {
            format!("No difference {what} is shown: the repeats are not independent")
        }
        ComparisonOutcome::BelowNoise => {
            let least = in_unit(unit(row), comparison.resolution);
            format!("No difference {what} is shown: the figures cannot show one below {least}")
        }
        _ => match comparison.interval {
            Some(interval) => {
                let largest = interval.low.abs().max(interval.high.abs());
                format!("No difference {what} larger than {} could be seen", size(row, largest))
            }
            None => format!("No difference {what} is shown"),
        },
    }
}

/// The size of a difference without its sign: a share of the base, or a value if the base is 0.
fn size(row: &ComparisonRow, difference: f64) -> String {
    match share(&row.comparison, difference) {
        Some(share) => format!("{} %", percent(share)),
        None => in_unit(unit(row), difference.abs()),
    }
}

/// The ends of a difference, the smaller one first. An end on the other side of no difference keeps its sign.
fn between(row: &ComparisonRow, low: f64, high: f64) -> String {
    let turned = row.comparison.shift < 0.0;
    let (first, last) = if turned { (-high, -low) } else { (low, high) };
    let sign = |end: f64| if end < 0.0 { "-" } else { "" };
    let shown = match share(&row.comparison, first).zip(share(&row.comparison, last)) {
        Some(shares) => (percent(shares.0), percent(shares.1) + " %"),
        None => {
            let [last, first, _] = in_one_unit(unit(row), last.abs(), (first.abs(), last.abs()));
            (first, last)
        }
    };
    format!("{}{} to {}{}", sign(first), shown.0, sign(last), shown.1)
}

fn share(comparison: &Comparison, difference: f64) -> Option<f64> {
    let base = comparison.base.median.abs();
    (base > 0.0).then(|| difference.abs() / base)
}

/// A share with one decimal, or with as many as show its first digit.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.095 || percent == 0.0 { format!("{percent:.1}") } else { format!("{percent:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Direction;
    use linerate_model::metrics::Better;
    use linerate_plan::{Dimension, Subject};
    use linerate_theory::compare::{Pairing, compare};

    fn row(quantity: &'static str, dimension: Dimension, base: &[f64], other: &[f64]) -> ComparisonRow {
        ComparisonRow {
            place: Subject { point: Vec::new(), flow: "upload".to_owned(), direction: Direction::Upload },
            quantity,
            dimension,
            better: Better::Higher,
            candidate: 0,
            comparison: compare(base, other, Pairing::None, 0.0).unwrap(),
        }
    }

    fn around(middle: f64) -> Vec<f64> {
        // Neighbours are not alike: repeats that depend on each other show no difference.
        (0..8).map(|at| middle * (1.0 + 0.0005 * f64::from(at * 3 % 8))).collect()
    }

    #[test]
    fn a_difference_is_described_with_its_interval_and_its_direction() {
        let faster = row("goodput", Dimension::Rate, &around(100e6), &around(103e6));
        let text = sentence(&faster, "old", "new");
        assert!(text.starts_with("new is 3.0 % faster than old (2.") && text.ends_with(" %)"), "{text}");
        let slower = sentence(&row("goodput", Dimension::Rate, &around(103e6), &around(100e6)), "old", "new");
        assert!(slower.starts_with("new is 2.9 % slower than old (2."), "{slower}");
        let rtt = sentence(&row("rtt_p95", Dimension::Time, &around(1e6), &around(2e6)), "old", "new");
        assert!(rtt.starts_with("rtt p95 of new is 100.0 % higher than that of old ("), "{rtt}");
    }

    #[test]
    fn no_difference_says_how_large_one_may_be() {
        let same = row("goodput", Dimension::Rate, &around(100e6), &around(100e6));
        let text = sentence(&same, "old", "new");
        assert!(text.starts_with("No difference of goodput between new and old larger than 0."), "{text}");
        let few = sentence(&row("goodput", Dimension::Rate, &[1e6, 2e6], &[9e6, 8e6]), "old", "new");
        assert!(few.contains("cannot be compared: 2 and 2 repeats are too few"), "{few}");
    }

    #[test]
    fn a_base_of_zero_has_no_share() {
        let text = sentence(&row("retransmits", Dimension::Plain, &[0.0; 8], &[12.0; 8]), "old", "new");
        assert!(text.starts_with("retransmits of new is 12 higher than that of old"), "{text}");
    }
}
