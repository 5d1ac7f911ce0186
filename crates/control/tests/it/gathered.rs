//! The evidence about the path that is gathered from a constructed record.

use linerate_control::evidence;
use linerate_model::flow::FlowId;
use linerate_model::metrics::{flow, host, port, tcp};
use linerate_model::{
    Body, Direction, Event, FlowPlan, PortRecord, PortSample, Readings, RunRecord, Sample, Side, StreamTally,
    Tally, Transport, Uncertainty, UncertaintySource,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

/// The interval number `number`, 100 ms long.
fn sample(side: Side, number: u64, outside: bool, readings: Readings) -> Body {
    let at = |ticks: u64| Timestamp::START + Span::from_ms(100 * ticks);
    Body::Sample {
        flow: FlowId(1),
        sample: Sample { side, start_ns: at(number), end_ns: at(number + 1), outside, readings },
    }
}

/// The sender's readings of an interval: the same in each except the segment size, which shrinks.
fn sending(segment: u64) -> Readings {
    let mut readings = Readings::default();
    readings.put(host::HYSTART_EXITS, 1);
    readings.put(host::HYSTART_SEGMENTS, 30);
    readings.put(host::MTU_PROBES, 2);
    readings.put(host::WINDOW_UNDONE, 3);
    readings.put(host::COLLISIONS, 4);
    readings.put(host::INTERFACE_ERRORS, 5);
    readings.put(tcp::SND_MSS, Bytes::new(segment));
    readings.put(tcp::BYTES_ACKED, Bytes::new(1000));
    readings.put(tcp::DELIVERED, 7);
    readings.put(tcp::REORDERED, 6);
    readings
}

/// A flow of two connections, with one omitted and two measured intervals.
fn record() -> RunRecord {
    let plan = FlowPlan {
        flow: FlowId(1),
        name: "upload".into(),
        from: "a".into(),
        to: "b".into(),
        transport: Transport::Tcp,
        direction: Direction::Upload,
        streams: 2,
    };
    let mut receiving = Readings::default();
    receiving.put(tcp::OUT_OF_ORDER, 8);
    let stream = |bytes| StreamTally { bytes: Bytes::new(bytes), retransmits: None };
    let counted = Tally { streams: vec![stream(300), stream(100)], ..Tally::default() };
    let bodies = [
        Body::FlowPlanned(plan),
        sample(Side::Sender, 0, true, sending(1448)),
        sample(Side::Sender, 1, false, sending(1448)),
        sample(Side::Sender, 2, false, sending(1000)),
        sample(Side::Receiver, 1, false, receiving),
        Body::FlowEnded { flow: FlowId(1), side: Side::Receiver, tally: counted },
    ];
    let events: Vec<Event> = bodies
        .into_iter()
        .zip(0..)
        .map(|(body, seq)| Event { run: "r".into(), host: 0, seq, at: Timestamp::START, body })
        .collect();
    RunRecord::fold(&events)
}

#[test]
fn what_happens_once_counts_with_the_omitted_part_and_what_has_a_rate_does_not() {
    let found = evidence(&record(), FlowId(1)).unwrap();
    assert_eq!(found.tcp.hystart_exits, Some(3.0), "slow start ends in what is omitted");
    assert_eq!(found.tcp.hystart_window_bytes, Some(30.0 * 1448.0), "the mean of three");
    assert_eq!(found.tcp.mtu_probes, Some(6.0));
    assert_eq!(found.tcp.acked_bytes, Some(3000.0));
    assert_eq!(found.tcp.window_undone, Some(6.0));
    assert_eq!(found.tcp.delivered, Some(14.0));
    assert_eq!(found.tcp.reordered, Some(12.0));
    assert_eq!(found.tcp.out_of_order, Some(8.0), "at the receiver");
    assert_eq!(found.sender.collisions, Some(8.0));
    assert_eq!(found.sender.damaged_frames, Some(10.0));
    assert_eq!((found.receiver.collisions, found.receiver.half_duplex), (None, None), "not reported");
    assert_eq!((found.tcp.mss_first_bytes, found.link.mss_bytes), (Some(1448.0), Some(1000.0)));
    assert_eq!(found.outcome.stream_bytes, [300.0, 100.0]);
}

#[test]
fn drops_at_ports_count_while_the_flow_is_measured_and_its_interval_comes_with_it() {
    let mut record = record();
    let sample = |dropped: u64, outside: bool| {
        let mut readings = Readings::default();
        readings.put(port::DROPPED, dropped);
        PortSample { start_ns: Timestamp::START, end_ns: Timestamp::START, outside, readings }
    };
    let samples = vec![sample(100, true), sample(3, false), sample(4, false)];
    let own = PortRecord { port: "s>b".into(), flows: vec![FlowId(1)], samples };
    let other = PortRecord { flows: vec![FlowId(2)], ..own.clone() };
    record.ports = vec![own, other];
    record.flows[0].uncertainty = Some(Uncertainty {
        expanded_bps: Bitrate::from_bps(5e5).unwrap(),
        overhead_bps: None,
        coverage: Ratio::new(0.95).unwrap(),
        coverage_factor: 2.0,
        main: UncertaintySource::Variation,
        contributions: Vec::new(),
    });
    let found = evidence(&record, FlowId(1)).unwrap();
    let ports: Vec<(&str, f64)> = found.ports.iter().map(|port| (port.name.as_str(), port.dropped)).collect();
    assert_eq!(ports, [("s>b", 7.0)]);
    assert_eq!(found.outcome.uncertainty_bps, Some(5e5));
}

/// A flow of ten intervals whose first and last read are `apart` from each other; only the first interval has
/// bytes.
fn burst(apart: Span) -> RunRecord {
    let mut record = record();
    let flow = &mut record.flows[0];
    flow.samples = (0..10)
        .map(|number| {
            let mut readings = Readings::default();
            readings.put(flow::BYTES, Bytes::new(if number == 0 { 131_072 } else { 0 }));
            let at = |ticks: u64| Timestamp::START + Span::from_ms(100 * ticks);
            let (start_ns, end_ns) = (at(number), at(number + 1));
            Sample { side: Side::Receiver, start_ns, end_ns, outside: false, readings }
        })
        .collect();
    flow.receiver = Some(Tally { elapsed: apart, ..Tally::default() });
    record
}

#[test]
fn a_figure_is_never_of_more_time_than_passed_between_its_first_and_last_read() {
    let measured = |apart| evidence(&burst(apart), FlowId(1)).unwrap().outcome.measured_s.unwrap();
    let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} instead of {want}");
    close(measured(Span::from_ns(3000)), 3e-6);
    // If the reads are further apart, the steady intervals count.
    close(measured(Span::from_secs(5)), 1.0);
}
