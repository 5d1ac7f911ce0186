//! The theory's answer to the arguments, as one document.

use linerate_model::{CeilingShare, Limit};
use linerate_theory::envelope::{Envelope, Path, envelope};
use linerate_theory::{ceilings, conversion, queueing, slow_start};
use linerate_units::{Bitrate, Bytes};
use serde::Serialize;
use serde_json::Value;

use super::questions::{Acknowledgements, Distance, LagQuestion, Need, Target};
use super::{EnvelopeArgs, Fault};

/// Version of the JSON document.
const SCHEMA: &str = "linerate.envelope/2";
/// The envelope of the path, and the answers to further questions.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    schema: &'static str,
    /// The envelope; without a round-trip time, the parts that depend on it are absent.
    #[serde(flatten)]
    pub(super) envelope: Envelope,
    pub(super) transfer: Option<Transfer>,
    pub(super) offered: Option<Offered>,
    pub(super) burst: Option<Burst>,
    pub(super) need: Option<Need>,
    pub(super) target: Option<Target>,
    pub(super) lag: Option<LagQuestion>,
    pub(super) distance: Option<Distance>,
    /// For the reverse direction; absent for UDP.
    pub(super) acknowledgements: Option<Acknowledgements>,
    /// Whether the round-trip time was given.
    #[serde(skip)]
    pub(super) has_rtt: bool,
}

/// Transfer time of a number of bytes.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Transfer {
    pub(super) bytes: u64,
    /// At the full link rate, s. Source: RFC 6349 §4.1.1.
    pub(super) ideal_s: Option<f64>,
    /// With slow start, then at the binding rate, s; absent without a round-trip time.
    pub(super) expected_s: Option<f64>,
}

/// What the path carries of an offered rate.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Offered {
    /// Payload per second.
    pub(super) bitrate_bps: f64,
    /// Capacity of the path without the offered rate as a limit.
    pub(super) carried_bps: Option<f64>,
    /// Offered rate divided by that; absent if above 1.
    pub(super) share: Option<CeilingShare>,
    /// Share that is lost if the sender does not slow down, as with UDP.
    pub(super) excess_ratio: Option<f64>,
}

/// A burst that arrives at the link.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Burst {
    pub(super) bytes: u64,
    pub(super) arriving_bps: f64,
    /// Required buffer.
    pub(super) queue_bytes: Option<f64>,
    /// Longest queueing delay, s.
    pub(super) delay_s: Option<f64>,
}

impl Answer {
    /// Evaluates the theory.
    pub(super) fn to(args: &EnvelopeArgs, path: &Path) -> Result<Self, Fault> {
        let mut envelope = envelope(path)?;
        let has_rtt = args.rtt.is_some();
        if !has_rtt {
            (envelope.needs, envelope.startup, envelope.loss) = (None, None, None);
        }
        Ok(Self {
            schema: SCHEMA,
            transfer: args.transfer.map(|bytes| transfer(&envelope, bytes, has_rtt)),
            offered: args.offered.map(|rate| offered(&envelope, rate)),
            burst: args.burst.zip(args.burst_rate).map(|(bytes, rate)| burst(&envelope, bytes, rate)),
            need: args.need.and_then(|wanted| Need::of(&envelope, wanted, has_rtt)),
            target: args.target.and_then(|rate| Target::of(&envelope, rate)),
            lag: args.lag.and_then(|links| LagQuestion::of(&envelope, links)),
            distance: args.distance.and_then(|km| Distance::of(&envelope, km, has_rtt)),
            acknowledgements: Acknowledgements::of(&envelope),
            envelope,
            has_rtt,
        })
    }

    /// The JSON document; absent values are omitted.
    ///
    /// # Errors
    /// None is expected for a document of numbers and strings.
    pub(super) fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(self)?;
        if !self.has_rtt
            && let Some(path) = document.get_mut("path").and_then(Value::as_object_mut)
        {
            path.remove("rtt_s");
        }
        leave_out_nulls(&mut document);
        Ok(document)
    }
}

fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

fn transfer(envelope: &Envelope, bytes: Bytes, has_rtt: bool) -> Transfer {
    let count = bytes.get() as f64;
    Transfer {
        bytes: bytes.get(),
        ideal_s: conversion::transfer_time_s(count, envelope.at_most_bps()),
        expected_s: envelope.transfer_time_s(count).filter(|_| has_rtt),
    }
}

fn offered(envelope: &Envelope, rate: Bitrate) -> Offered {
    // The offered rate is a ceiling itself; compare it with the others.
    let next = ceilings::after_remedy(&envelope.ceilings, &Limit::Application);
    let carried_bps = next.map(|next| next.bitrate_bps);
    Offered {
        bitrate_bps: rate.bps(),
        carried_bps,
        share: next.and_then(|next| CeilingShare::of(rate, next)),
        excess_ratio: carried_bps.and_then(|carried| queueing::policer_loss(carried, rate.bps())),
    }
}

fn burst(envelope: &Envelope, bytes: Bytes, arriving: Bitrate) -> Burst {
    let link_bps = envelope.path.link_bps;
    let queue_bytes = slow_start::burst_queue_bytes(bytes.get() as f64, link_bps, arriving.bps());
    Burst {
        bytes: bytes.get(),
        arriving_bps: arriving.bps(),
        queue_bytes,
        delay_s: queue_bytes.and_then(|queue| queueing::shaper_delay_s(queue, link_bps)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::typed;
    use super::*;

    fn answer(line: &str) -> Answer {
        let args = typed(line);
        Answer::to(&args, &super::super::paths(&args)[0]).unwrap()
    }

    fn close(got: Option<f64>, want: f64) {
        let got = got.unwrap();
        assert!((got / want - 1.0).abs() < 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn without_a_round_trip_nothing_is_said_that_needs_one() {
        let found = answer("--link 1G --transfer 1M").document().unwrap();
        for absent in ["needs", "startup", "loss", "loss_models", "offered", "burst"] {
            assert!(found.get(absent).is_none(), "{absent}");
        }
        assert!(found["path"].get("rtt_s").is_none() && found["transfer"].get("expected_s").is_none());
        assert_eq!(found["schema"], "linerate.envelope/2");
    }

    #[test]
    fn a_transfer_takes_its_bytes_over_the_link_and_more_with_slow_start() {
        let transfer = answer("--link 1G --rtt 21ms --transfer 1GB").transfer.unwrap();
        // 8 Gbit at 941.482 Mb/s; slow start costs 0.1366 s.
        close(transfer.ideal_s, 8e9 / 941.482_445e6);
        close(transfer.expected_s, 8e9 / 941.482_445e6 + 0.136_625);
    }

    #[test]
    fn what_exceeds_the_link_is_lost() {
        let offered = answer("--link 1G -u --offered 1914.174M").offered.unwrap();
        // UDP carries 957.087 Mb/s, half of the offered rate.
        close(offered.excess_ratio, 0.5);
        assert_eq!(offered.share, None, "more than fits");
        let offered = answer("--link 1G -u --offered 95.7087M").offered.unwrap();
        assert_eq!(offered.excess_ratio, Some(0.0));
        close(offered.share.map(CeilingShare::get), 0.1);
    }

    #[test]
    fn a_burst_from_ten_times_the_rate_leaves_nine_tenths_of_it() {
        let burst = answer("--link 1G --burst 1000000 --burst-rate 10G").burst.unwrap();
        close(burst.queue_bytes, 900_000.0);
        close(burst.delay_s, 7.2e-3);
    }
}
