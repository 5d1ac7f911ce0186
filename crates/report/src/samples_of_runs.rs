//! Runs written by hand, for the tests of every format.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::metrics::{flow, host, port, tcp};
use linerate_model::{
    Body, ByteAccounting, Caveat, CaveatKind, Ceiling, Confidence, Contribution, DelayBucket, Digest,
    Direction, Effective, Event, EvidenceKey, Finding, FlowPlan, ForeignText, HostInfo, LatencyInterval,
    LatencyReport, Limit, LinkInfo, LinkKind, Outcome, PortSample, ProbePhase, ProbeTransport, Readings,
    Rule, RunStart, Sample, Side, SideSettings, SizeCurve, SizeFit, SizePoint, Steady, Sweep, Tally,
    TestSpec, TimeInterval, Transport, UdpTally, Uncertainty, UncertaintySource, World,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

/// What 1000BASE-T carries as TCP with timestamps at MTU 1500: 1448 of every 1538 bytes.
pub(crate) const GIGABIT: f64 = 1e9 * 1448.0 / 1538.0;

pub(crate) fn log(bodies: Vec<(u16, Body)>) -> Vec<Event> {
    let numbered = bodies.into_iter().zip(0_u64..).map(|((host, body), seq)| Event {
        run: "7f3a9c21".into(),
        host,
        seq,
        at: Timestamp::from_ns(seq * 1_000_000),
        body,
    });
    numbered.collect()
}

pub(crate) fn opening(spec: TestSpec) -> Vec<(u16, Body)> {
    let start = RunStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-21T10:00:00Z".into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: "server:5201".into(),
        spec,
    };
    let host = |name: &str, address: &str| HostInfo {
        name: name.into(),
        kernel: "Linux 6.1.0".into(),
        cpu: "Example CPU".into(),
        cores: 4,
        linerate: "0.1.0".into(),
        address: Some(address.into()),
        link: Some(LinkInfo {
            name: "eth0".into(),
            kind: LinkKind::Physical,
            speed: Bitrate::from_bps(1e9),
            full_duplex: Some(true),
            mtu: 1500,
            driver: None,
            offloads: Vec::new(),
            gso_max_bytes: None,
            gro_max_bytes: None,
        }),
        ..HostInfo::default()
    };
    vec![
        (0, Body::RunStarted(Box::new(start))),
        (0, Body::Host { info: host("laptop", "10.0.0.1") }),
        (1, Body::Host { info: host("server", "10.0.0.2") }),
    ]
}

pub(crate) fn planned(number: u16, direction: Direction, transport: Transport) -> (u16, Body) {
    let (from, to) = match direction {
        Direction::Upload => ("laptop", "server"),
        Direction::Download => ("server", "laptop"),
    };
    let plan = FlowPlan {
        flow: FlowId(number),
        name: direction.name().into(),
        from: from.into(),
        to: to.into(),
        transport,
        direction,
        streams: 1,
    };
    (0, Body::FlowPlanned(plan))
}

pub(crate) fn probes(flow: Option<FlowId>, p50_us: u64) -> (u16, Body) {
    let phase = if flow.is_some() { ProbePhase::Loaded } else { ProbePhase::Idle };
    let us = |n: u64| n * 1000;
    let rtt = Digest {
        count: 200,
        min_ns: us(p50_us / 2),
        mean_ns: us(p50_us),
        p50_ns: us(p50_us),
        p95_ns: us(p50_us * 2),
        p99_ns: us(p50_us * 3),
        max_ns: us(p50_us * 4),
    };
    let report = LatencyReport {
        phase,
        transport: ProbeTransport::Udp,
        sent: 200,
        lost: 0,
        rtt,
        upload: None,
        download: None,
        offset_ns: Some(-5),
        offset_error_ns: Some(us(p50_us / 4)),
        kernel_timestamps: true,
        intervals: if flow.is_some() { by_interval(us(p50_us), 3) } else { Vec::new() },
        histogram: distribution(us(p50_us)),
    };
    (0, Body::Latency { flow, report })
}

/// Round trips of this number of halves of a second.
pub(crate) fn by_interval(p50_ns: u64, count: u64) -> Vec<LatencyInterval> {
    let interval = |at: u64| LatencyInterval {
        start_ns: Timestamp::from_ns(at * 500_000_000),
        end_ns: Timestamp::from_ns((at + 1) * 500_000_000),
        count: 66,
        min_ns: p50_ns / 2,
        p50_ns: Some(p50_ns),
        high_ns: p50_ns * 2,
        max_ns: p50_ns * 4,
    };
    (0..count).map(interval).collect()
}

/// 200 probes with the quantiles of [`probes`]: the 100th took the median, the 190th twice as long.
fn distribution(p50_ns: u64) -> Vec<DelayBucket> {
    let buckets = [(p50_ns / 2, 50), (p50_ns, 60), (p50_ns * 2, 80), (p50_ns * 3, 8), (p50_ns * 4, 2)];
    buckets.map(|(up_to_ns, count)| DelayBucket { up_to_ns, count }).to_vec()
}

pub(crate) fn settings(flow: FlowId, side: Side) -> (u16, Body) {
    let settings = SideSettings {
        window: Some(Bytes::new(4 << 20)),
        snd_buf: Some(Bytes::new(8 << 20)),
        rcv_buf: Some(Bytes::new(6 << 20)),
        mss: Effective { asked: None, effective: Some(1448) },
        congestion: Effective { asked: Some("bbr".into()), effective: Some("cubic".into()) },
        length: Bytes::new(1 << 20),
        ..SideSettings::default()
    };
    (0, Body::FlowOpened { flow, side, settings })
}

/// One interval with `bytes` received or sent.
pub(crate) fn sample(number: u16, side: Side, from_ms: u64, to_ms: u64, bytes: u64) -> (u16, Body) {
    let mut readings = Readings::default();
    readings.put(flow::BYTES, Bytes::new(bytes));
    readings.put_some(flow::BITRATE, Bitrate::of(Bytes::new(bytes), Span::from_ms(to_ms - from_ms)));
    readings.put_some(host::BUSY, Ratio::new(from_ms as f64 / 10_000.0));
    if side == Side::Sender {
        readings.put(tcp::RETRANSMITS, from_ms / 100);
        readings.put(tcp::CWND, Bytes::new(to_ms * 1000));
        readings.put(tcp::SRTT, Span::from_ms(1 + from_ms / 500));
    }
    let instant = |ms| Timestamp::START + Span::from_ms(ms);
    let (start_ns, end_ns) = (instant(from_ms), instant(to_ms));
    (
        0,
        Body::Sample {
            flow: FlowId(number),
            sample: Sample { side, start_ns, end_ns, outside: false, readings },
        },
    )
}

pub(crate) fn progress(flow: FlowId, elapsed_ms: u64, bytes: u64, retransmits: u64) -> (u16, Body) {
    let body = Body::Progress {
        flow,
        bytes: Bytes::new(bytes),
        elapsed: Span::from_ms(elapsed_ms),
        srtt: Some(Span::from_ms(4)),
        retransmits: Some(retransmits),
    };
    (0, body)
}

/// A tally of 10 s at `bps`, after a first read of one segment.
pub(crate) fn tally(bps: f64) -> Tally {
    let bytes = Bytes::new((bps * 10.0 / 8.0) as u64 + 1448);
    Tally {
        bytes,
        first_read_bytes: Bytes::new(1448),
        total_bytes: bytes,
        elapsed: Span::from_secs(10),
        bitrate: Bitrate::from_bps(bps).unwrap(),
        cpu_seconds: 0.75,
        host_busy: Ratio::new(0.12),
        complete: true,
        ..Tally::default()
    }
}

pub(crate) fn ended(flow: FlowId, side: Side, tally: Tally) -> (u16, Body) {
    (0, Body::FlowEnded { flow, side, tally })
}

pub(crate) fn ceilings(flow: FlowId) -> (u16, Body) {
    let new = |limit: Limit, bitrate_bps, because: &str| Ceiling {
        limit,
        bitrate_bps,
        because: because.into(),
        slack_bps: 0.0,
    };
    let link = new(Limit::Link, GIGABIT, "1000BASE-T, MTU 1500, IPv4, TCP timestamps");
    let ceilings = vec![link.clone(), new(Limit::ReceiverWindow, 8e9, "6 MiB / 6 ms")];
    (0, Body::Ceilings { flow, ceilings, ceiling: Some(link) })
}

/// The uncertainty of a gigabit over ten seconds, mainly from the variation of its intervals.
pub(crate) fn uncertainty() -> Uncertainty {
    let part = |source, bps: f64, because: &str| Contribution {
        source,
        standard_bps: Bitrate::from_bps(bps).unwrap(),
        because: because.into(),
    };
    Uncertainty {
        expanded_bps: Bitrate::from_bps(380_000.0).unwrap(),
        overhead_bps: None,
        coverage: Ratio::new(0.95).unwrap(),
        coverage_factor: 2.1,
        main: UncertaintySource::Variation,
        contributions: vec![
            part(UncertaintySource::Variation, 170_000.0, "99 steady intervals in 10 batches"),
            part(UncertaintySource::WakeUp, 54_000.0, "threads wake up to 1.4 ms late"),
        ],
    }
}

pub(crate) fn finding(rule: Rule, text: &str) -> Finding {
    Finding {
        cause: rule.cause(),
        rule,
        confidence: Confidence::Confirmed,
        share_of_time: Some(0.98),
        text: text.into(),
        // Two of them are of no rule: keys of another version are printed like ours.
        evidence: BTreeMap::from([
            (EvidenceKey::CeilingBps, GIGABIT),
            (EvidenceKey::IntervalVariation, 0.004_21),
            (ForeignText::from("min_rtt_ns").into(), 210_000.0),
            (ForeignText::from("snd_wnd_bytes").into(), 3_145_728.0),
        ]),
        remedy: None,
    }
}

/// Download and upload over a full gigabit link.
pub(crate) fn tcp_run() -> Vec<Event> {
    let mut bodies = opening(TestSpec::default());
    bodies.push(probes(None, 210));
    for (number, direction, bps) in [(0, Direction::Download, 941.4e6), (1, Direction::Upload, 600e6)] {
        bodies.push(planned(number, direction, Transport::Tcp));
        bodies.extend([Side::Sender, Side::Receiver].map(|side| settings(FlowId(number), side)));
        bodies.extend(
            [(0, 500), (500, 1000), (1000, 1500)]
                .map(|(a, b)| sample(number, Side::Receiver, a, b, 58_837_500)),
        );
        bodies.push(probes(Some(FlowId(number)), 900));
        let sender = Tally { retransmits: Some(17), host_busy: Ratio::new(0.081), ..tally(bps) };
        bodies.push(ended(FlowId(number), Side::Sender, sender));
        bodies.push(ended(FlowId(number), Side::Receiver, tally(bps)));
        bodies.push(ceilings(FlowId(number)));
    }
    let link = finding(Rule::LinkFull, "The link is full: this is the maximum of 1000BASE-T at MTU 1500.");
    bodies.push((0, Body::Verdict { flow: FlowId(0), verdict: link, also: Vec::new() }));
    let window = Finding {
        remedy: Some("Raise net.ipv4.tcp_wmem or leave -w out.".into()),
        confidence: Confidence::Probable,
        ..finding(Rule::SendBuffer, "The send buffer holds less than the path.")
    };
    let also = vec![finding(Rule::Bufferbloat, "Latency rises under load.")];
    bodies.push((0, Body::Verdict { flow: FlowId(1), verdict: window, also }));
    let steady = Steady {
        ramp_ns: Span::from_ms(120),
        bitrate: Bitrate::from_bps(941.45e6).unwrap(),
        half_width: Ratio::new(0.003),
    };
    bodies.push((0, Body::Steady { flow: FlowId(0), steady }));
    let byte_accounting = ByteAccounting {
        written_bytes: Bytes::new(1_179_897_176),
        delivered_bytes: Bytes::new(1_176_751_448),
        never_sent_bytes: Bytes::new(3_145_728),
        unaccounted_bytes: Bytes::new(0),
    };
    bodies.push((0, Body::BytesAccounted { flow: FlowId(0), byte_accounting }));
    let caveat = Caveat {
        kind: CaveatKind::SettingIneffective,
        text: "bbr was asked for and the kernel has only cubic; load the module tcp_bbr".into(),
    };
    bodies.push((0, Body::Caveat { flow: Some(FlowId(1)), caveat }));
    bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
    log(bodies)
}

/// 10 000 datagrams, 25 of them lost and 15 duplicated.
pub(crate) fn udp_run() -> Vec<Event> {
    let mut spec = TestSpec::default();
    spec.traffic.udp = true;
    let mut bodies = opening(spec);
    bodies.push(planned(0, Direction::Upload, Transport::Udp));
    let (_, mut opened) = settings(FlowId(0), Side::Sender);
    if let Body::FlowOpened { settings, .. } = &mut opened {
        settings.length = Bytes::new(1448);
        settings.datagrams_per_call = Some(44);
        settings.tos = Effective { asked: Some(184), effective: Some(184) };
    }
    bodies.push((0, opened));
    let udp = |packets, lost, duplicates| UdpTally {
        packets,
        lost,
        duplicates,
        out_of_order: 3,
        jitter: Some(Span::from_ns(54_688)),
        send_errors: Some(0),
        ..UdpTally::default()
    };
    let receiver = Tally { udp: Some(udp(9_990, 25, 15)), ..tally(1e6) };
    bodies.push(ended(FlowId(0), Side::Sender, Tally { udp: Some(udp(10_000, 0, 0)), ..tally(1e6) }));
    bodies.push(ended(FlowId(0), Side::Receiver, receiver));
    bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
    log(bodies)
}

/// One interval of a port of 1 Gb/s that sends packets of 1500 bytes at `bps` on the wire.
pub(crate) fn port_sample(from_ms: u64, to_ms: u64, bps: f64) -> PortSample {
    let packets = (bps / 8.0 / 1538.0 * (to_ms - from_ms) as f64 / 1000.0) as u64;
    let mut readings = Readings::default();
    readings.put(port::PACKETS, packets);
    readings.put(port::BYTES, Bytes::new(packets * 1518));
    readings.put_some(port::RATE, Bitrate::from_bps(bps));
    readings.put(port::DROPPED, packets / 1000);
    readings.put(port::MARKED, 0);
    readings.put(port::QUEUE, Bytes::new((bps * 0.25e-3) as u64));
    readings.put(port::QUEUE_MAX, Bytes::new((bps * 0.5e-3) as u64));
    readings.put_some(port::BUSY, Ratio::new(bps / 1e9));
    let instant = |ms| Timestamp::START + Span::from_ms(ms);
    PortSample { start_ns: instant(from_ms), end_ns: instant(to_ms), outside: false, readings }
}

/// An upload in an emulated network: data through `s>b`, acknowledgements through `s>a`, nothing through `s>c`.
pub(crate) fn lab_run() -> Vec<Event> {
    let mut bodies = opening(TestSpec::default());
    if let Some((_, Body::RunStarted(start))) = bodies.first_mut() {
        start.world = World::Lab;
    }
    bodies.push(planned(0, Direction::Upload, Transport::Tcp));
    bodies.push(ended(FlowId(0), Side::Receiver, tally(941e6)));
    let mut seen = |port: &str, sample| {
        bodies.push((0, Body::Port { flows: vec![FlowId(0)], port: port.into(), sample }));
    };
    for (name, bps) in [("s>b", 1e9), ("s>a", 2e7), ("s>c", 0.0)] {
        seen(name, PortSample { outside: true, ..port_sample(1800, 2000, bps / 100.0) });
        for from_ms in (2000..4000).step_by(100) {
            seen(name, port_sample(from_ms, from_ms + 100, bps));
        }
    }
    bodies.push(ceilings(FlowId(0)));
    let caveat = Caveat { kind: CaveatKind::LabLate, text: "3 packets left late".into() };
    bodies.push((0, Body::Caveat { flow: Some(FlowId(0)), caveat }));
    bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
    log(bodies)
}

/// A run whose process was killed 2.5 s into its download.
pub(crate) fn killed_run() -> Vec<Event> {
    let mut bodies = opening(TestSpec::default());
    bodies.push(planned(0, Direction::Download, Transport::Tcp));
    bodies.push(planned(1, Direction::Upload, Transport::Tcp));
    bodies.extend(
        [(100, 1), (1000, 2), (2100, 2), (2500, 7)]
            .map(|(ms, retr)| progress(FlowId(0), ms, ms * 100_000, retr)),
    );
    log(bodies)
}

/// 1.2 Gb/s through a gigabit link.
pub(crate) fn impossible_run() -> Vec<Event> {
    let mut bodies = opening(TestSpec::default());
    bodies.push(planned(0, Direction::Download, Transport::Tcp));
    bodies.push(ended(FlowId(0), Side::Receiver, tally(1.2e9)));
    let steady = Steady { ramp_ns: Span::ZERO, bitrate: Bitrate::from_bps(1.2e9).unwrap(), half_width: None };
    bodies.push((0, Body::Steady { flow: FlowId(0), steady }));
    bodies.push(ceilings(FlowId(0)));
    bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
    log(bodies)
}

/// One size whose messages take 20 us plus 1 ns per byte.
pub(crate) fn size(bytes: u64, trials: u32) -> (u16, Body) {
    let median = Span::from_ns(20_000 + bytes);
    let interval = TimeInterval {
        low: Span::from_ns(19_000 + bytes),
        high: Span::from_ns(22_000 + bytes),
        coverage: Ratio::new(0.984_375).unwrap(),
    };
    let point = SizePoint {
        message_bytes: Bytes::new(bytes),
        trials: Some(trials),
        repeats: Some(500),
        best: interval.low,
        median: Some(median),
        interval: (trials >= 6).then_some(interval),
        bitrate: Bitrate::of(Bytes::new(bytes), median),
        buffered: false,
    };
    (0, Body::Size { flow: FlowId(0), point })
}

/// A series over message sizes; the test ended before the largest size was finished.
pub(crate) fn sweep_run() -> Vec<Event> {
    let sweep = Sweep::default();
    let mut bodies = opening(TestSpec::of_sweep(
        sweep,
        linerate_model::SocketKnobs::default(),
        linerate_model::HostKnobs::default(),
    ));
    let (host, mut plan) = planned(0, Direction::Upload, Transport::Tcp);
    if let Body::FlowPlanned(plan) = &mut plan {
        plan.name = "ping-pong".into();
    }
    bodies.push((host, plan));
    bodies.extend((0..8).map(|power| size(1 << (2 * power), 7)));
    bodies.push(size(1 << 16, 2));
    bodies.push(settings(FlowId(0), Side::Sender));
    let fit = SizeFit {
        startup: Span::from_ns(20_000),
        asymptotic: Bitrate::from_bps(8e9).unwrap(),
        half_performance_bytes: Bytes::new(20_000),
        largest_error: Ratio::new(0.01).unwrap(),
    };
    let curve = SizeCurve {
        smallest_bytes: Bytes::new(1),
        smallest_one_way: Span::from_ns(20_001),
        peak_bytes: Bytes::new(1 << 16),
        peak: Bitrate::of(Bytes::new(1 << 16), Span::from_ns(85_536)).unwrap(),
        saturation_bytes: Some(Bytes::new(1 << 16)),
        sustained: Bitrate::from_bps(8e9),
        fit: Some(fit),
    };
    bodies.push((0, Body::Curve { flow: FlowId(0), curve }));
    bodies.push((0, Body::RunEnded { outcome: Outcome::Completed, reason: None }));
    log(bodies)
}
