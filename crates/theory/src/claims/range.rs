//! The range of values that a printed figure can represent.

use linerate_model::import::{Claim, Figure, Quantity};

/// Relative error of double arithmetic in a figure that is printed with all its digits.
const ARITHMETIC_ERROR: f64 = 1e-9;

/// All values from `low` to `high`, none below zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FigureRange {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl FigureRange {
    /// The values that a program may have printed as this figure: rounded (up to half a step less) or truncated
    /// (up to a step more). Times are often differences of two such figures: a step either way.
    pub(super) fn of(figure: &Figure) -> Option<Self> {
        let usable = figure.value.is_finite() && figure.value >= 0.0;
        if !usable || !figure.step.is_finite() || figure.step < 0.0 {
            return None;
        }
        let below = if figure.quantity == Quantity::Seconds { figure.step } else { figure.step / 2.0 };
        let arithmetic = figure.value * ARITHMETIC_ERROR;
        Some(Self {
            low: (figure.value - below - arithmetic).max(0.0),
            high: figure.value + figure.step + arithmetic,
        })
    }

    /// The range of a line's figure; `None` if the line does not have it.
    pub(super) fn in_claim(claim: &Claim, quantity: Quantity) -> Option<Self> {
        claim.figure(quantity).and_then(Self::of)
    }

    /// The range of one exact value.
    pub(super) fn exact(value: f64) -> Self {
        Self { low: value * (1.0 - ARITHMETIC_ERROR), high: value * (1.0 + ARITHMETIC_ERROR) }
    }

    pub(super) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { low: self.low * other.low, high: self.high * other.high }
    }

    /// The range of quotients; `None` if the divisor is zero.
    pub(super) fn over(self, divisor: Self) -> Option<Self> {
        if divisor.high <= 0.0 {
            return None;
        }
        let high = if divisor.low > 0.0 { self.high / divisor.low } else { f64::INFINITY };
        Some(Self { low: self.low / divisor.high, high })
    }

    /// Widened by this share on both sides.
    pub(super) fn widened(self, share: f64) -> Self {
        Self { low: self.low * (1.0 - share), high: self.high * (1.0 + share) }
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The intersection; `self` if they do not overlap.
    pub(super) fn narrowed(self, other: Self) -> Self {
        if self.meets(other) {
            Self { low: self.low.max(other.low), high: self.high.min(other.high) }
        } else {
            self
        }
    }

    /// Width relative to the middle.
    pub(super) fn relative_width(self) -> f64 {
        (self.high - self.low) / self.middle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(quantity: Quantity, value: f64, step: f64) -> Figure {
        Figure { quantity, value, step, printed: "".into() }
    }

    #[test]
    fn rounding_and_cutting_off_are_both_allowed_for() {
        let range = FigureRange::of(&figure(Quantity::Bitrate, 941e6, 1e6)).unwrap();
        assert!(range.low < 940.6e6 && range.low > 940.4e6);
        assert!(range.high > 941.99e6 && range.high < 942.1e6);
        assert_eq!(FigureRange::of(&figure(Quantity::Bitrate, f64::NAN, 0.0)), None);
        assert_eq!(FigureRange::of(&figure(Quantity::Bitrate, f64::INFINITY, 0.0)), None);
        assert_eq!(FigureRange::of(&figure(Quantity::Bitrate, 1.0, f64::NAN)), None);
        assert!(FigureRange::of(&figure(Quantity::Seconds, 0.0, 0.01)).unwrap().low.abs() < f64::EPSILON);
    }

    #[test]
    fn a_time_of_nothing_allows_any_rate() {
        let seconds = FigureRange { low: 0.0, high: 0.01 };
        let rate = FigureRange::exact(1000.0).over(seconds).unwrap();
        assert!(rate.high.is_infinite() && rate.low > 99_999.0);
        assert_eq!(FigureRange::exact(1.0).over(FigureRange::exact(0.0)), None);
    }
}
