//! Iterations until the mean is known well enough, with the formulas of netperf.

use super::options::{Iterations, Pair};

/// Two-sided quantiles of Student's t for 1 to 30 degrees of freedom, at 95 % and 99 %.
///
/// # Source
/// The tables of statistics books, with three decimals.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const T99: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
];

/// The mean and the spread of a quantity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct QuantityStatistics {
    count: f64,
    sum: f64,
    squares: f64,
}

impl QuantityStatistics {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }

    /// Width of the confidence interval as a share of the mean.
    fn width(&self, quantile: f64) -> f64 {
        let mean = self.mean();
        let variance = (self.squares / self.count - mean * mean).max(0.0);
        (2.0 * quantile * (variance / (self.count - 1.0)).sqrt() / mean).abs()
    }
}

/// What one iteration measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct NetperfIteration {
    /// Seconds.
    pub(super) elapsed: f64,
    pub(super) throughput: f64,
    /// CPU time, percent; -1 if it was not measured.
    pub(super) utilization: Pair<f64>,
    /// CPU time for each unit of data, microseconds; -1 if it was not measured.
    pub(super) demand: Pair<f64>,
}

/// What is known after all iterations so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct IterationStatistics {
    elapsed: QuantityStatistics,
    throughput: QuantityStatistics,
    utilization: Pair<QuantityStatistics>,
    demand: Pair<QuantityStatistics>,
}

/// Widths of confidence intervals, percent of the mean; -1 for none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Widths {
    pub(super) iterations: u32,
    pub(super) target: f64,
    pub(super) throughput: f64,
    pub(super) cpu: Pair<f64>,
}

impl Default for Widths {
    fn default() -> Self {
        Self { iterations: 1, target: -1.0, throughput: -1.0, cpu: Pair { local: -1.0, remote: -1.0 } }
    }
}

impl IterationStatistics {
    pub(super) fn add(&mut self, measured: &NetperfIteration) {
        self.elapsed.add(measured.elapsed);
        self.throughput.add(measured.throughput);
        self.utilization.local.add(measured.utilization.local);
        self.utilization.remote.add(measured.utilization.remote);
        self.demand.local.add(measured.demand.local);
        self.demand.remote.add(measured.demand.remote);
    }

    pub(super) fn iterations(&self) -> u32 {
        self.elapsed.count as u32
    }

    /// The means of all iterations.
    pub(super) fn means(&self) -> NetperfIteration {
        NetperfIteration {
            elapsed: self.elapsed.mean(),
            throughput: self.throughput.mean(),
            utilization: Pair {
                local: self.utilization.local.mean(),
                remote: self.utilization.remote.mean(),
            },
            demand: Pair { local: self.demand.local.mean(), remote: self.demand.remote.mean() },
        }
    }

    /// The widths; absent before the second iteration.
    pub(super) fn widths(&self, wanted: &Iterations) -> Option<Widths> {
        let freedom = self.iterations().checked_sub(2)? as usize;
        let table = if wanted.level == 95 { &T95 } else { &T99 };
        let quantile = table.get(freedom).copied().unwrap_or(table[table.len() - 1]);
        Some(Widths {
            iterations: self.iterations(),
            target: 100.0 * wanted.width,
            throughput: 100.0 * self.throughput.width(quantile),
            // A quantity that was not measured is -1 each time and so has no width.
            cpu: Pair {
                local: 100.0 * self.utilization.local.width(quantile),
                remote: 100.0 * self.utilization.remote.width(quantile),
            },
        })
    }

    /// Whether every interval is as narrow as wanted.
    pub(super) fn is_reached(&self, wanted: &Iterations) -> bool {
        self.widths(wanted).is_some_and(|widths| {
            let narrow = |width: f64| width <= widths.target;
            narrow(widths.throughput)
                && (wanted.result_only || narrow(widths.cpu.local) && narrow(widths.cpu.remote))
        })
    }

    /// Whether another iteration is needed.
    pub(super) fn needs_another(&self, wanted: &Iterations) -> bool {
        let done = self.iterations();
        done < wanted.least || (done < wanted.most && !self.is_reached(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rates: &[f64]) -> IterationStatistics {
        let mut confidence = IterationStatistics::default();
        for throughput in rates {
            let none = Pair { local: -1.0, remote: -1.0 };
            confidence.add(&NetperfIteration {
                elapsed: 2.0,
                throughput: *throughput,
                utilization: none,
                demand: none,
            });
        }
        confidence
    }

    const WANTED: Iterations = Iterations { least: 3, most: 5, level: 95, width: 0.05, result_only: false };

    #[test]
    fn the_width_follows_from_students_t() {
        // Mean 100, population variance 2/3, so 2 * 4.303 * sqrt(2/3 / 2) / 100 with 2 degrees of freedom.
        let widths = after(&[99.0, 100.0, 101.0]).widths(&WANTED).unwrap();
        let expected = 2.0 * 4.303 * (1.0_f64 / 3.0).sqrt();
        assert!((widths.throughput - expected).abs() < 1e-9, "{widths:?}");
        assert_eq!((widths.cpu.local, widths.target, widths.iterations), (0.0, 5.0, 3));
    }

    #[test]
    fn iterations_end_when_the_width_is_reached_or_the_most_are_done() {
        assert!(after(&[100.0, 100.0]).needs_another(&WANTED), "at least three");
        assert!(!after(&[99.0, 100.0, 101.0]).needs_another(&Iterations { width: 0.05, ..WANTED }));
        assert!(after(&[90.0, 100.0, 110.0]).needs_another(&WANTED));
        assert!(!after(&[90.0, 100.0, 110.0, 90.0, 110.0]).needs_another(&WANTED));
        assert!(!after(&[1.0]).needs_another(&Iterations::default()), "one is enough by default");
    }
}
