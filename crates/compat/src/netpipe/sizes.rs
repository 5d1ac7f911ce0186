//! The sizes of a series and the number of repeats: both ends must compute the same.

/// Most sizes of a series (the size of the original's result table).
const MAX_POINTS: u32 = 8_000;

/// Intended duration of a trial, in seconds.
const TRIAL_SECONDS: f64 = 0.10;

/// Fewest messages of a trial.
const MIN_REPEATS: f64 = 3.0;

/// The series ends with a message that takes this long, in seconds.
const MAX_SECONDS: f64 = 1.0;

/// The sequence of sizes: a base that grows by a step, which doubles every other time, and its neighbours.
#[derive(Debug, Clone)]
pub struct NetpipeSizes {
    upper: u64,
    perturbation: u64,
    base: u64,
    step: u64,
    round: u32,
    /// Remaining sizes of this round, the next one last.
    rest: Vec<u64>,
    points: u32,
}

impl NetpipeSizes {
    /// The series from `start` bytes until the base exceeds `upper`. Each base has neighbours at the distance
    /// `perturbation`, unless that is 0 or the step is too small for it.
    #[must_use]
    pub fn new(start: u64, upper: u64, perturbation: u64) -> Self {
        let start = start.max(1);
        let (step, round) = if start == 1 { (1, 0) } else { (start / 2, 1) };
        Self { upper, perturbation, base: start, step, round, rest: Vec::new(), points: 0 }
    }

    /// The step for the size that was returned last.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Limits the base from now on.
    pub fn limit(&mut self, upper: u64) {
        self.upper = self.upper.min(upper);
    }

    /// The next size; `last` is the time of the previous message, in seconds.
    pub fn next(&mut self, last: f64) -> Option<u64> {
        if self.rest.is_empty() {
            if self.points > 0 {
                self.base = self.base.saturating_add(self.step);
                self.round += 1;
            }
            if self.points >= MAX_POINTS || last >= MAX_SECONDS || self.base > self.upper {
                return None;
            }
            if self.round > 2 && self.round % 2 == 1 {
                self.step = self.step.saturating_mul(2);
            }
            self.rest = self.neighbours();
        }
        self.points += 1;
        self.rest.pop()
    }

    fn neighbours(&self) -> Vec<u64> {
        let (base, away) = (self.base, self.perturbation);
        if away > 0 && self.step > away + 1 {
            vec![base.saturating_add(away), base, base.saturating_sub(away).max(1)]
        } else {
            vec![base]
        }
    }
}

/// Number of messages of a trial, from the previous size (or the first), the present step, and the time of one
/// message of the previous size, in seconds.
#[must_use]
pub fn repeats(previous: u64, step: u64, last: f64) -> u32 {
    let (previous, step) = (previous as f64, step as f64);
    let growth = previous / (previous - step + 1.0).max(1.0);
    // A cast from a float saturates at the bounds of the integer.
    (TRIAL_SECONDS / (growth * last)).max(MIN_REPEATS) as u32
}
