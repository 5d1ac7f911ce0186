//! The recorded time series of a flow.

use linerate_model::metrics::{Sample, Side, loss, tcp};
use linerate_model::{Direction, FlowRecord, LatencyInterval, LatencyReport, Limit, RunRecord};
use linerate_units::{Bitrate, Span};

use super::{BufferInterval, BufferPath, LineRates, RttRange, StepInterval};

/// Smallest number of probes of an interval whose RTTs have a range.
const MIN_PROBES: u64 = 3;

/// The sender's series, including the omitted start, since a queue may stand there too. Intervals after the
/// measured part are left out.
#[must_use]
pub fn series(flow: &FlowRecord) -> Vec<BufferInterval> {
    let samples: Vec<&Sample> = flow.samples_of(Side::Sender).collect();
    let end = samples.iter().rposition(|sample| !sample.outside).map_or(0, |last| last + 1);
    let probes = flow.loaded.as_ref().map(|loaded| loaded.intervals.as_slice()).unwrap_or_default();
    let reading = |sample: &&Sample| {
        let acked = sample.readings.get(tcp::BYTES_ACKED)?;
        let arrived = || {
            let segments = sample.readings.get(tcp::DELIVERED)? as f64;
            let bytes = segments * sample.readings.get(tcp::SND_MSS)?.get() as f64;
            let rate = bytes * 8.0 / sample.span().as_secs_f64();
            rate.is_finite().then_some(rate)
        };
        Some(BufferInterval {
            span_s: sample.span().as_secs_f64(),
            goodput_bps: Bitrate::of(acked, sample.span())?.bps(),
            arrived_bps: arrived(),
            cwnd_bytes: sample.readings.get(tcp::CWND).map(|window| window.get() as f64),
            rtt_s: sample.readings.get(tcp::SRTT).map(Span::as_secs_f64),
            probe_rtt_s: probed(flow, probes, sample).map(|rtt| rtt.max_s),
            retransmits: sample.readings.get(tcp::RETRANSMITS).unwrap_or(0),
            omitted: sample.outside,
        })
    };
    samples[..end].iter().filter_map(reading).collect()
}

/// The RTTs of the probes that were sent during a sample.
///
/// A sample's time starts with the flow's first byte, that of probes with the run. The receiver's first read
/// links the two. It is late by a one-way delay, which does not matter, since the analysis covers several RTTs
/// before a drop.
fn probed(flow: &FlowRecord, probes: &[LatencyInterval], sample: &Sample) -> Option<RttRange> {
    let origin = flow.first_read?.as_ns();
    let (start, end) =
        (origin.saturating_add(sample.start_ns.as_ns()), origin.saturating_add(sample.end_ns.as_ns()));
    // The intervals are sorted by time.
    let first = probes.partition_point(|probe| probe.end_ns.as_ns() <= start);
    let within = probes.get(first..)?.iter().take_while(|probe| probe.start_ns.as_ns() < end);
    within
        .map(|probe| RttRange { min_s: probe.min_ns as f64 / 1e9, max_s: probe.high_ns as f64 / 1e9 })
        .reduce(|one, other| RttRange {
            min_s: one.min_s.min(other.min_s),
            max_s: one.max_s.max(other.max_s),
        })
}

/// The series of the UDP receiver and of the probes at the same time.
#[must_use]
pub fn looks(flow: &FlowRecord) -> Vec<StepInterval> {
    let samples: Vec<&Sample> = flow.samples_of(Side::Receiver).collect();
    let end = samples.iter().rposition(|sample| !sample.outside).map_or(0, |last| last + 1);
    let probes = flow.loaded.as_ref().map(|loaded| loaded.intervals.as_slice()).unwrap_or_default();
    // Fewer probes do not show how much they differ.
    let probes: Vec<LatencyInterval> =
        probes.iter().filter(|probe| probe.count >= MIN_PROBES).copied().collect();
    let look = |sample: &&Sample| StepInterval {
        at_s: (sample.start_ns.as_ns().midpoint(sample.end_ns.as_ns())) as f64 / 1e9,
        rtt: probed(flow, &probes, sample),
        lost: sample.readings.get(loss::LOST).unwrap_or(0),
    };
    samples[..end].iter().map(look).collect()
}

/// Delay that the load adds on the return path, s. The load does not fill that path, so this is the hosts' own
/// delay. 0 if one-way delays are unknown.
#[must_use]
pub fn hosts_delay_s(run: &RunRecord, flow: &FlowRecord) -> f64 {
    let back = |report: &LatencyReport| match flow.plan.direction {
        Direction::Upload => report.download,
        Direction::Download => report.upload,
    };
    let loaded = flow.loaded.as_ref().and_then(back);
    let idle = run.idle.as_ref().and_then(back);
    let more = loaded.zip(idle).map(|(loaded, idle)| loaded.p50_ns.saturating_sub(idle.p50_ns));
    more.map_or(0.0, |ns| ns as f64 / 1e9)
}

/// Rates of a flow's line: the stated rate, or that of the slower interface. `None` if no rate is known.
#[must_use]
pub fn line(run: &RunRecord, flow: &FlowRecord) -> Option<LineRates> {
    let stated = run.start.as_ref().and_then(|start| start.spec.host.link);
    let links = run.hosts.iter().filter_map(|host| host.link.as_ref()?.speed);
    let drain = stated.or_else(|| links.min_by(|one, other| one.bps().total_cmp(&other.bps())))?;
    let alone = flow.ceilings.iter().find(|ceiling| ceiling.limit == Limit::Link)?;
    Some(LineRates { drain_bps: drain.bps(), alone_bps: alone.bitrate_bps })
}

/// The path of a flow: its line, and the smallest RTT during or before the flow. `others_bps` is the rate of
/// other traffic on the line. `None` if no rate or no RTT is known.
#[must_use]
pub fn path(run: &RunRecord, flow: &FlowRecord, others_bps: f64) -> Option<BufferPath> {
    let LineRates { drain_bps, alone_bps } = line(run, flow)?;
    let smallest = flow.samples_of(Side::Sender).filter_map(|sample| sample.readings.get(tcp::MIN_RTT)).min();
    let idle = run.idle.as_ref().map(|idle| idle.rtt.min_ns as f64 / 1e9);
    // Half of the probes before the load met no queue. The smallest RTT may be an outlier.
    let probe_base_s = run.idle.as_ref().map(|idle| idle.rtt.p50_ns as f64 / 1e9);
    let base_rtt_s = smallest.map(Span::as_secs_f64).into_iter().chain(idle).min_by(f64::total_cmp)?;
    Some(BufferPath { drain_bps, alone_bps, others_bps, base_rtt_s, probe_base_s })
}

/// Goodput of a flow as a share of its line's ceiling.
#[must_use]
pub fn line_share(flow: &FlowRecord) -> Option<f64> {
    let alone = flow.ceilings.iter().find(|ceiling| ceiling.limit == Limit::Link)?;
    let share = flow.bitrate()?.bps() / alone.bitrate_bps;
    share.is_finite().then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::FlowId;
    use linerate_model::{
        Body, Ceiling, Digest, Event, FlowPlan, HostInfo, LinkInfo, LinkKind, ProbePhase, ProbeTransport,
        Readings, Transport,
    };
    use linerate_units::{Bytes, Timestamp};

    /// Probes with RTTs in ms, each for half a second of the run.
    fn probes() -> LatencyReport {
        let interval = |(at_ms, high_ms): (u64, u64)| LatencyInterval {
            start_ns: Timestamp::from_ns(at_ms * 1_000_000),
            end_ns: Timestamp::from_ns((at_ms + 500) * 1_000_000),
            count: 50,
            min_ns: 50_000_000,
            high_ns: high_ms * 1_000_000,
            max_ns: 900_000_000,
            ..LatencyInterval::default()
        };
        LatencyReport {
            phase: ProbePhase::Loaded,
            transport: ProbeTransport::Udp,
            sent: 300,
            lost: 0,
            rtt: Digest::default(),
            upload: None,
            download: None,
            offset_ns: None,
            offset_error_ns: None,
            kernel_timestamps: true,
            intervals: [(7_000, 99), (7_500, 51), (8_000, 61), (8_500, 80), (9_500, 71)]
                .map(interval)
                .to_vec(),
            histogram: Vec::new(),
        }
    }

    fn record() -> RunRecord {
        let plan = FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "".into(),
            to: "".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        };
        let link = |gigabits: f64| {
            let speed = Bitrate::from_bps(gigabits * 1e9);
            let link = LinkInfo {
                name: "".into(),
                kind: LinkKind::Tun,
                speed,
                full_duplex: None,
                mtu: 9000,
                driver: None,
                offloads: Vec::new(),
                gso_max_bytes: None,
                gro_max_bytes: None,
            };
            Body::Host { info: HostInfo { link: Some(link), ..HostInfo::default() } }
        };
        let sample = |number: u64, outside| {
            let mut readings = Readings::default();
            readings.put(tcp::BYTES_ACKED, Bytes::new(125_000_000));
            readings.put(tcp::CWND, Bytes::new(1_000_000 * number));
            readings.put(tcp::SRTT, Span::from_ms(50 + number));
            readings.put(tcp::MIN_RTT, Span::from_ms(50));
            readings.put(tcp::DELIVERED, 16_000 * number);
            readings.put(tcp::SND_MSS, Bytes::new(8948));
            let (start_ns, end_ns) = (
                Timestamp::from_ns(number * 1_000_000_000),
                Timestamp::from_ns((number + 1) * 1_000_000_000),
            );
            Body::Sample {
                flow: FlowId(0),
                sample: Sample { side: Side::Sender, start_ns, end_ns, outside, readings },
            }
        };
        let ceiling = Ceiling { limit: Limit::Link, bitrate_bps: 9.9e9, because: "".into(), slack_bps: 0.0 };
        let bodies = [
            link(40.0),
            link(10.0),
            Body::FlowPlanned(plan),
            sample(0, true),
            sample(1, false),
            sample(2, false),
            sample(3, true),
            Body::Progress {
                flow: FlowId(0),
                bytes: Bytes::new(1),
                elapsed: Span::from_ms(1),
                srtt: None,
                retransmits: None,
            },
            Body::Latency { flow: Some(FlowId(0)), report: probes() },
            Body::Ceilings { flow: FlowId(0), ceilings: vec![ceiling], ceiling: None },
        ];
        let event = |(number, body): (u64, Body)| {
            let host = u16::from(number == 1);
            // The receiver's first read was 7.5 s after the start of the run.
            let at = Timestamp::from_ns(7_501_000_000);
            Event { run: "r".into(), host, seq: number, at, body }
        };
        RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>())
    }

    #[test]
    fn the_senders_intervals_and_the_slower_line_are_taken() {
        let run = record();
        let series = series(&run.flows[0]);
        assert_eq!(series.len(), 3, "the omitted start is in, the tail is out");
        assert_eq!((series[0].goodput_bps, series[0].span_s), (1e9, 1.0));
        assert_eq!((series[2].cwnd_bytes, series[2].rtt_s), (Some(2e6), Some(0.052)));
        // 16,000 segments of 8948 bytes are 1.145 Gbit.
        assert_eq!(series[1].arrived_bps, Some(1_145_344_000.0));
        let probed: Vec<Option<f64>> = series.iter().map(|reading| reading.probe_rtt_s).collect();
        assert_eq!(probed, [Some(0.061), Some(0.080), Some(0.071)], "by the time of the run");
        let path = path(&run, &run.flows[0], 2e9).unwrap();
        assert_eq!(
            path,
            BufferPath {
                drain_bps: 10e9,
                alone_bps: 9.9e9,
                others_bps: 2e9,
                base_rtt_s: 0.05,
                probe_base_s: None
            }
        );
    }

    #[test]
    fn without_a_line_there_is_no_path() {
        let mut run = record();
        run.hosts.clear();
        assert_eq!(path(&run, &run.flows[0], 0.0), None);
        let mut run = record();
        run.flows[0].ceilings.clear();
        assert_eq!(path(&run, &run.flows[0], 0.0), None);
    }
}
