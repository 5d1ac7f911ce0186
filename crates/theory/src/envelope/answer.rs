//! The answers about a described path: its envelope and those to further questions.

use linerate_model::{CeilingShare, Limit};
use linerate_units::{Bitrate, Bytes};
use serde::Serialize;

use super::questions::{
    Acknowledgements, ArrivingBurst, DeadlineAnswer, DistanceAnswer, LagAnswer, Questions, TargetAnswer,
};
use super::{Envelope, Path, PathDescription, PathError, envelope};
use crate::{ceilings, conversion, queueing, slow_start};

/// The envelope of a path, and the answers to further questions. What was not asked, and what depends on an
/// unknown RTT, is absent.
#[derive(Debug, PartialEq, Serialize)]
pub struct EnvelopeAnswer {
    /// The envelope.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The time of a transfer.
    pub transfer: Option<TransferAnswer>,
    /// What the path carries of the offered rate; absent if it offers as much as fits.
    pub offered: Option<OfferedAnswer>,
    /// The queue of a burst.
    pub burst: Option<BurstAnswer>,
    /// Whether an amount can be transferred in a time.
    pub need: Option<DeadlineAnswer>,
    /// The requirements of a rate.
    pub target: Option<TargetAnswer>,
    /// The use of a LAG.
    pub lag: Option<LagAnswer>,
    /// What the length of the path implies.
    pub distance: Option<DistanceAnswer>,
    /// For the reverse direction; absent for UDP.
    pub acknowledgements: Option<Acknowledgements>,
    /// Whether the RTT is known. Otherwise that of the envelope's path means nothing.
    #[serde(skip)]
    pub has_rtt: bool,
}

/// Transfer time of a number of bytes.
#[derive(Debug, PartialEq, Serialize)]
pub struct TransferAnswer {
    /// The number of bytes.
    pub bytes: u64,
    /// At the full link rate, s. Source: RFC 6349 §4.1.1.
    pub ideal_s: Option<f64>,
    /// With slow start, then at the binding rate, s; absent without a round-trip time.
    pub expected_s: Option<f64>,
}

/// What the path carries of an offered rate.
#[derive(Debug, PartialEq, Serialize)]
pub struct OfferedAnswer {
    /// Payload per second.
    pub bitrate_bps: f64,
    /// Capacity of the path without the offered rate as a limit.
    pub carried_bps: Option<f64>,
    /// Offered rate divided by that; absent if above 1.
    pub share: Option<CeilingShare>,
    /// Share that is lost if the sender does not slow down, as with UDP.
    pub excess_ratio: Option<f64>,
}

/// The queue of a burst that arrives at the link.
#[derive(Debug, PartialEq, Serialize)]
pub struct BurstAnswer {
    /// Size of the burst.
    pub bytes: u64,
    /// Rate at which it arrives.
    pub arriving_bps: f64,
    /// Required buffer.
    pub queue_bytes: Option<f64>,
    /// Longest queueing delay, s.
    pub delay_s: Option<f64>,
}

/// The answer for a path; for one with ranges, an answer for each combination of their ends, starting with all
/// lower ends.
///
/// # Errors
/// The description is at fault: see [`PathError`].
///
/// # Source
/// As [`envelope`]; RFC 6349 §4.1.1 for transfers.
pub fn answers(path: &PathDescription, questions: &Questions) -> Result<Vec<EnvelopeAnswer>, PathError> {
    if path.rtt.is_none() && path.needs_rtt(questions) {
        return Err(PathError::UnknownRoundTrip);
    }
    path.corners().iter().map(|corner| answer(corner, path.rtt.is_some(), questions)).collect()
}

fn answer(path: &Path, has_rtt: bool, questions: &Questions) -> Result<EnvelopeAnswer, PathError> {
    let mut envelope = envelope(path)?;
    if !has_rtt {
        (envelope.needs, envelope.startup, envelope.loss) = (None, None, None);
    }
    let offered_rate = path.offered_bps.and_then(Bitrate::from_bps);
    Ok(EnvelopeAnswer {
        transfer: questions.transfer.map(|bytes| transfer(&envelope, bytes, has_rtt)),
        offered: offered_rate.map(|rate| offered(&envelope, rate)),
        burst: questions.burst.map(|arriving| burst(&envelope, arriving)),
        need: questions.need.and_then(|deadline| DeadlineAnswer::of(&envelope, deadline, has_rtt)),
        target: questions.target.and_then(|rate| TargetAnswer::of(&envelope, rate)),
        lag: if questions.lag { LagAnswer::of(&envelope) } else { None },
        distance: questions.distance_km.and_then(|km| DistanceAnswer::of(&envelope, km, has_rtt)),
        acknowledgements: Acknowledgements::of(&envelope),
        envelope,
        has_rtt,
    })
}

fn transfer(envelope: &Envelope, bytes: Bytes, has_rtt: bool) -> TransferAnswer {
    let count = bytes.get() as f64;
    TransferAnswer {
        bytes: bytes.get(),
        ideal_s: conversion::transfer_time_s(count, envelope.at_most_bps()),
        expected_s: envelope.transfer_time_s(count).filter(|_| has_rtt),
    }
}

fn offered(envelope: &Envelope, rate: Bitrate) -> OfferedAnswer {
    // The offered rate is a ceiling itself; compare it with the others.
    let next = ceilings::after_remedy(&envelope.ceilings, &Limit::Application);
    let carried_bps = next.map(|next| next.bitrate_bps);
    OfferedAnswer {
        bitrate_bps: rate.bps(),
        carried_bps,
        share: next.and_then(|next| CeilingShare::of(rate, next)),
        excess_ratio: carried_bps.and_then(|carried| queueing::policer_loss(carried, rate.bps())),
    }
}

fn burst(envelope: &Envelope, arriving: ArrivingBurst) -> BurstAnswer {
    let link_bps = envelope.path.link_bps;
    let (bytes, arriving_bps) = (arriving.bytes.get(), arriving.rate.bps());
    let queue_bytes = slow_start::burst_queue_bytes(bytes as f64, link_bps, arriving_bps);
    BurstAnswer {
        bytes,
        arriving_bps,
        queue_bytes,
        delay_s: queue_bytes.and_then(|queue| queueing::shaper_delay_s(queue, link_bps)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::{Ratio, Span};

    use super::*;

    fn gigabit() -> PathDescription {
        PathDescription::of_link("1G".parse::<Bitrate>().unwrap())
    }

    fn over(rtt: Span) -> PathDescription {
        PathDescription { rtt: Some(rtt.into()), ..gigabit() }
    }

    fn udp(offered_bps: f64) -> PathDescription {
        let exact = Path { udp: true, offered_bps: Some(offered_bps), ..Path::gigabit() };
        PathDescription { exact, ..gigabit() }
    }

    fn one(path: &PathDescription, questions: &Questions) -> EnvelopeAnswer {
        let mut all = answers(path, questions).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn close(got: Option<f64>, want: f64) {
        let got = got.unwrap();
        assert!((got / want - 1.0).abs() < 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn without_a_round_trip_nothing_is_reported_that_needs_one() {
        let questions = Questions {
            transfer: Some(Bytes::new(1_000_000)),
            distance_km: Some(1000.0),
            ..Questions::default()
        };
        let found = one(&gigabit(), &questions);
        let envelope = &found.envelope;
        assert!(envelope.needs.is_none() && envelope.startup.is_none() && envelope.loss.is_none());
        assert_eq!(found.transfer.unwrap().expected_s, None);
        assert_eq!(found.distance.unwrap().stretch, None);
        assert!(found.offered.is_none() && found.burst.is_none() && found.target.is_none());
    }

    #[test]
    fn what_needs_a_round_trip_is_refused_without_one() {
        let refused = |path: &PathDescription, questions: &Questions| {
            answers(path, questions) == Err(PathError::UnknownRoundTrip)
        };
        let nothing = Questions::default();
        let windowed = |udp| {
            let exact = Path { window_bytes: Some(65_535.0), udp, ..Path::gigabit() };
            PathDescription { exact, ..gigabit() }
        };
        assert!(refused(&windowed(false), &nothing));
        assert!(!refused(&windowed(true), &nothing), "datagrams have no window");
        assert!(!refused(&PathDescription { rtt: over(Span::from_ms(1)).rtt, ..windowed(false) }, &nothing));
        let lossy = PathDescription { loss: Some(Ratio::new(0.01).unwrap().into()), ..gigabit() };
        assert!(refused(&lossy, &nothing));
        let target = Questions { target: Bitrate::from_bps(5e8), ..nothing };
        assert!(refused(&gigabit(), &target) && !refused(&over(Span::from_ms(1)), &target));
    }

    #[test]
    fn a_transfer_takes_its_bytes_over_the_link_and_more_with_slow_start() {
        let questions = Questions { transfer: Some(Bytes::new(1_000_000_000)), ..Questions::default() };
        let transfer = one(&over(Span::from_ms(21)), &questions).transfer.unwrap();
        // 8 Gbit at 941.482 Mb/s; slow start costs 0.1366 s.
        close(transfer.ideal_s, 8e9 / 941.482_445e6);
        close(transfer.expected_s, 8e9 / 941.482_445e6 + 0.136_625);
    }

    #[test]
    fn what_exceeds_the_link_is_lost() {
        let offered = one(&udp(1914.174e6), &Questions::default()).offered.unwrap();
        // UDP carries 957.087 Mb/s, half of the offered rate.
        close(offered.excess_ratio, 0.5);
        assert_eq!(offered.share, None, "more than fits");
        let offered = one(&udp(95.7087e6), &Questions::default()).offered.unwrap();
        assert_eq!(offered.excess_ratio, Some(0.0));
        close(offered.share.map(CeilingShare::get), 0.1);
    }

    #[test]
    fn a_burst_from_ten_times_the_rate_leaves_nine_tenths_of_it() {
        let burst = ArrivingBurst { bytes: Bytes::new(1_000_000), rate: "10G".parse().unwrap() };
        let questions = Questions { burst: Some(burst), ..Questions::default() };
        let burst = one(&gigabit(), &questions).burst.unwrap();
        close(burst.queue_bytes, 900_000.0);
        close(burst.delay_s, 7.2e-3);
    }
}
