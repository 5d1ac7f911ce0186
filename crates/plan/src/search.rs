//! Searches at every point for the largest value that meets an assertion.

use linerate_units::{Ratio, Span};

use crate::assertion::Relation;
use crate::axis::AxisTarget;
use crate::kind::SettingValue;

/// The finest resolution of a search whose values are not whole numbers. Rates and shares are not known better.
pub(crate) const MIN_RESOLUTION: f64 = 1e-6;

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
    /// The smallest value. It is tried if no larger one passes, unless it is 0: a rate of 0 has no limit.
    pub low: SettingValue,
    /// The largest value, which is tried first.
    pub high: SettingValue,
    /// The search ends if the remaining range is at most this share of the largest value wide, or if it has no
    /// value in its middle.
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
        // The larger half of a range of whole values.
        let rounded = |width: f64| if self.high.is_whole() { width.ceil() } else { width };
        let mut width = high - low;
        let mut trials = 1;
        if let Some(step) = self.descent_step() {
            trials += (width / step).floor() as u32;
            width = rounded(step.min(width));
        }
        // Whole values can be halved 64 times, others until the resolution is reached.
        let mut halvings = 0;
        while width > self.width() && halvings < 64 {
            width = rounded(width / 2.0);
            halvings += 1;
        }
        trials + halvings + u32::from(self.tried(low).is_some()) + u32::from(self.confirm.is_some())
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
        (step > 0.0).then(|| step.max(self.smallest_difference()))
    }

    fn bounds(&self) -> (f64, f64) {
        (self.low.number().unwrap_or(0.0), self.high.number().unwrap_or(0.0))
    }

    /// Width of the range at which the search ends, and the step downwards after a confirmation that failed.
    fn width(&self) -> f64 {
        (self.bounds().1 * self.resolution.get()).max(self.smallest_difference())
    }

    /// Smallest difference between two values that are tried.
    fn smallest_difference(&self) -> f64 {
        if self.high.is_whole() { 1.0 } else { self.bounds().1 * MIN_RESOLUTION }
    }

    /// The number as it is set. `None` for 0, which is never tried: often it means no limit at all.
    fn tried(&self, number: f64) -> Option<f64> {
        self.high.with_number(number)?.number().filter(|number| *number > 0.0)
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
            // Repeat the confirmation one resolution lower, the last time at the smallest value.
            (false, true) => {
                let lower = (number - self.search.width()).max(self.low_end());
                // Very large values may have no value one resolution lower.
                self.best = self.search.tried(lower).filter(|lower| *lower < number);
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
            let next = self.search.tried(self.search.bounds().1 - f64::from(steps) * step);
            // A remainder of rounding is no step.
            let next = next.filter(|next| *next >= self.low_end() + step * 1e-6);
            if in_a_row < 2
                && let Some(next) = next
            {
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
        let ended = self.high - self.low <= self.search.width();
        let middle = self.search.tried(self.low.midpoint(self.high)).filter(|_| !ended);
        // Neighbouring whole values have no middle.
        let middle = middle.filter(|middle| *middle > self.low && *middle < self.high);
        self.step = match (middle, self.best) {
            (Some(middle), _) => Some((middle, false)),
            (None, Some(best)) => self.search.confirm.map(|_| (best, true)),
            // The range is narrow, but nothing is known of its lower end yet.
            (None, None) => {
                let low = self.search.tried(self.low_end()).filter(|low| *low < self.high);
                low.map(|low| (low, false))
            }
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
            let number = step.value.number().unwrap();
            assert!(number > 0.0, "0 is never tried");
            bisection.passed(number <= limit);
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
    fn a_confirmation_is_never_repeated_at_the_value_that_failed() {
        let memory = |bytes| SettingValue::Memory(Bytes::new(bytes));
        let largest = 1_u64 << 63;
        for (low, high, lower) in [
            (memory(0), memory(1 << 20), Some(memory((1 << 20) - 1))),
            (rate(0.0), rate(1e9), Some(rate(1e9 - 1e3))),
            // One byte less is the same number as a float.
            (memory(0), memory(largest), None),
        ] {
            let search = search(low, high, 0.0, true);
            let mut bisection = search.begin();
            [true, false].into_iter().for_each(|passed| bisection.passed(passed));
            assert_eq!(bisection.step().map(|step| step.value), lower);
            assert_eq!(bisection.found(), None);
        }
    }

    #[test]
    fn confirmations_that_all_fail_end_at_the_smallest_value_and_never_at_0() {
        let confirmed = |low: f64| -> Vec<f64> {
            let search = search(rate(low), rate(1e9), 0.5, true);
            let mut bisection = search.begin();
            bisection.passed(true);
            let values = std::iter::from_fn(|| {
                let step = bisection.step().filter(|step| step.confirm)?;
                bisection.passed(false);
                step.value.number()
            });
            let values = values.take(9).collect();
            assert_eq!((bisection.step(), bisection.found()), (None, None));
            values
        };
        assert_eq!(confirmed(0.0), [1e9, 0.5e9]);
        assert_eq!(confirmed(0.1e9), [1e9, 0.5e9, 0.1e9]);
    }

    /// RFC 2544 section 26.4 on a device whose buffer is smaller than the resolution: 1% of 20000 are 200 frames.
    #[test]
    fn the_lower_end_is_tried_before_nothing_passes() {
        let whole = SettingValue::Whole;
        for confirm in [false, true] {
            let search = search(whole(1), whole(20_000), 0.01, confirm);
            let (found, trials) = carry_out(&search, 150.0);
            assert_eq!((found, trials), (Some(whole(1)), 9 + u32::from(confirm)));
            assert_eq!(carry_out(&search, 0.0), (None, 9));
            assert_eq!(search.trials(), trials);
        }
        let descends = Search { descend: Ratio::new(0.5), ..search(whole(3), whole(10), 0.5, false) };
        // 10, 5 and 3.
        assert_eq!(carry_out(&descends, 4.0), (Some(whole(3)), 3));
        // 10, 8, 5 and 3; the step to 0.4 would be one to 0.
        let descends = Search { descend: Ratio::new(0.24), ..search(whole(0), whole(10), 0.01, false) };
        assert_eq!(carry_out(&descends, 0.0).0, None);
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
        fn a_search_finds_the_limit_within_its_resolution(
            low in 0_u64..100, range in 1_u64..1 << 20, limit in 0_u64..1 << 20, percent in 0_u32..20,
        ) {
            let (high, share) = (low + range, f64::from(percent) / 100.0);
            let memory = |bytes| SettingValue::Memory(Bytes::new(bytes));
            let search = search(memory(low), memory(high), share, false);
            let (found, trials) = carry_out(&search, limit as f64);
            let found = found.and_then(|found| found.number());
            let (limit, width) = (limit.min(high), (high as f64 * share).max(1.0));
            match found {
                Some(found) => {
                    prop_assert!(found <= limit as f64 && limit as f64 - found <= width, "{found} of {limit}");
                }
                // 0 is not tried.
                None if low == 0 => prop_assert!(limit as f64 <= width, "nothing of {limit}"),
                None => prop_assert!(limit < low, "nothing of {limit}"),
            }
            prop_assert!(trials <= search.trials(), "{trials} of {}", search.trials());
        }
    }
}
