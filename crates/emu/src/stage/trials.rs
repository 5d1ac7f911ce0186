//! Independent trials, one per packet, drawn as the distance to the next success.

use linerate_units::Ratio;
use rand::Rng;
use rand::rngs::StdRng;

/// How many of a sequence of independent trials fail before the first success: at most `u64::MAX`, which also
/// means never.
///
/// # Source
/// inversion of the geometric distribution: floor(ln U / ln(1 - p)), U uniform over (0, 1]
pub(super) fn failures(probability: f64, rng: &mut StdRng) -> u64 {
    if probability >= 1.0 {
        return 0;
    }
    if probability <= 0.0 {
        return u64::MAX;
    }
    let uniform = 1.0 - rng.random::<f64>();
    (uniform.ln() / (-probability).ln_1p()) as u64
}

/// One trial per packet. A random number is drawn per success, not per packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trials {
    probability: f64,
    failures: u64,
}

impl Trials {
    pub(super) fn new(probability: Ratio, rng: &mut StdRng) -> Self {
        let probability = probability.get();
        Self { probability, failures: failures(probability, rng) }
    }

    /// Decides some of the next `rest` packets, at least one: how many, and whether they are successes.
    pub(super) fn next(&mut self, rest: u32, rng: &mut StdRng) -> (u32, bool) {
        if self.failures == 0 {
            self.failures = failures(self.probability, rng);
            return (1, true);
        }
        let failing = u32::try_from(self.failures).map_or(rest, |failures| failures.min(rest));
        self.failures -= u64::from(failing);
        (failing, false)
    }
}
