//! Questions about a path besides its ceilings: transfers in a given time, LAGs, distances.

use linerate_model::Limit;
use linerate_units::{Bitrate, Bytes, Span};
use serde::Serialize;

use super::{Envelope, LossBudget, Needs};
use crate::{conversion, framing, host, lag, sender_error};

/// Segments acknowledged by each ACK. Source: RFC 5681 §4.2.
const SEGMENTS_PER_ACK: f64 = 2.0;
const SECONDS_PER_MINUTE: f64 = 60.0;

/// What to compute about a path besides its ceilings. By default, nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Questions {
    /// How long a transfer of this amount takes.
    pub transfer: Option<Bytes>,
    /// Which queue a burst causes before the link.
    pub burst: Option<ArrivingBurst>,
    /// Whether an amount can be transferred in a time.
    pub need: Option<TransferDeadline>,
    /// Which windows, buffers and loss a payload per second needs.
    pub target: Option<Bitrate>,
    /// How the streams use the links of the LAG.
    pub lag: bool,
    /// What a path of this length implies, km.
    pub distance_km: Option<f64>,
}

/// A burst that arrives at the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArrivingBurst {
    /// Its size.
    pub bytes: Bytes,
    /// The rate at which it arrives.
    pub rate: Bitrate,
}

/// An amount of data in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferDeadline {
    /// The amount.
    pub bytes: Bytes,
    /// The available time.
    pub within: Span,
}

/// Whether the path can transfer an amount in a time.
#[derive(Debug, PartialEq, Serialize)]
pub struct DeadlineAnswer {
    /// The amount.
    pub bytes: u64,
    /// Available time, s.
    pub within_s: f64,
    /// Required rate, bit/s.
    pub required_bps: f64,
    /// Transfer time, s; includes slow start if the round-trip time is known.
    pub takes_s: f64,
    /// Transfer time divided by the available time; it does not fit above 1.
    pub utilisation: f64,
    /// Whether the available time is enough.
    pub fits: bool,
    /// Seconds of each minute that it needs; impossible above 60.
    pub seconds_per_minute: f64,
}

impl DeadlineAnswer {
    pub(super) fn of(envelope: &Envelope, deadline: TransferDeadline, has_rtt: bool) -> Option<Self> {
        let (bytes, within_s) = (deadline.bytes.get() as f64, deadline.within.as_secs_f64());
        let at_rate = conversion::transfer_time_s(bytes, envelope.binding.bitrate_bps);
        let takes_s = envelope.transfer_time_s(bytes).filter(|_| has_rtt).or(at_rate)?;
        let utilisation = host::utilisation(takes_s, within_s)?;
        Some(Self {
            bytes: deadline.bytes.get(),
            within_s,
            required_bps: conversion::average_rate_bps(bytes, within_s)?,
            takes_s,
            utilisation,
            fits: utilisation <= 1.0,
            seconds_per_minute: utilisation * SECONDS_PER_MINUTE,
        })
    }
}

/// The requirements of a rate, and the loss that it tolerates.
#[derive(Debug, PartialEq, Serialize)]
pub struct TargetAnswer {
    /// Payload per second over all connections.
    pub bitrate_bps: f64,
    /// Whether the binding ceiling permits it.
    pub fits: bool,
    /// Windows and buffers.
    pub needs: Needs,
    /// Tolerable loss.
    pub loss: LossBudget,
}

impl TargetAnswer {
    pub(super) fn of(envelope: &Envelope, rate: Bitrate) -> Option<Self> {
        let (needs, loss) = envelope.for_target(rate.bps())?;
        let fits = rate.bps() <= envelope.binding.bitrate_bps;
        Some(Self { bitrate_bps: rate.bps(), fits, needs, loss })
    }
}

/// Effect of a LAG, whose member links are selected by a hash of each stream.
#[derive(Debug, PartialEq, Serialize)]
pub struct LagAnswer {
    /// Number of member links.
    pub links: u32,
    /// Capacity of all member links together, bit/s.
    pub all_bps: f64,
    /// Mean rate of the streams if nothing else limits them, bit/s.
    pub expected_bps: f64,
    /// Share of the member links that at least one stream uses.
    pub used_share: f64,
    /// Probability that no two streams share a member link.
    pub no_collision: Option<f64>,
    /// Probability that all streams share one.
    pub all_on_one: Option<f64>,
    /// Mean number of streams on the member link with the most; absent above 256.
    pub fullest: Option<f64>,
    /// Rate of the slowest stream there, bit/s.
    pub slowest_bps: Option<f64>,
    /// Mean number of streams until every member link has one.
    pub streams_for_all: Option<f64>,
}

impl LagAnswer {
    pub(super) fn of(envelope: &Envelope) -> Option<Self> {
        let (streams, links) = (envelope.path.streams, envelope.path.lag_links);
        let member_bps = envelope.rates.payload_bps;
        let used_share = lag::used_share(f64::from(streams), f64::from(links))?;
        let all_bps = member_bps * f64::from(links);
        // Other limits of the streams also apply over a LAG.
        let others = envelope.ceilings.iter().filter(|one| !matches!(one.limit, Limit::Link | Limit::Lag));
        let others = others.map(|one| one.bitrate_bps).reduce(f64::min);
        let expected_bps = others.map_or(used_share * all_bps, |other| other.min(used_share * all_bps));
        let fullest = lag::expected_largest_load(streams, links);
        Some(Self {
            links,
            all_bps,
            expected_bps,
            used_share,
            no_collision: lag::no_collision_probability(streams, links),
            all_on_one: lag::all_together_probability(f64::from(streams), f64::from(links)),
            fullest,
            slowest_bps: fullest.map(|load| member_bps / load.max(1.0)),
            streams_for_all: lag::flows_to_touch_all(links),
        })
    }
}

/// What a distance implies for the round-trip time and the rate.
#[derive(Debug, PartialEq, Serialize)]
pub struct DistanceAnswer {
    /// The distance.
    pub metres: f64,
    /// Shortest possible round-trip time in fibre, s.
    pub light_s: f64,
    /// Round-trip time divided by the shortest possible one; below 1 it is impossible.
    pub stretch: Option<f64>,
    /// The binding rate times the distance, bit·m/s, as in Internet2's Land Speed Record.
    pub land_speed_bit_m_per_s: Option<f64>,
}

impl DistanceAnswer {
    pub(super) fn of(envelope: &Envelope, kilometres: f64, has_rtt: bool) -> Option<Self> {
        let metres = kilometres * 1e3;
        let speed = sender_error::signal_speed_m_per_s(sender_error::FIBRE_INDEX)?;
        let stretch = sender_error::path_stretch(envelope.path.rtt_s, speed, metres);
        Some(Self {
            metres,
            light_s: sender_error::round_trip_floor_s(metres, speed)?,
            stretch: stretch.filter(|_| has_rtt),
            land_speed_bit_m_per_s: conversion::land_speed_bit_m_per_s(envelope.binding.bitrate_bps, metres),
        })
    }
}

/// Upper bound of the load of acknowledgements on the reverse direction at full link rate; kernels that merge
/// segments send fewer.
#[derive(Debug, PartialEq, Serialize)]
pub struct Acknowledgements {
    /// Their number per second.
    pub per_second: f64,
    /// On the wire of the reverse direction, bit/s.
    pub bitrate_bps: f64,
    /// Payload of each direction when both are full, bit/s.
    pub both_ways_bps: Option<f64>,
}

impl Acknowledgements {
    pub(super) fn of(envelope: &Envelope) -> Option<Self> {
        let path = &envelope.path;
        if path.udp {
            return None;
        }
        let ack = framing::ack_wire_bytes(&path.headers(), f64::from(path.tags))?;
        let per_second = host::acks_per_second(envelope.frames.per_second, SEGMENTS_PER_ACK)?;
        Some(Self {
            per_second,
            bitrate_bps: host::ack_rate_bps(per_second, ack)?,
            both_ways_bps: host::bidirectional_goodput_bps(
                path.link_bps,
                envelope.frames.payload_bytes,
                envelope.frames.wire_bytes,
                ack,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Path, envelope};
    use super::*;
    use crate::encapsulation::Encapsulation;

    fn long_fat() -> Path {
        Path { rtt_s: 0.021, ..Path::gigabit() }
    }

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn a_transfer_that_does_not_fit_takes_more_than_a_minute_of_each() {
        let gigabit = envelope(&Path::gigabit()).unwrap();
        let need = |bytes: u64, within: Span| {
            let deadline = TransferDeadline { bytes: Bytes::new(bytes), within };
            DeadlineAnswer::of(&gigabit, deadline, false).unwrap()
        };
        // 2 TB in 8 h are 555.6 Mb/s of 941.482.
        let found = need(2_000_000_000_000, Span::from_secs(8 * 3600));
        assert!(found.fits);
        close(found.required_bps, 555.5556e6);
        close(found.utilisation, 0.590086);
        close(found.seconds_per_minute, 35.4052);
        let found = need(235_370_611, Span::from_secs(1));
        assert!(!found.fits);
        close(found.seconds_per_minute, 120.0);
    }

    #[test]
    fn eight_streams_on_four_links_use_nine_tenths_of_them() {
        let lag = |path: Path| LagAnswer::of(&envelope(&path).unwrap()).unwrap();
        let found = lag(Path { streams: 8, lag_links: 4, ..Path::gigabit() });
        close(found.used_share, 0.899_887);
        close(found.expected_bps, 0.899_887 * 4.0 * 941.482_445e6);
        close(found.fullest.unwrap(), 3.538_086);
        close(found.slowest_bps.unwrap(), 941.482_445e6 / 3.538_086);
        close(found.streams_for_all.unwrap(), 8.3333);
        assert_eq!(found.no_collision, Some(0.0));
        let windowed = lag(Path { streams: 8, lag_links: 4, window_bytes: Some(65_535.0), ..long_fat() });
        close(windowed.expected_bps, 8.0 * 24.965_714e6);
    }

    #[test]
    fn a_distance_has_a_shortest_round_trip_and_a_land_speed() {
        let path = envelope(&long_fat()).unwrap();
        let found = DistanceAnswer::of(&path, 1000.0, true).unwrap();
        close(found.light_s, 9.7948e-3);
        close(found.stretch.unwrap(), 2.144);
        close(found.land_speed_bit_m_per_s.unwrap(), 941.482_445e6 * 1e6);
        assert_eq!(DistanceAnswer::of(&path, 1000.0, false).unwrap().stretch, None);
    }

    #[test]
    fn a_gigabit_has_forty_thousand_acknowledgements_a_second() {
        let found = Acknowledgements::of(&envelope(&Path::gigabit()).unwrap()).unwrap();
        close(found.per_second, 40_637.19);
        close(found.bitrate_bps, 29.2588e6);
        close(found.both_ways_bps.unwrap(), 941.482_445e6 * (1.0 - 0.028_427));
        let udp = envelope(&Path { udp: true, ..Path::gigabit() }).unwrap();
        assert_eq!(Acknowledgements::of(&udp), None);
    }

    #[test]
    fn acknowledgements_pass_the_tunnel_and_have_the_tags_of_the_link() {
        let path = Path { encapsulation: Encapsulation::Vxlan6, tags: 2, ..Path::gigabit() };
        let calculated = envelope(&path).unwrap();
        let found = Acknowledgements::of(&calculated).unwrap();
        // IPv4 and TCP with timestamps, the tunnel, Ethernet, two tags, preamble and gap.
        let ack = 52.0 + 70.0 + 18.0 + 8.0 + 20.0;
        close(found.bitrate_bps, found.per_second * ack * 8.0);
        let frames = &calculated.frames;
        close(found.both_ways_bps.unwrap(), 1e9 * frames.payload_bytes / (frames.wire_bytes + ack / 2.0));
    }
}
