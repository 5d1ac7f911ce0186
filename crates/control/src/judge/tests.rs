use linerate_model::flow::FlowId;
use linerate_model::metrics::flow::{BITRATE, BYTES, CALLS, LAST_DATA};
use linerate_model::metrics::queue::RCV_HELD;
use linerate_model::{
    Direction, Event, FlowPlan, HostInfo, InterfaceCounts, KernelCounts, LinkInfo, LinkKind, QdiscCounts,
    Readings, Rule, RunStart, Sample, Tally, TestSpec, Transport, UdpTally, World,
};
use linerate_units::{Bytes, Timestamp};
use proptest::prelude::*;

use super::*;

const TICK_MS: u64 = 100;

/// The record of an upload received at these rates, in intervals of 100 ms except the last one of `last_ms`.
fn received(spec: &TestSpec, rates: &[f64], last_ms: u64) -> RunRecord {
    let (mut at, mut total) = (0, 0);
    let mut samples = Vec::new();
    for (number, bps) in rates.iter().enumerate() {
        let span = Span::from_ms(if number + 1 == rates.len() { last_ms } else { TICK_MS });
        let bytes = Bytes::new((bps * span.as_secs_f64() / 8.0).round() as u64);
        let mut readings = Readings::default();
        readings.put(BYTES, bytes);
        readings.put_some(BITRATE, Bitrate::of(bytes, span));
        let (start_ns, end_ns) = (Timestamp::from_ns(at), Timestamp::from_ns(at + span.as_ns()));
        samples.push(Sample { side: Side::Receiver, start_ns, end_ns, outside: false, readings });
        at += span.as_ns();
        total += bytes.get();
    }
    let (bytes, elapsed) = (Bytes::new(total), Span::from_ns(at));
    let bitrate = Bitrate::of(bytes, elapsed).unwrap_or_default();
    record(spec, samples, Tally { bytes, elapsed, bitrate, ..Tally::default() })
}

/// The record of an upload with these samples and counts of the receiver.
fn record(spec: &TestSpec, samples: Vec<Sample>, tally: Tally) -> RunRecord {
    let plan = FlowPlan {
        flow: FlowId(0),
        name: "upload".into(),
        from: "a".into(),
        to: "b".into(),
        transport: Transport::Tcp,
        direction: Direction::Upload,
        streams: 1,
    };
    let start = RunStart {
        schema: linerate_model::EVENT_SCHEMA.into(),
        linerate: "".into(),
        started_at: "".into(),
        world: World::Hosts,
        target: "b".into(),
        spec: spec.clone(),
    };
    let mut bodies = vec![Body::RunStarted(Box::new(start)), Body::FlowPlanned(plan)];
    bodies.extend(samples.into_iter().map(|sample| Body::Sample { flow: FlowId(0), sample }));
    bodies.push(Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally });
    let event = |(seq, body)| Event { run: "r".into(), host: 1, seq, at: Timestamp::START, body };
    let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
    RunRecord::fold(&events)
}

/// The record of an upload that is read in steps: `read_bytes` every `gap_ns` from the time 0 on, but not in
/// `silence_ns`, with intervals that end at `ticks_ns`.
fn read_in_steps(
    read_bytes: u64,
    gap_ns: u64,
    silence_ns: std::ops::Range<u64>,
    ticks_ns: &[u64],
) -> RunRecord {
    let end = ticks_ns.last().copied().unwrap();
    // What arrives in the silence is read after it.
    let reads: Vec<(u64, u64)> = (0..=end / gap_ns)
        .map(|number| number * gap_ns)
        .map(|at| if silence_ns.contains(&at) { (silence_ns.end, read_bytes) } else { (at, read_bytes) })
        .collect();
    let until = |tick| reads.iter().filter(move |(at, _)| *at <= tick);
    let mut samples = Vec::new();
    let mut start = 0;
    for tick in ticks_ns.iter().copied() {
        let count = |tick| until(tick).map(|(_, bytes)| bytes).sum::<u64>();
        let before = if start == 0 { 0 } else { count(start) };
        let bytes = Bytes::new(count(tick) - before);
        let mut readings = Readings::default();
        readings.put(BYTES, bytes);
        readings.put_some(BITRATE, Bitrate::of(bytes, Span::from_ns(tick - start)));
        let last = until(tick).map(|(at, _)| *at).max().unwrap();
        readings.put(LAST_DATA, Span::from_ns(tick - last));
        let (start_ns, end_ns) = (Timestamp::from_ns(start), Timestamp::from_ns(tick));
        samples.push(Sample { side: Side::Receiver, start_ns, end_ns, outside: false, readings });
        start = tick;
    }
    let bytes = Bytes::new(until(end).map(|(_, bytes)| bytes).sum());
    let elapsed = Span::from_ns(until(end).map(|(at, _)| *at).max().unwrap());
    let first_read_bytes = Bytes::new(read_bytes);
    let bitrate = Bitrate::of(Bytes::new(bytes.get() - read_bytes), elapsed).unwrap();
    record(
        &TestSpec::default(),
        samples,
        Tally { bytes, first_read_bytes, elapsed, bitrate, ..Tally::default() },
    )
}

/// Rates that vary slightly, with those of `slow` at the beginning.
fn rates(count: usize, slow: &[f64]) -> Vec<f64> {
    let mut rates: Vec<f64> = (0..count).map(|i| 941.5e6 + (i % 3) as f64 * 1e5).collect();
    rates[..slow.len()].copy_from_slice(slow);
    rates
}

fn half_width(record: &RunRecord) -> f64 {
    uncertainty::uncertainty(record, record.flow(FlowId(0)).unwrap()).unwrap().expanded_bps.bps()
}

#[test]
fn the_interval_holds_the_path_and_does_not_hang_on_the_number_of_samples() {
    let of = |count, last_ms| received(&TestSpec::default(), &rates(count, &[805e6]), last_ms);
    for count in 95..106 {
        for last_ms in [100, 60, 3] {
            let record = of(count, last_ms);
            let (printed, half) =
                (record.flow(FlowId(0)).unwrap().bitrate().unwrap().bps(), half_width(&record));
            assert!((printed - 941.6e6).abs() <= half, "{count}: {printed} +- {half}");
            assert!(half < 4e6, "{count}: one interval of a hundred is 136 Mb/s slower, not +- {half}");
        }
    }
}

/// Two guests of one host exceed the rate that both of their cards report.
#[test]
fn only_a_rate_that_the_user_or_a_real_card_states_makes_a_test_impossible() {
    let rule = |kind, given| {
        let mut spec = TestSpec::default();
        spec.host.link = given;
        let mut record = received(&spec, &rates(50, &[]), TICK_MS);
        let link = LinkInfo {
            name: "eth0".into(),
            kind,
            speed: Bitrate::from_bps(5e8),
            full_duplex: Some(true),
            mtu: 1500,
            driver: None,
            offloads: Vec::new(),
            gso_max_bytes: None,
            gro_max_bytes: None,
        };
        record.hosts = vec![HostInfo { link: Some(link), ..HostInfo::default() }; 2];
        diagnose(&evidence(&record, FlowId(0)).unwrap()).primary.rule
    };
    assert_eq!(rule(LinkKind::Physical, None), Rule::Impossible);
    assert_ne!(rule(LinkKind::Paravirtual, None), Rule::Impossible);
    assert_eq!(rule(LinkKind::Paravirtual, Bitrate::from_bps(6e8)), Rule::Impossible);
    assert_ne!(rule(LinkKind::Paravirtual, Bitrate::from_bps(1e9)), Rule::Impossible);
}

#[test]
fn a_start_of_one_slow_interval_is_no_part_of_the_steady_rate() {
    let record = received(&TestSpec::default(), &rates(50, &[805e6]), 40);
    let steady = steady(record.flow(FlowId(0)).unwrap()).unwrap();
    assert_eq!(steady.ramp_ns, Span::from_ms(TICK_MS));
    assert!((steady.bitrate.bps() - 941.6e6).abs() < 1e5, "{steady:?}");
}

proptest! {
    /// Reads of four segments are 0.25 % of ten seconds at 2 Mb/s, and several per cent of an interval.
    #[test]
    fn intervals_of_a_steady_rate_are_equal_wherever_they_end_between_two_reads(
        read_bytes in 1448..65_000_u64,
        gap_ns in 20_000..30_000_000_u64,
        late_ns in proptest::collection::vec(0..40_000_000_u64, 20),
        silence_ns in 0..2_000_000_000_u64,
    ) {
        let ticks: Vec<u64> = (1..).zip(late_ns).map(|(number, late)| number * 100_000_000 + late).collect();
        let steady_bps = read_bytes as f64 * 8e9 / gap_ns as f64;
        let found = read_in_steps(read_bytes, gap_ns, 0..0, &ticks);
        let (rates, lengths) = received_from(found.flow(FlowId(0)).unwrap(), 0);
        prop_assert!(rates.iter().all(|rate| (rate / steady_bps - 1.0).abs() < 1e-9), "{rates:?} {steady_bps}");
        let elapsed_s = found.flow(FlowId(0)).unwrap().receiver.as_ref().unwrap().elapsed.as_secs_f64();
        prop_assert!((lengths.iter().sum::<f64>() - elapsed_s).abs() < 1e-9);

        // A silence of some intervals moves bytes, and loses none: the mean stays the receiver's rate.
        let found = read_in_steps(read_bytes, gap_ns, silence_ns..silence_ns + 300_000_000, &ticks);
        let flow = found.flow(FlowId(0)).unwrap();
        let (rates, lengths) = received_from(flow, 0);
        let bits: f64 = rates.iter().zip(&lengths).map(|(rate, length)| rate * length).sum();
        let mean = bits / lengths.iter().sum::<f64>();
        let stated = flow.bitrate().unwrap().bps();
        prop_assert!((mean / stated - 1.0).abs() < 1e-6, "{mean} {stated}");
    }
}

#[test]
fn what_waits_for_a_retransmission_belongs_to_the_interval_in_which_it_is_read() {
    // From 940 ms on everything waits for two missing segments; the first of them comes at 995 ms, alone.
    let ticks: Vec<u64> = (1..=30).map(|number| number * 100_000_000).collect();
    let mut record = read_in_steps(1448, 1_000_000, 940_000_000..1_050_000_000, &ticks);
    let samples: Vec<&mut Sample> = record.flows[0].samples.iter_mut().collect();
    for (number, sample) in samples.into_iter().enumerate() {
        let moved = 1448 * u64::from(number == 9);
        let (bytes, idle) = (sample.readings.get(BYTES).unwrap(), sample.readings.get(LAST_DATA).unwrap());
        sample.readings.put(BYTES, Bytes::new(bytes.get() + moved));
        sample.readings.put(LAST_DATA, if number == 9 { Span::from_ms(5) } else { idle });
        let held = if number == 9 { 54 * 2304 } else { 0 };
        sample.readings.put(RCV_HELD, Bytes::new(held));
        if number == 10 {
            sample.readings.put(BYTES, Bytes::new(bytes.get() - 1448));
        }
    }
    let spread = |record: &RunRecord| {
        let (rates, _) = received_from(record.flow(FlowId(0)).unwrap(), 0);
        rates.iter().map(|rate| (rate / 11.584e6 - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(spread(&record) > 0.3, "{}", spread(&record));
    record.flows[0].receiver.as_mut().unwrap().arrival_times = true;
    assert!(spread(&record) < 1e-9, "{}", spread(&record));
    assert_eq!(received_from(record.flow(FlowId(0)).unwrap(), 0).0.len(), 29);
}

#[test]
fn a_hole_at_the_end_is_no_slow_interval() {
    // 2 Mb/s for three seconds; what arrives in the last 60 ms waits for a retransmission.
    let ticks: Vec<u64> = (1..=30).map(|number| number * 100_000_000).collect();
    let whole = read_in_steps(1448, 1_000_000, 0..0, &ticks);
    let (_, rates) = steady_intervals(whole.flow(FlowId(0)).unwrap());
    assert_eq!(rates.len(), 30);
    let holed = read_in_steps(1448, 1_000_000, 2_940_000_000..3_001_000_000, &ticks);
    let (_, rates) = steady_intervals(holed.flow(FlowId(0)).unwrap());
    assert_eq!(rates.len(), 29);
    assert!(rates[1..].iter().all(|rate| (rate / 11.584e6 - 1.0).abs() < 0.011), "{rates:?}");
}

#[test]
fn waiting_after_the_last_of_an_amount_of_datagrams_is_no_slow_interval() {
    // 2 Mb/s for three seconds, of which the last datagram left after 1.62 s.
    let ticks: Vec<u64> = (1..=30).map(|number| number * 100_000_000).collect();
    let mut record = read_in_steps(1448, 1_000_000, 1_620_000_000..9_000_000_000, &ticks);
    let rates = |record: &RunRecord| steady_intervals(record.flow(FlowId(0)).unwrap()).1;
    let sender = Tally { elapsed: Span::from_ms(1620), ..record.flows[0].receiver.clone().unwrap() };
    record.flows[0].sender = Some(sender);
    assert!(rates(&record).len() > 20, "an outage at the end of a TCP flow counts");
    record.flows[0].plan.transport = Transport::Udp;
    let whole = rates(&record);
    assert_eq!(whole.len(), 16);
    assert!(whole[1..].iter().all(|rate| (rate / 11.584e6 - 1.0).abs() < 0.011), "{whole:?}");
}

#[test]
fn times_of_arrival_leave_nothing_unread_at_the_ends() {
    let ticks: Vec<u64> = (1..=100).map(|number| number * 100_000_000).collect();
    let mut record = read_in_steps(4 * 1448, 24_000_000, 0..0, &ticks);
    record.flows[0].receiver.as_mut().unwrap().readings.put(CALLS, 417);
    let by_reads = half_width(&record);
    record.flows[0].receiver.as_mut().unwrap().arrival_times = true;
    let by_arrivals = half_width(&record);
    assert!(by_arrivals < by_reads / 5.0, "{by_arrivals} {by_reads}");
}

fn until(share: &str) -> TestSpec {
    let mut spec = TestSpec::default();
    spec.traffic.until = Some(share.parse().unwrap());
    spec
}

#[test]
fn a_target_that_was_not_reached_is_reported() {
    let swinging: Vec<f64> = (0..60).map(|i| 1e8 + 1.5e6 * f64::from(i * 7919 % 41 - 20)).collect();
    let missed_by = |spec: &TestSpec, rates: &[f64]| {
        let record = received(spec, rates, TICK_MS);
        let mut flow = record.flow(FlowId(0)).unwrap().clone();
        flow.steady = steady(&flow);
        missed(&record, &flow)
    };
    let caveat = missed_by(&until("0.1%"), &swinging).unwrap();
    assert_eq!(caveat.kind, CaveatKind::UntilMissed);
    let start = "the test ended after 6 s, before --until 0.1 % was reached: it had reached ";
    assert!(caveat.text.starts_with(start) && caveat.text.ends_with("; repeat the test"), "{}", caveat.text);
    let mut six = until("0.1%");
    six.traffic.duration = Some(Span::from_secs(6));
    let caveat = missed_by(&six, &swinging).unwrap();
    let start =
        "the test stopped at its time limit of 6 s, before --until 0.1 % was reached: it had reached ";
    assert!(caveat.text.starts_with(start) && caveat.text.ends_with("; give a longer -t"), "{}", caveat.text);
    // The share reached relates to the steady rate next to it.
    let reached = caveat.text[start.len()..].split(" %").next().unwrap().parse::<f64>().unwrap();
    assert!((0.1..5.0).contains(&reached), "{}", caveat.text);
    let few = missed_by(&until("1%"), &rates(5, &[])).unwrap();
    assert!(
        few.text.contains("5 intervals after the ramp-up are too few for an uncertainty"),
        "{}",
        few.text
    );
    assert_eq!(missed_by(&until("1%"), &rates(60, &[])), None);
    assert_eq!(missed_by(&TestSpec::default(), &swinging), None, "nobody asked");
    assert!(missed_by(&until("1%"), &rates(5, &[])).is_some(), "too short to tell");
}

/// A flow that the peer receives is known by its progress reports only, until it ends.
#[test]
fn an_upload_is_known_by_the_progress_reports_of_its_receiver() {
    let spec = until("1%");
    let mut series = BTreeMap::from([(FlowId(0), ReceivedSeries::default())]);
    let record = received(&spec, &[], TICK_MS);
    let (mut upload, mut both) = (Until::new([FlowId(0)], &spec), Until::new([FlowId(0), FlowId(1)], &spec));
    let mut looked = Vec::new();
    // 250 ms apart with 1 MB each, after two slower ones.
    for tick in 1..=40_u64 {
        let bytes = 1_000_000 * tick - if tick > 2 { 700_000 } else { 350_000 * tick };
        series.get_mut(&FlowId(0)).unwrap().note(Bytes::new(bytes), Span::from_ms(250 * tick));
        looked.push(upload.is_reached(&record, &series));
        assert!(!both.is_reached(&record, &series), "the other direction is not known");
    }
    assert!(looked[..20].iter().all(|known| !known), "too early: {looked:?}");
    assert!(looked.contains(&true), "never: {looked:?}");
}

/// The intervals of two flows do not end together: one has three more than the other.
#[test]
fn both_directions_are_known_although_their_intervals_never_have_the_same_number() {
    let spec = until("1%");
    let mut series =
        BTreeMap::from([(FlowId(0), ReceivedSeries::default()), (FlowId(1), ReceivedSeries::default())]);
    let mut record = received(&spec, &[], TICK_MS);
    record.flows.push(record.flows[0].clone());
    record.flows[1].plan.flow = FlowId(1);
    let mut until = Until::new([FlowId(0), FlowId(1)], &spec);
    let mut reached = false;
    for tick in 1..=60_u64 {
        for (flow, tick) in [(FlowId(0), tick), (FlowId(1), tick.saturating_sub(3))] {
            series.get_mut(&flow).unwrap().note(Bytes::new(1_000_000 * tick), Span::from_ms(250 * tick));
        }
        reached |= until.is_reached(&record, &series);
    }
    assert!(reached);
}

/// Traffic to one's own address uses loopback, although another interface has the address.
#[test]
fn a_queue_that_the_flow_did_not_pass_is_none_of_its_own() {
    let own_queue = |left: u64| {
        let mut record = received(&TestSpec::default(), &rates(60, &[]), TICK_MS);
        record.hosts = vec![HostInfo { name: "alpha".into(), ..HostInfo::default() }, HostInfo::default()];
        let arrived = record.flows[0].receiver.as_ref().unwrap().bytes;
        let receiver = record.flows[0].receiver.as_mut().unwrap();
        receiver.total_bytes = arrived;
        let (rate_bps, burst_bytes) = (Some(50_000_000), Some(Bytes::new(32_768)));
        let bytes = Bytes::new(arrived.get() / 100 * left);
        let qdisc =
            Some(QdiscCounts { kind: "tbf".into(), bytes, rate_bps, burst_bytes, ..QdiscCounts::default() });
        let interface = Some(InterfaceCounts { name: "eth0".into(), qdisc, ..InterfaceCounts::default() });
        let kernel = Some(Box::new(KernelCounts { interface, ..KernelCounts::default() }));
        record.flows[0].sender = Some(Tally { kernel, ..Tally::default() });
        evidence(&record, FlowId(0)).unwrap().own_queue
    };
    let passed = own_queue(105).unwrap();
    assert_eq!((passed.rate_bps, passed.burst_bytes), (Some(50e6), Some(32_768.0)));
    assert_eq!(own_queue(3), None, "only the dialogue");
}

#[test]
fn a_window_that_held_only_the_start_holds_nothing_of_the_steady_part() {
    use linerate_model::metrics::tcp::{BUSY, RWND_LIMITED};
    // 80 Mb/s for half a second while the window grew, then the rate of a policer.
    let burst = [vec![80e6; 5], vec![20e6; 26]].concat();
    let share = |held: std::ops::Range<u64>| {
        let mut record = received(&TestSpec::default(), &burst, TICK_MS);
        for at in 0..31 {
            let mut readings = Readings::default();
            readings.put(BUSY, Span::from_ms(TICK_MS));
            readings.put(RWND_LIMITED, Span::from_ms(if held.contains(&at) { TICK_MS } else { 0 }));
            let at = |tick: u64| Timestamp::from_ns(Span::from_ms(tick * TICK_MS).as_ns());
            let sample =
                Sample { side: Side::Sender, start_ns: at(0), end_ns: at(1), outside: false, readings };
            record.flows[0].samples.push(sample);
        }
        evidence(&record, FlowId(0)).unwrap().tcp.receiver_window_share.unwrap()
    };
    assert!(share(0..5) < 0.01, "{}", share(0..5));
    assert!(share(0..31) > 0.99 && share(5..31) > 0.99);
}

/// The record of an upload over `streams` connections with these readings of the sender, in intervals of
/// 100 ms.
fn sampled(streams: u32, readings: Vec<Readings>) -> RunRecord {
    let mut record = received(&TestSpec::default(), &rates(readings.len(), &[]), TICK_MS);
    record.flows[0].plan.streams = streams;
    for (number, readings) in (0_u64..).zip(readings) {
        let at = |tick: u64| Timestamp::from_ns(Span::from_ms(tick * TICK_MS).as_ns());
        let (start_ns, end_ns) = (at(number), at(number + 1));
        let sample = Sample { side: Side::Sender, start_ns, end_ns, outside: false, readings };
        record.flows[0].samples.push(sample);
    }
    record
}

#[test]
fn without_the_state_of_the_connections_nothing_is_known_of_slow_start() {
    use linerate_model::metrics::tcp::{CWND, SSTHRESH};
    let counted = || {
        let mut readings = Readings::default();
        readings.put(BYTES, Bytes::new(11_768_000));
        readings
    };
    let growing = || {
        let mut readings = counted();
        readings.put(CWND, Bytes::new(144_800));
        readings
    };
    let left = || {
        let mut readings = growing();
        readings.put(SSTHRESH, Bytes::new(100_000));
        readings
    };
    let infinite =
        |readings: Vec<Readings>| evidence(&sampled(1, readings), FlowId(0)).unwrap().tcp.ssthresh_infinite;
    assert_eq!(infinite(vec![counted(), counted()]), None);
    assert_eq!(infinite(vec![counted(), growing()]), Some(true));
    assert_eq!(infinite(vec![growing(), left()]), Some(false));
    assert_eq!(infinite(vec![growing(), left(), counted()]), Some(false), "the last sample has no state");
}

#[test]
fn counts_of_sampled_connections_are_those_of_64_at_most() {
    let of = |streams| evidence(&sampled(streams, vec![Readings::default()]), FlowId(0)).unwrap().tcp;
    assert_eq!(of(4).sampled_streams, Some(4));
    assert_eq!(of(256).sampled_streams, Some(64));
}

/// A count of a peer: an ordinary one, or one that no counter can have.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_000_u64, any::<u64>(), Just(u64::MAX)]
}

/// A sample of either side with any value in every metric of the catalogue.
fn absurd_sample() -> impl Strategy<Value = Sample> {
    let names: Vec<&str> =
        linerate_model::metrics::CATALOGUE.iter().copied().flatten().map(|entry| entry.name).collect();
    let values = proptest::collection::vec(proptest::option::of(count()), names.len());
    (any::<bool>(), count(), count(), values).prop_map(move |(sent, start, end, values)| {
        let known = names.iter().zip(values).filter_map(|(name, value)| Some((*name, value?)));
        let readings = serde_json::from_value(known.collect::<serde_json::Value>()).unwrap();
        let side = if sent { Side::Sender } else { Side::Receiver };
        let (start_ns, end_ns) = (Timestamp::from_ns(start), Timestamp::from_ns(end));
        Sample { side, start_ns, end_ns, outside: false, readings }
    })
}

fn absurd_tally() -> impl Strategy<Value = Tally> {
    proptest::collection::vec(count(), 12).prop_map(|counts| {
        let udp =
            UdpTally { packets: counts[7], lost: counts[8], duplicates: counts[9], ..UdpTally::default() };
        let bytes = |number: usize| Bytes::new(counts[number]);
        let elapsed = Span::from_ns(counts[6]);
        Tally {
            bytes: bytes(0),
            first_read_bytes: bytes(1),
            omitted_bytes: bytes(2),
            tail_bytes: bytes(3),
            total_bytes: bytes(4),
            queued_bytes: Some(bytes(5)),
            elapsed,
            bitrate: Bitrate::of(bytes(0), elapsed).unwrap_or_default(),
            retransmits: Some(counts[10]),
            udp: Some(udp),
            ..Tally::default()
        }
    })
}

proptest! {
    /// A peer may report anything. It gets a verdict, and the program survives.
    #[test]
    fn absurd_counts_of_a_peer_are_judged(
        datagrams: bool,
        samples in proptest::collection::vec(absurd_sample(), 0..40),
        tallies in (absurd_tally(), absurd_tally()),
    ) {
        let honest = received(&TestSpec::default(), &rates(20, &[]), TICK_MS);
        let mut plan = honest.flow(FlowId(0)).unwrap().plan.clone();
        plan.transport = if datagrams { Transport::Udp } else { Transport::Tcp };
        let mut log = Log::new("r".into(), Vec::new());
        log.note(Body::RunStarted(Box::new(honest.start.clone().unwrap())));
        log.note(Body::FlowPlanned(plan));
        for sample in honest.flow(FlowId(0)).unwrap().samples.iter().cloned().chain(samples) {
            log.note(Body::Sample { flow: FlowId(0), sample });
        }
        for (side, tally) in [(Side::Sender, tallies.0), (Side::Receiver, tallies.1)] {
            log.note(Body::FlowEnded { flow: FlowId(0), side, tally });
        }
        judge(FlowId(0), &mut log);
        prop_assert!(log.record().flow(FlowId(0)).unwrap().verdict.is_some());
    }
}
