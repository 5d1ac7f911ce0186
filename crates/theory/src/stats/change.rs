//! Whether and where a series of results changed.

/// Outcome of Pettitt's test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pettitt {
    /// Largest absolute sum of signs across a change point (K).
    pub statistic: f64,
    /// Index of the first value after the change.
    pub first_after: usize,
    /// The approximation 2·exp(−6K²/(n³+n²)). It exceeds 1 for small K, see [`Pettitt::p`].
    pub approximation: f64,
}

impl Pettitt {
    /// Probability of such a statistic in a series without change, at most 1.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.approximation.min(1.0)
    }
}

/// Pettitt's test for one change of level at an unknown position.
///
/// Domain: at least two values, finite; conservative for short series. Source: Pettitt 1979.
#[must_use]
pub fn pettitt(series: &[f64]) -> Option<Pettitt> {
    if series.len() < 2 || series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut across: i64 = 0;
    let mut best = (0_i64, 1_usize);
    for (index, &value) in series.iter().enumerate().take(series.len() - 1) {
        // Moving a value across the cut adds its signs against all others; those against earlier values cancel
        // their old contribution.
        across += series.iter().map(|&other| sign(other - value)).sum::<i64>();
        if across.abs() > best.0 {
            best = (across.abs(), index + 1);
        }
    }
    let (n, k) = (series.len() as f64, best.0 as f64);
    let approximation = 2.0 * (-6.0 * k * k / (n.powi(3) + n.powi(2))).exp();
    Some(Pettitt { statistic: k, first_after: best.1, approximation })
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is() {
        let series = [10.0, 10.0, 10.0, 10.0, 5.0, 5.0, 5.0];
        let found = pettitt(&series).unwrap();
        // Each of the 4·3 pairs across the step has the same sign.
        assert_eq!((found.statistic, found.first_after), (12.0, 4));
    }

    #[test]
    fn a_constant_series_has_not_changed() {
        let found = pettitt(&[7.0; 10]).unwrap();
        assert_eq!(found.statistic, 0.0);
        assert_eq!(found.p(), 1.0);
        assert_eq!(pettitt(&[1.0]), None);
        assert_eq!(pettitt(&[1.0, f64::INFINITY]), None);
    }
}
