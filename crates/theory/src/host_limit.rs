//! Whether the hosts limited a run, according to their own calibration.

use linerate_model::{FlowRecord, HostInfo, RunRecord, SideSettings};
use linerate_units::{Bitrate, Ratio};

/// A host may be the limit from this share of its loopback rate. Loopback pays for both ends, and varies by 10
/// % from hour to hour.
pub const NEAR_LIMIT_SHARE: f64 = 0.9;

/// A host whose own limit is near.
#[derive(Debug, Clone, PartialEq)]
pub struct NearHostLimit {
    /// Name of the host.
    pub host: String,
    /// Its calibrated loopback rate in this mode.
    pub limit: Bitrate,
    /// The measured rate as a share of the limit, at most 1.
    pub share: Ratio,
    /// Name of a host without a known limit, which may be the lower one.
    pub unknown: Option<String>,
}

/// A host that carried more than its calibrated loopback rate, which is therefore no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Disproved {
    /// Name of the host.
    pub host: String,
    /// Its calibrated loopback rate in this mode.
    pub limit: Bitrate,
}

/// The host with the lowest valid limit, if the flow's rate is near that limit.
///
/// Units: ratio of bit rates. Domain: `None` if no host of the run has a calibration for this mode. Source: own
/// definition; RFC 2544 §6 requires the tester's own limit to be known before a result is attributed to the
/// network.
#[must_use]
pub fn limited(record: &RunRecord, flow: &FlowRecord) -> Option<NearHostLimit> {
    let rate = flow.bitrate()?;
    let limits = limits(record, flow);
    let (host, limit) = limits
        .iter()
        .filter_map(|(host, limit)| Some((host, limit.filter(|limit| rate <= *limit)?)))
        .min_by(|a, b| a.1.bps().total_cmp(&b.1.bps()))?;
    let share = Ratio::new(rate.bps() / limit.bps())?;
    // A limit that was exceeded counts as unknown.
    let stands = |limit: &Option<Bitrate>| limit.is_some_and(|limit| rate <= limit);
    let unknown = limits.iter().find(|(_, limit)| !stands(limit)).map(|(host, _)| host.name.clone());
    (share.get() >= NEAR_LIMIT_SHARE).then(|| NearHostLimit {
        host: host.name.to_string(),
        limit,
        share,
        unknown: unknown.map(Into::into),
    })
}

/// The hosts whose calibration this flow exceeded.
#[must_use]
pub fn disproved(record: &RunRecord, flow: &FlowRecord) -> Vec<Disproved> {
    let Some(rate) = flow.bitrate() else { return Vec::new() };
    let exceeded = |(host, limit): (&HostInfo, Option<Bitrate>)| {
        let limit = limit.filter(|limit| rate > *limit)?;
        Some(Disproved { host: host.name.to_string(), limit })
    };
    limits(record, flow).into_iter().filter_map(exceeded).collect()
}

/// Both ends, each with its calibrated loopback rate in the mode of the flow, if known.
fn limits<'a>(record: &'a RunRecord, flow: &FlowRecord) -> Vec<(&'a HostInfo, Option<Bitrate>)> {
    // If the sender is another program, its settings are unknown: then the receiver's block size decides.
    let Some(settings) = flow.sender_settings.as_ref().or(flow.receiver_settings.as_ref()) else {
        return Vec::new();
    };
    let (sender, receiver) = record.ends(flow);
    [sender, receiver].into_iter().flatten().map(|host| (host, limit(host, flow, settings))).collect()
}

fn limit(host: &HostInfo, flow: &FlowRecord, settings: &SideSettings) -> Option<Bitrate> {
    host.limits()?.loopback_limit(flow.plan.transport, flow.plan.streams, settings)
}

#[cfg(test)]
mod tests {
    use linerate_model::flow::FlowId;
    use linerate_model::{
        Body, Calibration, Direction, Event, FlowPlan, LoopbackRate, Side, Tally, Transport,
    };
    use linerate_units::{Bytes, Span, Timestamp};

    use super::*;

    fn rate(bps: f64) -> Bitrate {
        Bitrate::from_bps(bps).unwrap()
    }

    fn host(name: &str, limit_bps: f64) -> HostInfo {
        let loopback = LoopbackRate {
            transport: Transport::Tcp,
            streams: 1,
            method: None,
            length_bytes: Bytes::new(131_072),
            bitrate_bps: rate(limit_bps),
        };
        let calibration = Calibration { loopback: vec![loopback], ..Calibration::default() };
        HostInfo { name: name.into(), calibration: Some(Box::new(calibration)), ..HostInfo::default() }
    }

    /// An upload of 10 Gb/s between two hosts.
    fn run(hosts: [HostInfo; 2]) -> RunRecord {
        let plan = FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "a".into(),
            to: "b".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        };
        let tally = Tally { bitrate: rate(10e9), elapsed: Span::from_secs(1), ..Tally::default() };
        let settings = SideSettings { length: Bytes::new(131_072), ..SideSettings::default() };
        let [a, b] = hosts;
        let bodies = [
            (0, Body::Host { info: a }),
            (1, Body::Host { info: b }),
            (0, Body::FlowPlanned(plan)),
            (0, Body::FlowOpened { flow: FlowId(0), side: Side::Sender, settings }),
            (1, Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally }),
        ];
        let events: Vec<Event> = (0..)
            .zip(bodies)
            .map(|(seq, (host, body))| Event { run: "r".into(), host, seq, at: Timestamp::START, body })
            .collect();
        RunRecord::fold(&events)
    }

    fn found(hosts: [HostInfo; 2]) -> Option<NearHostLimit> {
        let record = run(hosts);
        limited(&record, record.flow(FlowId(0)).unwrap())
    }

    #[test]
    fn the_host_with_the_lowest_limit_is_named_when_the_rate_is_near_it() {
        let near = found([host("a", 40e9), host("b", 11e9)]).unwrap();
        assert_eq!((near.host.as_str(), near.limit), ("b", rate(11e9)));
        assert!((near.share.get() - 10.0 / 11.0).abs() < 1e-12);
        assert_eq!(found([host("a", 10.5e9), host("b", 11e9)]).unwrap().host, "a");
        assert_eq!(found([host("a", 40e9), host("b", 12e9)]), None, "0.83 of the lowest limit");
    }

    #[test]
    fn a_limit_that_was_exceeded_is_none_and_has_no_share() {
        // The flow had 10 Gb/s, which disproves the calibration of b, made while b was busy.
        let record = run([host("a", 10.5e9), host("b", 4e9)]);
        let flow = record.flow(FlowId(0)).unwrap();
        assert_eq!(disproved(&record, flow), [Disproved { host: "b".into(), limit: rate(4e9) }]);
        let near = limited(&record, flow).unwrap();
        assert_eq!((near.host.as_str(), near.unknown.as_deref()), ("a", Some("b")));
        assert_eq!(found([host("a", 9e9), host("b", 4e9)]), None);
    }

    #[test]
    fn a_host_that_is_not_calibrated_or_has_changed_is_never_the_limit() {
        let unknown = HostInfo { name: "b".into(), ..HostInfo::default() };
        assert_eq!(found([host("a", 40e9), unknown]), None);
        let changed = HostInfo { kernel: "newer".into(), ..host("b", 11e9) };
        assert_eq!(found([host("a", 40e9), changed]), None);
    }
}
