//! TCP rate under loss, by congestion control.
//!
//! `loss` is the probability of a congestion event per packet: several drops within one round trip are one
//! event.

use crate::bdp::window_segments;
use crate::domain::{finite, not_negative, open_unit, positive};

/// Constant of the square-root law for periodic loss and an acknowledgement per segment, squared. Source:
/// Mathis et al., CCR 27(3), 1997.
const MATHIS_PER_SEGMENT: f64 = 1.5;

/// The square-root law: rate of a Reno-like flow under periodic loss.
///
/// Units: bit/s. Domain: MSS, RTT > 0, 0 < loss < 1 (sound below about 2 %, no timeouts). Source: Mathis et al.
/// 1997.
#[must_use]
pub fn mathis_bps(mss_bytes: f64, rtt_s: f64, loss: f64) -> Option<f64> {
    let per_round = 8.0 * positive(mss_bytes)? / positive(rtt_s)?;
    finite(per_round * (MATHIS_PER_SEGMENT / open_unit(loss)?).sqrt())
}

/// Highest loss at which a Reno-like flow fills a rate.
///
/// Units: probability. Domain: rate, RTT, MSS > 0. Source: Mathis et al. 1997, solved for the loss.
#[must_use]
pub fn mathis_loss_for_rate(rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> Option<f64> {
    let window = positive(window_segments(rate_bps, rtt_s, mss_bytes)?)?;
    finite(MATHIS_PER_SEGMENT / window.powi(2))
}

/// Parameters of the Padhye model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pftk {
    /// Payload of a segment, bytes.
    pub mss_bytes: f64,
    /// Round trip, s.
    pub rtt_s: f64,
    /// Retransmission timeout, s. Source: RFC 6298 §2.
    pub rto_s: f64,
    /// Segments that one acknowledgement covers: 1 or 2.
    pub segments_per_ack: f64,
    /// Largest window, segments.
    pub window_segments: f64,
}

/// The Padhye model in full, with timeouts and window limit.
///
/// Units: bit/s. Domain: all > 0, 0 < loss < 1; Reno, losses correlated within a round. Source: Padhye et al.,
/// SIGCOMM 1998.
#[must_use]
pub fn pftk_full_bps(path: &Pftk, loss: f64) -> Option<f64> {
    let (p, b) = (open_unit(loss)?, positive(path.segments_per_ack)?);
    let (rtt, rto) = (positive(path.rtt_s)?, not_negative(path.rto_s)?);
    let largest = positive(path.window_segments)?;
    let k = (2.0 + b) / (3.0 * b);
    let unlimited = k + (8.0 * (1.0 - p) / (3.0 * b * p) + k * k).sqrt();
    let backoff = 1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))));
    let window = unlimited.min(largest);
    let timeout_share = timeout_probability(p, window);
    let segments = (1.0 - p) / p + window + timeout_share / (1.0 - p);
    let rounds = if unlimited < largest {
        b / 2.0 * unlimited + 1.0
    } else {
        b / 8.0 * largest + (1.0 - p) / (p * largest) + 2.0
    };
    let elapsed = rtt * rounds + timeout_share * rto * backoff / (1.0 - p);
    finite(8.0 * positive(path.mss_bytes)? * segments / elapsed)
}

/// Probability that a loss in a window of `window` segments ends in a timeout (Q̂ of the paper).
fn timeout_probability(p: f64, window: f64) -> f64 {
    let kept = 1.0 - p;
    let three = 1.0 - kept.powi(3);
    let numerator = three * (1.0 + kept.powi(3) * (1.0 - kept.powf(window - 3.0)));
    (numerator / (1.0 - kept.powf(window))).min(1.0)
}

/// The two constants of CUBIC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cubic {
    /// Aggressiveness, segments per second cubed.
    pub c: f64,
    /// The window after a loss over the window before it.
    pub beta: f64,
}

/// CUBIC as standardised. Source: RFC 9438 §5.1.
pub const CUBIC: Cubic = Cubic { c: 0.4, beta: 0.7 };
/// The AIMD-friendly window's constant: √1.5. Source: RFC 9438 §4.3.
const AIMD_CONSTANT: f64 = 1.224_744_871_391_589;

/// Mean CUBIC window under periodic loss; in the AIMD-friendly region that of Reno.
///
/// Units: segments. Domain: RTT > 0, 0 < loss < 1, c > 0, 0 < β < 1; no timeouts. Source: RFC 9438 §5.1.
fn cubic_window_segments(cubic: Cubic, rtt_s: f64, loss: f64) -> Option<f64> {
    let (p, beta) = (open_unit(loss)?, open_unit(cubic.beta)?);
    let factor = (positive(cubic.c)? * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25);
    let own = factor * (positive(rtt_s)? / p).powf(0.75);
    finite(own.max(AIMD_CONSTANT / p.sqrt()))
}

/// Rate of a CUBIC flow under loss.
///
/// Units: bit/s. Domain: as `cubic_window_segments`, MSS > 0. Source: RFC 9438 §5.1.
#[must_use]
pub fn cubic_bps(cubic: Cubic, mss_bytes: f64, rtt_s: f64, loss: f64) -> Option<f64> {
    let window = cubic_window_segments(cubic, rtt_s, loss)?;
    finite(window * 8.0 * positive(mss_bytes)? / rtt_s)
}

/// Highest loss at which a CUBIC flow fills a rate.
///
/// The larger value of CUBIC's own and its AIMD-friendly region.
/// Units: probability. Domain: rate, RTT, MSS > 0. Source: RFC 9438 §5.1, Mathis et al. 1997.
#[must_use]
pub fn cubic_loss_for_rate(rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> Option<f64> {
    let window = positive(window_segments(rate_bps, rtt_s, mss_bytes)?)?;
    let factor = CUBIC.c * (3.0 + CUBIC.beta) / (4.0 * (1.0 - CUBIC.beta));
    let own = rtt_s * (factor.powf(0.25) / window).powf(4.0 / 3.0);
    Some(own.max(mathis_loss_for_rate(rate_bps, rtt_s, mss_bytes)?))
}

/// Time in which Reno grows back from half its window, without a buffer at the bottleneck.
///
/// Units: s. Domain: rate, RTT ≥ 0, MSS > 0. Source: RFC 5681 §3.1, one segment per round trip.
#[must_use]
pub fn reno_recovery_s(rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? * not_negative(rtt_s)?.powi(2) / (16.0 * positive(mss_bytes)?))
}

/// CUBIC's K: time to return to the window before the loss. It depends on the RTT only through the window.
///
/// Units: s. Domain: rate, RTT ≥ 0, MSS > 0. Source: RFC 9438 §4.2.
#[must_use]
pub fn cubic_recovery_s(cubic: Cubic, rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> Option<f64> {
    let window = window_segments(rate_bps, rtt_s, mss_bytes)?;
    finite(((1.0 - open_unit(cubic.beta)?) * window / positive(cubic.c)?).cbrt())
}

/// Highest loss at which BBRv1 keeps its rate.
///
/// Units: probability. Domain: gain > 1. Source: BBR drafts: probing at the gain covers what is lost.
#[must_use]
pub fn bbr_loss_tolerance(probe_gain: f64) -> Option<f64> {
    finite(probe_gain).filter(|&gain| gain > 1.0).map(|gain| 1.0 - 1.0 / gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Option<f64>, want: f64) {
        let got = got.unwrap();
        assert!((got - want).abs() <= want.abs() * 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn one_loss_in_ten_thousand_at_21_ms_leaves_67_megabits() {
        close(mathis_bps(1448.0, 0.021, 1e-4), 67.559e6);
        close(cubic_bps(CUBIC, 1448.0, 0.021, 1e-4), 67.559e6);
    }

    #[test]
    fn law_and_inverse_agree() {
        let loss = mathis_loss_for_rate(941e6, 0.021, 1448.0).unwrap();
        close(mathis_bps(1448.0, 0.021, loss), 941e6);
        let loss = cubic_loss_for_rate(9.9e9, 0.05, 1448.0).unwrap();
        close(cubic_bps(CUBIC, 1448.0, 0.05, loss), 9.9e9);
    }

    #[test]
    fn padhye_approaches_mathis_at_small_loss_and_obeys_its_window() {
        let mut path = Pftk {
            mss_bytes: 1448.0,
            rtt_s: 0.021,
            rto_s: 0.221,
            segments_per_ack: 1.0,
            window_segments: 1e9,
        };
        let padhye = pftk_full_bps(&path, 1e-7).unwrap();
        let mathis = mathis_bps(1448.0, 0.021, 1e-7).unwrap();
        assert!((padhye / mathis - 1.0).abs() < 0.01);
        path.window_segments = 45.0;
        path.segments_per_ack = 2.0;
        close(pftk_full_bps(&path, 1e-4), 23.4612e6);
    }

    #[test]
    fn recovery_times_of_the_table() {
        close(reno_recovery_s(941_482_444.733, 0.021, 1448.0), 17.921);
        close(cubic_recovery_s(CUBIC, 941_482_444.733, 0.021, 1448.0), 10.8579);
    }

    #[test]
    fn impossible_loss_has_no_rate() {
        for loss in [0.0, 1.0, -0.1, f64::NAN] {
            assert_eq!(mathis_bps(1448.0, 0.021, loss), None);
            assert_eq!(cubic_bps(CUBIC, 1448.0, 0.021, loss), None);
        }
        assert_eq!(bbr_loss_tolerance(1.0), None);
    }
}
