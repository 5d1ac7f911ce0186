//! The envelope of a described path: its ceilings, the resources that it needs, and how long to test it.
//!
//! [`envelope()`] is for one exact path. [`answers`] is for a path that is known only in ranges, and answers
//! further questions:
//!
//! ```
//! use linerate_model::Limit;
//! use linerate_theory::envelope::{Path, PathDescription, Questions, ValueRange, answers};
//! use linerate_units::{Bitrate, Bytes, Span};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = PathDescription {
//!     exact: Path { window_bytes: Some(65_535.0), ..Path::gigabit() },
//!     rtt: ValueRange::between(Span::from_ms(20), Span::from_ms(25)),
//!     ..PathDescription::of_link("1G".parse::<Bitrate>()?)
//! };
//! let questions = Questions { transfer: Some(Bytes::new(1_000_000_000)), ..Questions::default() };
//! for answer in answers(&path, &questions)? {
//!     // 65535 bytes each round trip: 26.2 Mb/s over 20 ms, and 21.0 Mb/s over 25 ms.
//!     assert_eq!(answer.envelope.binding.limit, Limit::ReceiverWindow);
//!     println!("{:?}, {:?}", answer.envelope.binding, answer.transfer);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod ceilings;
mod description;
mod hosts;
mod loss;
mod path;
mod questions;
mod range;

use linerate_model::Ceiling;
use serde::Serialize;

pub use self::answer::{BurstAnswer, EnvelopeAnswer, OfferedAnswer, TransferAnswer, answers};
pub use self::description::PathDescription;
pub use self::hosts::{Cpu, Hosts};
pub use self::loss::{LossBudget, LossModels};
pub use self::path::{Congestion, Path, PathError};
pub use self::questions::{
    Acknowledgements, ArrivingBurst, DeadlineAnswer, DistanceAnswer, LagAnswer, Questions, TargetAnswer,
    TransferDeadline,
};
pub use self::range::ValueRange;
use crate::bdp::LinuxBuffer;
use crate::framing::{self, Headers};
use crate::sender_error::length_for_bias_s;
use crate::slow_start::SlowStart;
use crate::{bdp, conversion, slow_start};

/// Room for bursts of acknowledgements beyond the bandwidth-delay product: two aggregated packets of 64 KiB,
/// bytes.
const AGGREGATION_BYTES: f64 = 131_072.0;
/// Initial window of current stacks, segments. Source: RFC 6928 §2.
const INITIAL_SEGMENTS: f64 = 10.0;
/// Relative bias with the suggested test length.
const MAX_BIAS: f64 = 0.01;

/// Sizes of one frame, and the frame rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frames {
    /// Payload of each packet, bytes.
    pub payload_bytes: f64,
    /// IP packet, bytes.
    pub packet_bytes: f64,
    /// Frame with FCS, bytes.
    pub frame_bytes: f64,
    /// Frame with preamble and gap, bytes.
    pub wire_bytes: f64,
    /// Frames per second at line rate.
    pub per_second: f64,
    /// Time from the start of one frame to the start of the next, s.
    pub interval_s: f64,
    /// Gap between two frames, s.
    pub gap_s: f64,
}

/// Rates of the full link by layer, bit/s.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRates {
    /// Wire: preamble and gap included.
    pub wire_bps: f64,
    /// Frames with FCS.
    pub frame_bps: f64,
    /// IP packets.
    pub packet_bps: f64,
    /// Payload: the goodput.
    pub payload_bps: f64,
}

/// Windows and buffers that each connection needs to fill the link, bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Needs {
    /// Bandwidth-delay product at the wire rate; in a LAG, that of one link.
    pub bdp_wire_bytes: f64,
    /// Bandwidth-delay product of the payload rate.
    pub bdp_payload_bytes: f64,
    /// Window of each connection: its share of the payload, with room for bursts of acknowledgements.
    pub window_bytes: f64,
    /// Window shift for it; absent if no TCP window is that large: use more streams.
    pub window_shift: Option<u8>,
    /// `tcp_rmem[2]` of the receiver: twice the window.
    pub rmem_bytes: f64,
    /// `tcp_wmem[2]` of the sender: twice the window.
    pub wmem_bytes: f64,
}

/// The start of each connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Startup {
    /// Round trips of slow start.
    pub rounds: f64,
    /// Its duration, s.
    pub duration_s: f64,
    /// Time at full rate that is lost, s.
    pub lost_s: f64,
    /// Time to omit, s.
    pub omit_s: f64,
    /// Test length at which it biases the result by 1 % if nothing is omitted, s.
    pub length_for_one_percent_s: f64,
}

/// All results for a described path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope {
    /// Every ceiling, ascending.
    pub ceilings: Vec<Ceiling>,
    /// The lowest ceiling.
    pub binding: Ceiling,
    /// The ceiling that binds after the lowest is remedied.
    pub after_remedy: Option<Ceiling>,
    /// Frames of the full link.
    pub frames: Frames,
    /// Rates of the full link.
    pub rates: LayerRates,
    /// Windows and buffers; absent for UDP, like the next three.
    pub needs: Option<Needs>,
    /// Slow start to the binding rate.
    pub startup: Option<Startup>,
    /// Tolerable loss and recovery at the full link.
    pub loss: Option<LossBudget>,
    /// Rate of each model at the described loss; absent without loss.
    pub loss_models: Option<LossModels>,
    /// The described path.
    pub path: Path,
}

/// Calculates the envelope of a path.
///
/// # Errors
/// The description is at fault: see [`PathError`].
///
/// # Source
/// RFC 6349 §3 and §4 (rates and windows), RFC 5681 and RFC 6928 (slow start), Mathis 1997 and RFC 9438 (loss).
pub fn envelope(path: &Path) -> Result<Envelope, PathError> {
    path::check(path)?;
    let headers = path.headers();
    let no_payload = PathError::Mtu { mtu_bytes: path.mtu_bytes, header_bytes: headers.total_bytes() };
    let frames = frames(path, &headers).ok_or(no_payload.clone())?;
    let rates = rates(path, &frames).ok_or(no_payload.clone())?;
    let ceilings = ceilings::ascending(path, &headers, &frames, &rates);
    let binding = crate::ceilings::binding(&ceilings).cloned().ok_or(no_payload)?;
    let after_remedy = crate::ceilings::after_remedy(&ceilings, &binding.limit).cloned();
    let tcp = !path.udp;
    Ok(Envelope {
        needs: tcp.then(|| needs(path, &rates)).flatten(),
        startup: tcp.then(|| startup(path, &frames, binding.bitrate_bps)).flatten(),
        loss: tcp.then(|| loss::budget(path, &frames, &rates)).flatten(),
        loss_models: path.loss.filter(|_| tcp).map(|ratio| loss::models(path, &frames, &rates, ratio)),
        ceilings,
        binding,
        after_remedy,
        frames,
        rates,
        path: path.clone(),
    })
}

/// Rate of all links that the connections can use together, bit/s of payload.
fn at_most_bps(path: &Path, rates: &LayerRates) -> f64 {
    rates.payload_bps * f64::from(path.streams.min(path.lag_links).max(1))
}

impl Envelope {
    /// Rate of the link, or of all links of a LAG that the connections can use.
    ///
    /// Units: bit/s of payload.
    #[must_use]
    pub fn at_most_bps(&self) -> f64 {
        at_most_bps(&self.path, &self.rates)
    }

    /// Windows, buffers and tolerable loss for a goodput of all connections together, whatever the link
    /// carries.
    ///
    /// Units: bit/s of payload. Domain: above 0; `None` for UDP. Source: as [`envelope`] for the full link.
    #[must_use]
    pub fn for_target(&self, goodput_bps: f64) -> Option<(Needs, LossBudget)> {
        let part = crate::domain::positive(goodput_bps)? / self.at_most_bps();
        if self.path.udp {
            return None;
        }
        let path = Path { link_bps: self.path.link_bps * part, ..self.path.clone() };
        let rates = rates(&path, &self.frames)?;
        Some((needs(&path, &rates)?, loss::budget(&path, &self.frames, &rates)?))
    }

    /// Duration of a transfer: slow start, then the binding rate.
    ///
    /// Units: s. Domain: bytes ≥ 0. Counts full round trips while slow start lasts; connection set-up is not
    /// counted.
    /// Source: RFC 5681 §3.1.
    #[must_use]
    pub fn transfer_time_s(&self, bytes: f64) -> Option<f64> {
        let at_rate = conversion::transfer_time_s(bytes, self.binding.bitrate_bps)?;
        let Some(startup) = &self.startup else { return Some(at_rate) };
        let growth = slow_start::GROWTH_PER_SEGMENT;
        let segments = bytes / self.frames.payload_bytes / f64::from(self.path.streams);
        let in_slow_start = slow_start::sent_segments(startup.rounds, INITIAL_SEGMENTS, growth)?;
        if segments <= in_slow_start {
            let rounds = (segments * (growth - 1.0) / INITIAL_SEGMENTS + 1.0).ln() / growth.ln();
            // The last round is not faster than the binding rate.
            return crate::domain::finite((rounds.ceil() * self.path.rtt_s).max(at_rate));
        }
        crate::domain::finite(startup.lost_s + at_rate)
    }
}

fn frames(path: &Path, headers: &Headers) -> Option<Frames> {
    let (packet_bytes, tags) = (path.packet_bytes(), f64::from(path.tags));
    let wire_bytes = framing::wire_bytes(packet_bytes, tags)?;
    let frame_bytes = framing::frame_bytes(packet_bytes, tags)?;
    Some(Frames {
        payload_bytes: framing::payload_bytes(packet_bytes, headers)?,
        packet_bytes,
        frame_bytes,
        wire_bytes,
        per_second: framing::frames_per_second(path.link_bps, wire_bytes)?,
        interval_s: framing::frame_interval_s(path.link_bps, frame_bytes)?,
        gap_s: framing::inter_packet_gap_s(path.link_bps)?,
    })
}

fn rates(path: &Path, frames: &Frames) -> Option<LayerRates> {
    let layer = |bytes: f64| framing::payload_rate_bps(path.link_bps, bytes, frames.wire_bytes);
    Some(LayerRates {
        wire_bps: path.link_bps,
        frame_bps: layer(frames.frame_bytes)?,
        packet_bps: layer(frames.packet_bytes)?,
        payload_bps: layer(frames.payload_bytes)?,
    })
}

fn needs(path: &Path, rates: &LayerRates) -> Option<Needs> {
    let bdp_payload_bytes = bdp::bdp_bytes(rates.payload_bps, path.rtt_s)?;
    let links = f64::from(path.streams.min(path.lag_links).max(1));
    let window_bytes = bdp_payload_bytes * links / f64::from(path.streams) + AGGREGATION_BYTES;
    Some(Needs {
        bdp_wire_bytes: bdp::bdp_bytes(path.link_bps, path.rtt_s)?,
        bdp_payload_bytes,
        window_bytes,
        window_shift: bdp::window_shift(window_bytes),
        rmem_bytes: LinuxBuffer::BUFFER_PER_WINDOW * window_bytes,
        wmem_bytes: LinuxBuffer::BUFFER_PER_WINDOW * window_bytes,
    })
}

fn startup(path: &Path, frames: &Frames, goodput_bps: f64) -> Option<Startup> {
    let start = SlowStart {
        rate_bps: goodput_bps / f64::from(path.streams),
        rtt_s: path.rtt_s,
        mss_bytes: frames.payload_bytes,
        initial_segments: INITIAL_SEGMENTS,
        growth: slow_start::GROWTH_PER_SEGMENT,
    };
    let window = bdp::window_segments(start.rate_bps, start.rtt_s, start.mss_bytes)?;
    let rounds = slow_start::rounds(window, INITIAL_SEGMENTS, start.growth)?.max(0.0);
    // Rounding up the last round can make the lost time negative: then nothing is lost.
    let lost_s = slow_start::lost_time_s(&start, rounds)?.max(0.0);
    Some(Startup {
        rounds,
        duration_s: rounds * path.rtt_s,
        lost_s,
        omit_s: slow_start::omit_s(rounds, path.rtt_s)?,
        length_for_one_percent_s: length_for_bias_s(lost_s, MAX_BIAS)?,
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::Limit;

    use super::*;
    use crate::encapsulation::Encapsulation;

    fn long_fat() -> Path {
        Path { rtt_s: 0.021, congestion: Congestion::Reno, ..Path::gigabit() }
    }

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-3, "got {got}, want {want}");
    }

    #[test]
    fn a_gigabit_over_21_ms_as_the_table_has_it() {
        let found = envelope(&long_fat()).unwrap();
        assert_eq!(found.binding.limit, Limit::Link);
        assert_eq!(found.binding.because, "1000BASE-T, MTU 1500, IPv4, TCP timestamps");
        close(found.rates.payload_bps, 941.482e6);
        close(found.rates.packet_bps, 975.293e6);
        close(found.frames.per_second, 81_274.38);
        let needs = found.needs.unwrap();
        close(needs.bdp_wire_bytes, 2_625_000.0);
        close(needs.bdp_payload_bytes, 2_471_391.4);
        assert_eq!(needs.window_shift, Some(6));
        let startup = found.startup.unwrap();
        assert_eq!(startup.rounds, 8.0);
        close(startup.lost_s, 0.136_625);
        close(startup.length_for_one_percent_s, 13.6625);
        let loss = found.loss.unwrap();
        close(loss.allowed, 5.1493e-7);
        close(loss.reno_recovery_s, 17.921);
        close(loss.cubic_recovery_s, 10.858);
    }

    #[test]
    fn a_target_needs_what_a_link_of_that_goodput_would() {
        let found = envelope(&Path { link_bps: 10e9, ..long_fat() }).unwrap();
        let (needs, loss) = found.for_target(found.rates.payload_bps / 10.0).unwrap();
        close(needs.bdp_payload_bytes, 2_471_391.4);
        close(needs.bdp_wire_bytes, 2_625_000.0);
        assert_eq!(needs.window_shift, Some(6));
        close(loss.allowed, 5.1493e-7);
        assert_eq!(found.for_target(0.0), None);
        assert_eq!(found.for_target(f64::NAN), None);
        let udp = envelope(&Path { udp: true, ..long_fat() }).unwrap();
        assert_eq!(udp.for_target(1e6), None);
    }

    #[test]
    fn window_loss_and_link_are_ceilings() {
        let path = Path { window_bytes: Some(65535.0), loss: Some(1e-6), ..long_fat() };
        let found = envelope(&path).unwrap();
        let limits: Vec<_> = found.ceilings.iter().map(|ceiling| ceiling.limit.clone()).collect();
        assert_eq!(limits, [Limit::ReceiverWindow, Limit::Loss, Limit::Link]);
        close(found.binding.bitrate_bps, 24.9657e6);
        close(found.after_remedy.unwrap().bitrate_bps, 675.593e6);
    }

    #[test]
    fn kernel_limits_are_ceilings_too() {
        // Half of 6 MiB at 50 ms; a send buffer counts in full.
        let path = Path { rtt_s: 0.05, rmem_max_bytes: Some(6_291_456.0), ..Path::gigabit() };
        close(envelope(&path).unwrap().binding.bitrate_bps, 503.316e6);
        let path = Path { rtt_s: 0.05, wmem_max_bytes: Some(4_194_304.0), ..Path::gigabit() };
        close(envelope(&path).unwrap().binding.bitrate_bps, 671.089e6);
    }

    #[test]
    fn streams_share_the_window() {
        let path = Path { window_bytes: Some(65535.0), streams: 4, ..long_fat() };
        close(envelope(&path).unwrap().binding.bitrate_bps, 4.0 * 24.9657e6);
    }

    #[test]
    fn datagrams_need_no_window() {
        let found = envelope(&Path { udp: true, window_bytes: Some(1.0), ..Path::gigabit() }).unwrap();
        close(found.rates.payload_bps, 957.087e6);
        assert!(found.needs.is_none() && found.startup.is_none() && found.loss.is_none());
        close(found.transfer_time_s(1e9).unwrap(), 8e9 / 957.087e6);
    }

    #[test]
    fn what_is_offered_is_a_rung_too() {
        let found = envelope(&Path { offered_bps: Some(100e6), ..long_fat() }).unwrap();
        assert_eq!((found.binding.limit, found.binding.bitrate_bps), (Limit::Application, 100e6));
        assert_eq!(found.after_remedy.unwrap().limit, Limit::Link);
        let found = envelope(&Path { udp: true, offered_bps: Some(1e9), ..Path::gigabit() }).unwrap();
        assert_eq!(found.binding.limit, Limit::Link, "more is offered than fits");
    }

    #[test]
    fn datagrams_are_as_large_as_their_length_says() {
        let sized = |length| Path { udp: true, datagram_bytes: Some(length), ..Path::gigabit() };
        let found = envelope(&sized(100.0)).unwrap();
        assert_eq!(found.binding.because, "1000BASE-T, packets of 128 bytes, IPv4, UDP");
        // 100 of 166 bytes on the wire: 128 for the packet, 18 for Ethernet, 20 for preamble and gap.
        close(found.rates.payload_bps, 1e9 * 100.0 / 166.0);
        assert_eq!(envelope(&sized(1472.0)).unwrap().frames.packet_bytes, 1500.0);
        let pieces = PathError::Fragments { datagram_bytes: 1473.0, packet_bytes: 1501.0, mtu_bytes: 1500.0 };
        assert_eq!(envelope(&sized(1473.0)).unwrap_err(), pieces);
    }

    #[test]
    fn loss_leaves_what_the_models_say() {
        let models = |path: Path| envelope(&path).unwrap().loss_models;
        let found = models(Path { loss: Some(1e-4), ..long_fat() }).unwrap();
        close(found.mathis_bps.unwrap(), 67.559e6);
        close(found.cubic_bps.unwrap(), 67.559e6);
        // Delayed acknowledgements cost a factor of the square root of two, timeouts a little more.
        let pftk = found.pftk_bps.unwrap();
        assert!((0.95..1.0).contains(&(pftk * 2.0_f64.sqrt() / 67.559e6)), "{pftk}");
        assert_eq!(models(long_fat()), None);
    }

    #[test]
    fn a_lag_is_in_every_figure() {
        let path = Path { streams: 8, lag_links: 4, ..long_fat() };
        let found = envelope(&path).unwrap();
        // 8 streams on 4 links use 1 - 0.75^8 of them.
        let share = 1.0 - 0.75_f64.powi(8);
        assert_eq!(found.binding.limit, Limit::Lag);
        close(found.binding.bitrate_bps, share * 4.0 * 941.482e6);
        close(found.after_remedy.as_ref().unwrap().bitrate_bps, 4.0 * 941.482e6);
        // Two connections share each link.
        close(found.needs.as_ref().unwrap().window_bytes, 2_471_391.4 / 2.0 + 131_072.0);
        let alone = envelope(&Path { streams: 1, ..path.clone() }).unwrap();
        assert_eq!(alone.binding.limit, Limit::Link);
        close(alone.binding.bitrate_bps, 941.482e6);
        // 1 TB takes correspondingly less time than over one link.
        assert!(found.transfer_time_s(1e12).unwrap() < alone.transfer_time_s(1e12).unwrap() / 3.5);
        assert_eq!(envelope(&Path { lag_links: 0, ..path }).unwrap_err(), PathError::Lag);
    }

    #[test]
    fn models_end_where_their_authors_say() {
        let lossy = |loss, congestion| Path { loss: Some(loss), congestion, ..long_fat() };
        let found = envelope(&lossy(0.1, Congestion::Cubic)).unwrap();
        let models = found.loss_models.unwrap();
        assert_eq!((models.mathis_bps, models.cubic_bps), (None, None));
        assert_eq!(found.binding.limit, Limit::Loss);
        close(found.binding.bitrate_bps, models.pftk_bps.unwrap());
        // BBR keeps sending; the lost packets reduce the rate.
        let found = envelope(&lossy(0.1, Congestion::Bbr)).unwrap();
        close(found.binding.bitrate_bps, 0.9 * 941.482e6);
        let beyond = envelope(&lossy(0.3, Congestion::Bbr)).unwrap_err();
        assert!(matches!(beyond, PathError::BeyondModel { .. }), "{beyond}");
        // A window of 0.1 segments.
        let slow = Path { link_bps: 1e5, rtt_s: 0.012, ..lossy(1e-3, Congestion::Reno) };
        assert!((envelope(&slow).unwrap().loss.unwrap().allowed - 0.02).abs() < 1e-12);
    }

    #[test]
    fn a_tunnel_takes_its_share() {
        let found = envelope(&Path { encapsulation: Encapsulation::Vxlan4, ..Path::gigabit() }).unwrap();
        close(found.rates.payload_bps, 908.973e6);
    }

    #[test]
    fn small_transfers_take_round_trips_and_large_ones_the_rate() {
        let found = envelope(&long_fat()).unwrap();
        // Ten segments leave at once, the next twenty after one round trip.
        close(found.transfer_time_s(14_480.0).unwrap(), 0.021);
        close(found.transfer_time_s(14_481.0).unwrap(), 0.042);
        close(found.transfer_time_s(1e12).unwrap(), 8e12 / 941.482e6 + 0.1366);
        assert_eq!(found.transfer_time_s(f64::NAN), None);
    }

    #[test]
    fn descriptions_at_fault_say_what_to_give() {
        let refuse = |path: Path| envelope(&path).unwrap_err();
        assert_eq!(refuse(Path { link_bps: 0.0, ..Path::gigabit() }), PathError::Link);
        assert_eq!(refuse(Path { rtt_s: f64::NAN, ..Path::gigabit() }), PathError::RoundTrip);
        assert_eq!(refuse(Path { loss: Some(1.0), ..Path::gigabit() }), PathError::Loss(1.0));
        assert_eq!(refuse(Path { streams: 0, ..Path::gigabit() }), PathError::Streams);
        assert_eq!(refuse(Path { window_bytes: Some(0.0), ..Path::gigabit() }), PathError::Buffer);
        assert_eq!(refuse(Path { offered_bps: Some(0.0), ..Path::gigabit() }), PathError::Offered);
        let small = refuse(Path { mtu_bytes: 40.0, ..Path::gigabit() });
        assert_eq!(
            small.to_string(),
            "an MTU of 40 leaves no payload after 52 bytes of headers; give a larger one"
        );
    }
}
