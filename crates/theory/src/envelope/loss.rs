//! The effect of loss on a connection over a described path.

use serde::Serialize;

use super::{Congestion, Frames, LayerRates, Path};
use crate::tcp_rate::{self, Pftk};
use crate::{bdp, queueing};

/// Pacing gain with which BBR probes. Source: BBR drafts.
pub(super) const BBR_GAIN: f64 = 1.25;
/// Smallest difference between Linux's retransmission timeout and the RTT, s. Source: `TCP_RTO_MIN`.
const TIMEOUT_BEYOND_RTT_S: f64 = 0.2;
/// Segments per acknowledgement. Source: RFC 5681 §4.2.
const SEGMENTS_PER_ACK: f64 = 2.0;

/// Loss from which timeouts dominate, which only Padhye's model includes. Source: Mathis 1997 §4, sound below
/// about 2 %.
pub(super) const MAX_LOSS_WITHOUT_TIMEOUTS: f64 = 0.02;

/// Loss that each connection tolerates at full rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossBudget {
    /// Loss events per packet at which the link can still be full. At most 0.02, except for BBR, because the
    /// models are not valid above.
    pub allowed: f64,
    /// Packets between two of them.
    pub packets_between: f64,
    /// Time to recover from one loss with Reno and no buffer, s.
    pub reno_recovery_s: f64,
    /// Time to recover with CUBIC, s.
    pub cubic_recovery_s: f64,
    /// Buffer at the bottleneck that keeps the link full through one back-off, bytes; absent for BBR.
    pub buffer_bytes: Option<f64>,
}

/// Rates of one connection under random loss, bit/s.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossModels {
    /// Mathis 1997, one acknowledgement per segment; absent above 2 %, where timeouts dominate.
    pub mathis_bps: Option<f64>,
    /// Padhye 1998: Reno with delayed acknowledgements, timeouts and the window.
    pub pftk_bps: Option<f64>,
    /// RFC 9438; absent above 2 % too.
    pub cubic_bps: Option<f64>,
}

impl LossModels {
    /// The rate of the described congestion control, bit/s; `None` if no model applies.
    pub(super) fn of(&self, congestion: Congestion) -> Option<f64> {
        match congestion {
            Congestion::Reno => self.mathis_bps.or(self.pftk_bps),
            // With timeouts CUBIC is no better than Reno.
            Congestion::Cubic => self.cubic_bps.or(self.pftk_bps),
            Congestion::Bbr => None,
        }
    }
}

/// Rate of each model for a connection at a loss ratio. Without a stated window, the window fills the link.
pub(super) fn models(path: &Path, frames: &Frames, rates: &LayerRates, loss: f64) -> LossModels {
    let (rtt_s, mss_bytes) = (path.rtt_s, frames.payload_bytes);
    let full = bdp::window_segments(rates.payload_bps, rtt_s, mss_bytes).map(|full| full.max(1.0));
    let window_segments = path.window_bytes.map(|window| (window / mss_bytes).max(1.0)).or(full);
    let pftk = |window_segments| {
        let rto_s = rtt_s + TIMEOUT_BEYOND_RTT_S;
        let reno = Pftk { mss_bytes, rtt_s, rto_s, segments_per_ack: SEGMENTS_PER_ACK, window_segments };
        tcp_rate::pftk_full_bps(&reno, loss)
    };
    let sound = loss <= MAX_LOSS_WITHOUT_TIMEOUTS;
    let mathis = || tcp_rate::mathis_bps(mss_bytes, rtt_s, loss);
    let cubic = || tcp_rate::cubic_bps(tcp_rate::CUBIC, mss_bytes, rtt_s, loss);
    LossModels {
        mathis_bps: if sound { mathis() } else { None },
        pftk_bps: window_segments.and_then(pftk),
        cubic_bps: if sound { cubic() } else { None },
    }
}

/// Loss that a connection tolerates at full link rate.
pub(super) fn budget(path: &Path, frames: &Frames, rates: &LayerRates) -> Option<LossBudget> {
    let rate = super::at_most_bps(path, rates) / f64::from(path.streams);
    let (rtt, mss) = (path.rtt_s, frames.payload_bytes);
    let (allowed, beta) = match path.congestion {
        Congestion::Reno => (tcp_rate::mathis_loss_for_rate(rate, rtt, mss), Some(0.5)),
        Congestion::Cubic => (tcp_rate::cubic_loss_for_rate(rate, rtt, mss), Some(tcp_rate::CUBIC.beta)),
        Congestion::Bbr => (tcp_rate::bbr_loss_tolerance(BBR_GAIN), None),
    };
    // With a window of a few segments the models would allow any loss, but timeouts dominate there.
    let most = if path.congestion == Congestion::Bbr { 1.0 } else { MAX_LOSS_WITHOUT_TIMEOUTS };
    let allowed = allowed?.min(most);
    Some(LossBudget {
        allowed,
        packets_between: 1.0 / allowed,
        reno_recovery_s: tcp_rate::reno_recovery_s(rate, rtt, mss)?,
        cubic_recovery_s: tcp_rate::cubic_recovery_s(tcp_rate::CUBIC, rate, rtt, mss)?,
        buffer_bytes: beta.and_then(|beta| queueing::buffer_for_backoff_bytes(path.link_bps, rtt, beta)),
    })
}
