//! Model-based metrics according to RFC 8337: the loss-free run length that a path needs for a target rate.
//!
//! Not yet called: kept for tests according to this standard.

use crate::domain::{finite, not_negative, open_unit, positive};

/// Packets in flight at the target rate.
///
/// Units: packets. Domain: rate, RTT ≥ 0, an MTU larger than its headers. Source: RFC 8337 §5.
#[must_use]
pub fn target_window_packets(rate_bps: f64, rtt_s: f64, mtu_bytes: f64, header_bytes: f64) -> Option<f64> {
    let payload = positive(finite(mtu_bytes)? - not_negative(header_bytes)?)?;
    crate::bdp::window_segments(rate_bps, rtt_s, payload).map(f64::ceil)
}

/// Packets that must arrive between two losses.
///
/// Units: packets. Domain: window ≥ 0. Source: RFC 8337 §5.2 (reference model).
#[must_use]
pub fn target_run_length(window_packets: f64) -> Option<f64> {
    finite(3.0 * not_negative(window_packets)?.powi(2))
}

/// The two lines of a sequential probability ratio test on losses among n packets:
/// pass at `slope·n − pass`, fail at `slope·n + fail`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossTest {
    /// Distance of the passing line (h1), losses.
    pub pass: f64,
    /// Distance of the failing line (h2), losses.
    pub fail: f64,
    /// Slope of both lines, losses per packet.
    pub slope: f64,
}

/// Verdict of a [`LossTest`] so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossVerdict {
    /// The target is met.
    Pass,
    /// The target is missed.
    Fail,
    /// More packets are needed.
    Undecided,
}

impl LossTest {
    /// The test of one loss in `run_length` packets against four times that.
    ///
    /// `alpha` and `beta` are the two error probabilities. Domain: run length > 4, errors between 0 and 1 with
    /// a sum below 1.
    /// Source: Wald 1945, as used by RFC 8337 §7.2.
    #[must_use]
    pub fn new(run_length: f64, alpha: f64, beta: f64) -> Option<Self> {
        let run = finite(run_length).filter(|&length| length > 4.0)?;
        let (alpha, beta) = (open_unit(alpha)?, open_unit(beta)?);
        let (good, bad) = (1.0 / run, 4.0 / run);
        let scale = (bad * (1.0 - good) / (good * (1.0 - bad))).ln();
        Some(Self {
            pass: positive(((1.0 - alpha) / beta).ln() / scale)?,
            fail: positive(((1.0 - beta) / alpha).ln() / scale)?,
            slope: positive(((1.0 - good) / (1.0 - bad)).ln() / scale)?,
        })
    }

    /// Number of packets without loss after which the test passes.
    #[must_use]
    pub fn packets_to_pass(&self) -> Option<f64> {
        packets_to_pass(self.pass, self.slope)
    }

    /// The verdict for this count of losses.
    #[must_use]
    pub fn verdict(&self, packets: f64, losses: f64) -> LossVerdict {
        if losses <= self.slope * packets - self.pass {
            LossVerdict::Pass
        } else if losses >= self.slope * packets + self.fail {
            LossVerdict::Fail
        } else {
            LossVerdict::Undecided
        }
    }
}

/// Packets without loss at which a passing line starting at `−pass` with `slope` reaches zero.
///
/// Units: packets. Domain: pass ≥ 0, slope > 0. Source: Wald 1945.
#[must_use]
pub fn packets_to_pass(pass: f64, slope: f64) -> Option<f64> {
    finite((not_negative(pass)? / positive(slope)?).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_needs_a_run_of_363() {
        let window = target_window_packets(2.5e6, 0.05, 1500.0, 64.0).unwrap();
        assert_eq!(window, 11.0);
        assert_eq!(target_run_length(window), Some(363.0));
    }

    #[test]
    fn a_clean_path_passes_after_354_packets() {
        let test = LossTest::new(363.0, 0.05, 0.05).unwrap();
        assert_eq!(test.packets_to_pass(), Some(354.0));
        assert_eq!(test.verdict(353.0, 0.0), LossVerdict::Undecided);
        assert_eq!(test.verdict(354.0, 0.0), LossVerdict::Pass);
        assert_eq!(test.verdict(10.0, 3.0), LossVerdict::Fail);
    }

    #[test]
    fn a_run_too_short_for_four_times_its_loss_has_no_test() {
        assert!(LossTest::new(4.0, 0.05, 0.05).is_none());
        assert!(LossTest::new(363.0, 0.6, 0.6).is_none());
    }
}
