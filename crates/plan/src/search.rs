//! Searches at every point for the largest value that meets an assertion.

use linerate_units::{Ratio, Span};

use crate::assertion::Relation;
use crate::axis::AxisTarget;
use crate::kind::SettingValue;

/// An axis that is searched instead of swept.
///
/// # Source
/// RFC 2544 §26.1, with the binary search that RFC 2544 leaves open
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Its name.
    pub name: String,
    /// Everything that it sets.
    pub targets: Vec<AxisTarget>,
    /// The smallest value.
    pub low: SettingValue,
    /// The largest value, which is tried first.
    pub high: SettingValue,
    /// The search ends if the remaining range is at most this share of the largest value wide.
    pub resolution: Ratio,
    /// Before the range is halved, values are tried downwards in steps of this share of the largest one, until
    /// two in a row pass.
    pub descend: Option<Ratio>,
    /// Duration of a final trial at the value found.
    pub confirm: Option<Span>,
    /// The assertion that a value must meet, as written.
    pub text: String,
    /// The same assertion, parsed.
    pub pass: Relation,
}

/// The next value to try.
#[derive(Debug, Clone, PartialEq)]
pub struct NextValue {
    /// The value.
    pub value: SettingValue,
    /// Whether it is the final trial, of the duration [`Search::confirm`].
    pub confirm: bool,
}

/// A search in progress: run the value of [`Bisection::step`], then report whether it [`Bisection::passed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Bisection<'s> {
    search: &'s Search,
    low: f64,
    high: f64,
    /// The largest value that passed.
    best: Option<f64>,
    step: Option<(f64, bool)>,
    /// Number of steps downwards, and how many of the last ones passed in a row; absent after the descent.
    descent: Option<(u32, u32)>,
}

impl Search {
    /// Largest number of trials if every confirmation passes, including the confirmation.
    #[must_use]
    pub fn trials(&self) -> u32 {
        let (low, high) = self.bounds();
        let mut width = high - low;
        let mut trials = 1;
        if let Some(step) = self.descent_step() {
            trials += (width / step).floor() as u32;
            width = step.min(width);
        }
        // Whole values can be halved 64 times, others until the resolution is reached.
        let mut halvings = 0;
        while width > self.width() && halvings < 64 {
            width /= 2.0;
            halvings += 1;
        }
        trials + halvings + u32::from(self.confirm.is_some())
    }

    /// Starts a search at the largest value.
    #[must_use]
    pub fn begin(&self) -> Bisection<'_> {
        let (low, high) = self.bounds();
        let descent = self.descent_step().map(|_| (0, 0));
        Bisection { search: self, low, high, best: None, step: Some((high, false)), descent }
    }

    /// Size of a step downwards.
    fn descent_step(&self) -> Option<f64> {
        let step = self.bounds().1 * self.descend?.get();
        (step > 0.0).then_some(step)
    }

    fn bounds(&self) -> (f64, f64) {
        (self.low.number().unwrap_or(0.0), self.high.number().unwrap_or(0.0))
    }

    /// Width of the range at which the search ends.
    fn width(&self) -> f64 {
        self.bounds().1 * self.resolution.get()
    }
}

impl Bisection<'_> {
    /// The next value to try; `None` after the end of the search.
    #[must_use]
    pub fn step(&self) -> Option<NextValue> {
        let (number, confirm) = self.step?;
        Some(NextValue { value: self.search.high.with_number(number)?, confirm })
    }

    /// Reports whether the step passed.
    pub fn passed(&mut self, passed: bool) {
        let Some((number, confirm)) = self.step.take() else { return };
        match (passed, confirm) {
            (true, true) => {}
            // Repeat the confirmation one resolution lower.
            (false, true) => {
                let lower = number - self.search.width().max(f64::MIN_POSITIVE);
                self.best = (lower >= self.low_end()).then_some(lower);
                self.step = self.best.map(|best| (best, true));
            }
            (true, false) => {
                // On the way down the first value that passes is the largest.
                let low = self.best.map_or(number, |best| best.max(number));
                (self.best, self.low) = (Some(low), low);
                self.advance(true);
            }
            (false, false) => {
                self.high = number;
                if self.best.is_some_and(|best| best >= number) {
                    // A value above it passed by chance.
                    (self.best, self.low) = (None, self.low_end());
                }
                self.advance(false);
            }
        }
    }

    /// Chooses the next value downwards, or the next middle.
    fn advance(&mut self, passed: bool) {
        if let Some((steps, in_a_row)) = self.descent.take()
            && let Some(step) = self.search.descent_step()
        {
            let (steps, in_a_row) = (steps + 1, if passed { in_a_row + 1 } else { 0 });
            let next = self.search.bounds().1 - f64::from(steps) * step;
            // A remainder of rounding is no step.
            if in_a_row < 2 && next >= self.low_end() + step * 1e-6 {
                self.descent = Some((steps, in_a_row));
                self.step = Some((next, false));
                return;
            }
        }
        self.halve();
    }

    /// The largest value that passed, confirmed if requested; `None` during the search, and if none passed.
    #[must_use]
    pub fn found(&self) -> Option<SettingValue> {
        if self.step.is_some() {
            return None;
        }
        self.search.high.with_number(self.best?)
    }

    fn low_end(&self) -> f64 {
        self.search.bounds().0
    }

    fn halve(&mut self) {
        let middle = self.low.midpoint(self.high);
        let whole = self.search.high.with_number(middle).and_then(|setting| setting.number());
        let ended = self.high - self.low <= self.search.width();
        self.step = match whole {
            // Neighbouring whole values have no middle.
            Some(whole) if !ended && whole > self.low && whole < self.high => Some((whole, false)),
            _ => self.best.filter(|_| self.search.confirm.is_some()).map(|best| (best, true)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Bitrate, Bytes};
    use proptest::prelude::*;

    fn search(low: SettingValue, high: SettingValue, resolution: f64, confirm: bool) -> Search {
        Search {
            name: "rate".to_owned(),
            targets: Vec::new(),
            low,
            high,
            resolution: Ratio::new(resolution).unwrap(),
            descend: None,
            confirm: confirm.then(|| Span::from_secs(60)),
            text: "loss == 0".to_owned(),
            pass: crate::assertion::read("loss == 0", &[]).unwrap(),
        }
    }

    fn rate(bps: f64) -> SettingValue {
        SettingValue::Rate(Bitrate::from_bps(bps).unwrap())
    }

    /// Runs a search on a device that loses nothing up to `limit`.
    fn carry_out(search: &Search, limit: f64) -> (Option<SettingValue>, u32) {
        let mut bisection = search.begin();
        let mut trials = 0;
        while let Some(step) = bisection.step() {
            trials += 1;
            assert!(trials < 200);
            bisection.passed(step.value.number().unwrap() <= limit);
        }
        (bisection.found(), trials)
    }

    /// RFC 2544 §26.1 on a device that carries 0.873 of the line: 0.87109375 after nine trials at a resolution
    /// of 0.005.
    #[test]
    fn the_worked_example_of_a_throughput_search() {
        let search = search(rate(0.0), rate(1e9), 0.005, false);
        assert_eq!(carry_out(&search, 0.873e9), (Some(rate(871_093_750.0)), 9));
        assert_eq!(search.trials(), 9);
        assert_eq!(carry_out(&search, 1e9), (Some(rate(1e9)), 1), "a device without limit passes at once");
        assert_eq!(carry_out(&search, -1.0).0, None, "nothing passes");
    }

    #[test]
    fn a_confirmation_that_fails_goes_one_resolution_down() {
        let search = search(rate(0.0), rate(1e9), 0.01, true);
        let mut bisection = search.begin();
        bisection.passed(true);
        assert_eq!(bisection.step(), Some(NextValue { value: rate(1e9), confirm: true }));
        assert_eq!(bisection.found(), None, "not before it is confirmed");
        bisection.passed(false);
        assert_eq!(bisection.step(), Some(NextValue { value: rate(0.99e9), confirm: true }));
        bisection.passed(true);
        assert_eq!((bisection.step(), bisection.found()), (None, Some(rate(0.99e9))));
    }

    /// RFC 2544 §26.3: from the largest load in steps of a tenth, until two in a row lose nothing; then §26.1
    /// between the last load with loss and the first without.
    #[test]
    fn a_descent_ends_after_two_that_pass_and_leaves_a_tenth_to_halve() {
        let search = Search { descend: Ratio::new(0.1), ..search(rate(0.0), rate(1e9), 0.05, true) };
        let mut bisection = search.begin();
        let mut tried = Vec::new();
        while let Some(step) = bisection.step() {
            tried.push((step.value.number().unwrap() / 1e7, step.confirm));
            bisection.passed(step.value.number().unwrap() <= 0.873e9);
        }
        // 80 is the first that passes, 70 the second; the middle of 80 and 90 leaves a range of 0.05.
        assert_eq!(
            tried,
            [(100.0, false), (90.0, false), (80.0, false), (70.0, false), (85.0, false), (85.0, true)]
        );
        assert_eq!(bisection.found(), Some(rate(0.85e9)));
        assert!(search.trials() >= 6, "{}", search.trials());
    }

    #[test]
    fn a_descent_without_loss_takes_two_trials_and_one_with_nothing_but_loss_ends_at_the_bottom() {
        let search = Search { descend: Ratio::new(0.25), ..search(rate(0.0), rate(1e9), 0.1, false) };
        assert_eq!(carry_out(&search, 1e9), (Some(rate(1e9)), 2));
        // 100, 75, 50 and 25 lose, and so do 12.5 and 6.25.
        assert_eq!(carry_out(&search, -1.0), (None, 6));
        assert_eq!(search.trials(), 7);
    }

    #[test]
    fn what_passed_above_a_loss_does_not_count() {
        let search = Search { descend: Ratio::new(0.25), ..search(rate(0.0), rate(1e9), 0.5, false) };
        let mut bisection = search.begin();
        // 100 loses, 75 passes by chance, 50 loses, 25 passes.
        [false, true, false, true].into_iter().for_each(|passed| bisection.passed(passed));
        assert_eq!((bisection.step(), bisection.found()), (None, Some(rate(0.25e9))));
    }

    proptest! {
        #[test]
        fn a_search_finds_the_limit_within_its_resolution(limit in 0_u64..1 << 20, percent in 0_u32..20) {
            let high = 1_u64 << 20;
            let search = search(
                SettingValue::Memory(Bytes::new(0)), SettingValue::Memory(Bytes::new(high)), f64::from(percent) / 100.0, false,
            );
            let (found, trials) = carry_out(&search, limit as f64);
            let found = found.and_then(|found| found.number()).unwrap_or(0.0);
            let width = (high as f64 * f64::from(percent) / 100.0).max(1.0);
            prop_assert!(found <= limit as f64 && limit as f64 - found <= width, "{found} of {limit}");
            prop_assert!(trials <= search.trials(), "{trials} of {}", search.trials());
        }
    }
}
