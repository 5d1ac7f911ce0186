//! A search at every point, for the largest value for which an assertion holds.

use linerate_units::{Ratio, Span};

use crate::assertion::Claim;
use crate::axis::Target;
use crate::kind::Setting;

/// An axis that is searched instead of swept.
///
/// # Source
/// RFC 2544 §26.1, with the binary search that RFC 2544 leaves open
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Its name.
    pub name: String,
    /// Everything that takes its value.
    pub targets: Vec<Target>,
    /// The least value.
    pub low: Setting,
    /// The largest value, which is tried first.
    pub high: Setting,
    /// The search ends when what is left is no wider than this share of the largest value.
    pub resolution: Ratio,
    /// Duration of a last trial at the value found.
    pub confirm: Option<Span>,
    /// The assertion that must hold for a value to pass, as written.
    pub text: String,
    /// The same, read.
    pub pass: Claim,
}

/// What to try next.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The value.
    pub value: Setting,
    /// True if it is the last trial, of the duration [`Search::confirm`].
    pub confirm: bool,
}

/// A search that goes on: ask for [`Bisection::step`], carry it out, tell whether it [`Bisection::passed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Bisection<'s> {
    search: &'s Search,
    low: f64,
    high: f64,
    /// The largest value that passed.
    best: Option<f64>,
    step: Option<(f64, bool)>,
}

impl Search {
    /// Trials that a search takes at most if every confirmation passes, the confirmation among them.
    #[must_use]
    pub fn trials(&self) -> u32 {
        let (low, high) = self.bounds();
        let mut width = high - low;
        let mut trials = 1;
        // Whole values can be halved 64 times, others until the resolution is reached.
        while width > self.width() && trials <= 64 {
            width /= 2.0;
            trials += 1;
        }
        trials + u32::from(self.confirm.is_some())
    }

    /// Begins a search, at the largest value.
    #[must_use]
    pub fn begin(&self) -> Bisection<'_> {
        let (low, high) = self.bounds();
        Bisection { search: self, low, high, best: None, step: Some((high, false)) }
    }

    fn bounds(&self) -> (f64, f64) {
        (self.low.number().unwrap_or(0.0), self.high.number().unwrap_or(0.0))
    }

    /// What is left when the search ends.
    fn width(&self) -> f64 {
        self.bounds().1 * self.resolution.get()
    }
}

impl Bisection<'_> {
    /// What to try next; absent when the search has ended.
    #[must_use]
    pub fn step(&self) -> Option<Step> {
        let (number, confirm) = self.step?;
        Some(Step { value: self.search.high.with_number(number)?, confirm })
    }

    /// Takes in whether the step passed.
    pub fn passed(&mut self, passed: bool) {
        let Some((number, confirm)) = self.step.take() else { return };
        match (passed, confirm) {
            (true, true) => {}
            // One resolution less, and again.
            (false, true) => {
                let lower = number - self.search.width().max(f64::MIN_POSITIVE);
                self.best = (lower >= self.low_end()).then_some(lower);
                self.step = self.best.map(|best| (best, true));
            }
            (true, false) => {
                self.best = Some(number);
                self.low = number;
                self.halve();
            }
            (false, false) => {
                self.high = number;
                self.halve();
            }
        }
    }

    /// The largest value that passed, confirmed if that was asked; absent while the search goes on, and if none passed.
    #[must_use]
    pub fn found(&self) -> Option<Setting> {
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
            // Whole values have no middle between neighbours.
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

    fn search(low: Setting, high: Setting, resolution: f64, confirm: bool) -> Search {
        Search {
            name: "rate".to_owned(),
            targets: Vec::new(),
            low,
            high,
            resolution: Ratio::new(resolution).unwrap(),
            confirm: confirm.then(|| Span::from_secs(60)),
            text: "loss == 0".to_owned(),
            pass: crate::assertion::read("loss == 0", &[]).unwrap(),
        }
    }

    fn rate(bps: f64) -> Setting {
        Setting::Rate(Bitrate::from_bps(bps).unwrap())
    }

    /// Carries a search out on a device that loses nothing up to `limit`.
    fn carry_out(search: &Search, limit: f64) -> (Option<Setting>, u32) {
        let mut bisection = search.begin();
        let mut trials = 0;
        while let Some(step) = bisection.step() {
            trials += 1;
            assert!(trials < 200);
            bisection.passed(step.value.number().unwrap() <= limit);
        }
        (bisection.found(), trials)
    }

    /// RFC 2544 §26.1 at a device that carries 0.873 of the line: 0.87109375 after nine trials at a resolution of 0.005.
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
        assert_eq!(bisection.step(), Some(Step { value: rate(1e9), confirm: true }));
        assert_eq!(bisection.found(), None, "not before it is confirmed");
        bisection.passed(false);
        assert_eq!(bisection.step(), Some(Step { value: rate(0.99e9), confirm: true }));
        bisection.passed(true);
        assert_eq!((bisection.step(), bisection.found()), (None, Some(rate(0.99e9))));
    }

    proptest! {
        #[test]
        fn a_search_finds_the_limit_within_its_resolution(limit in 0_u64..1 << 20, percent in 0_u32..20) {
            let high = 1_u64 << 20;
            let search = search(
                Setting::Memory(Bytes::new(0)), Setting::Memory(Bytes::new(high)), f64::from(percent) / 100.0, false,
            );
            let (found, trials) = carry_out(&search, limit as f64);
            let found = found.and_then(|found| found.number()).unwrap_or(0.0);
            let width = (high as f64 * f64::from(percent) / 100.0).max(1.0);
            prop_assert!(found <= limit as f64 && limit as f64 - found <= width, "{found} of {limit}");
            prop_assert!(trials <= search.trials(), "{trials} of {}", search.trials());
        }
    }
}
