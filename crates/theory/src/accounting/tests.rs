use linerate_model::flow::FlowId;
use linerate_model::metrics::port;
use linerate_model::{
    Body, Direction, Event, FlowPlan, HostInfo, IdleCounts, InterfaceCounts, KernelCounts, LinkInfo,
    PassedCounts, PortSample, QdiscCounts, Readings, RunRecord, RunStart, SideSettings, SocketCounts,
    TestSpec, UdpTally, World,
};
use linerate_units::{Span, Timestamp};

use super::*;

/// 100 MB in 69,061 segments of 1448 bytes, 2,200 super-packets, 1,000 acknowledgements; 66 bytes before each
/// payload.
const PAYLOAD: u64 = 100_000_000;
const SEGMENTS: u64 = 69_061;
const BUNDLES: u64 = 2_200;
const ACKS: u64 = 1_000;
const HEADER: u64 = 66;

struct AccountedRun {
    sender: Tally,
    receiver: Tally,
    kind: LinkKind,
    transport: Transport,
    ports: Vec<(&'static str, u64)>,
    /// Payload of a datagram, and path MTU.
    cut: Option<(u64, u32)>,
}

fn tally(kernel: KernelCounts) -> Tally {
    let total_bytes = Bytes::new(PAYLOAD);
    Tally {
        total_bytes,
        queued_bytes: Some(Bytes::default()),
        complete: true,
        kernel: Some(Box::new(kernel)),
        ..Tally::default()
    }
}

fn passed(bytes: u64, packets: u64) -> PassedCounts {
    PassedCounts { bytes: Bytes::new(bytes), packets, dropped: 0 }
}

fn interface(sent: PassedCounts, received: PassedCounts) -> InterfaceCounts {
    InterfaceCounts {
        name: "eth0".into(),
        duration: Span::from_secs(10),
        sent,
        received,
        qdisc: None,
        idle: None,
    }
}

/// An upload over a device that carries super-packets; all bytes belong to this test.
fn balanced() -> AccountedRun {
    let data = passed(PAYLOAD + (BUNDLES + ACKS) * HEADER - ACKS * HEADER, BUNDLES);
    let acks = passed(ACKS * HEADER, ACKS);
    let sent = SocketCounts {
        sent_bytes: Bytes::new(PAYLOAD),
        acked_bytes: Bytes::new(PAYLOAD),
        segments_out: SEGMENTS,
        data_segments_out: SEGMENTS,
        segments_in: ACKS,
        ..SocketCounts::default()
    };
    let got = SocketCounts {
        received_bytes: Bytes::new(PAYLOAD + 1),
        segments_in: SEGMENTS,
        data_segments_in: SEGMENTS,
        segments_out: ACKS,
        ..SocketCounts::default()
    };
    let kernel =
        |socket, interface| KernelCounts { socket: Some(socket), control: None, interface: Some(interface) };
    AccountedRun {
        sender: tally(kernel(sent, interface(data, acks))),
        receiver: tally(kernel(got, interface(acks, data))),
        kind: LinkKind::Veth,
        transport: Transport::Tcp,
        ports: Vec::new(),
        cut: None,
    }
}

fn kernel(tally: &mut Tally) -> &mut KernelCounts {
    tally.kernel.as_mut().unwrap()
}

fn eth0(tally: &mut Tally) -> &mut InterfaceCounts {
    kernel(tally).interface.as_mut().unwrap()
}

impl AccountedRun {
    fn record(self) -> RunRecord {
        let link = LinkInfo {
            name: "eth0".into(),
            kind: self.kind,
            speed: None,
            full_duplex: None,
            mtu: 1500,
            driver: None,
            offloads: Vec::new(),
            gso_max_bytes: None,
            gro_max_bytes: None,
        };
        let host = |name: &str, address: &str| HostInfo {
            name: name.into(),
            address: Some(address.into()),
            link: Some(link.clone()),
            ..HostInfo::default()
        };
        let plan = FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "a".into(),
            to: "b".into(),
            transport: self.transport,
            direction: Direction::Upload,
            streams: 1,
        };
        let start = RunStart {
            schema: linerate_model::EVENT_SCHEMA.into(),
            started_at: "".into(),
            world: World::Hosts,
            linerate: "".into(),
            target: "b:5201".into(),
            spec: TestSpec::default(),
        };
        let port = |(name, bytes): &(&str, u64)| {
            let mut readings = Readings::default();
            readings.put(port::BYTES, Bytes::new(*bytes));
            let (start_ns, end_ns) = (Timestamp::START, Timestamp::from_ns(1));
            let sample = PortSample { start_ns, end_ns, outside: false, readings };
            (0, Body::Port { flows: vec![FlowId(0)], port: (*name).into(), sample })
        };
        // A hundred intervals; the last one may be missing.
        let hundredths = |(name, bytes): &(&'static str, u64)| {
            let (name, each) = (*name, *bytes / 100);
            let rest = (name, *bytes - 99 * each);
            std::iter::repeat_n((name, each), 99).chain([rest])
        };
        let (length, pmtu) = self.cut.unzip();
        let length = Bytes::new(length.unwrap_or_default());
        let settings = SideSettings { length, pmtu, ..SideSettings::default() };
        let mut bodies = vec![
            (0, Body::RunStarted(Box::new(start))),
            (0, Body::Host { info: host("a", "10.0.0.1") }),
            (1, Body::Host { info: host("b", "10.0.0.2") }),
            (0, Body::FlowPlanned(plan)),
            (0, Body::FlowOpened { flow: FlowId(0), side: Side::Sender, settings }),
            (0, Body::FlowEnded { flow: FlowId(0), side: Side::Sender, tally: self.sender }),
            (1, Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally: self.receiver }),
        ];
        bodies.extend(self.ports.iter().flat_map(hundredths).map(|part| port(&part)));
        let event = |(seq, (host, body))| Event { run: "r".into(), host, seq, at: Timestamp::START, body };
        RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>())
    }

    fn steps(self) -> Vec<AccountingStep> {
        let record = self.record();
        steps(&record, record.flow(FlowId(0)).unwrap())
    }

    /// Open steps, with their residuals.
    fn open(self) -> Vec<(&'static str, i64)> {
        let open = |step: AccountingStep| step.unaccounted.then(|| (step.point.name(), step.residual_bytes));
        self.steps().into_iter().filter_map(open).collect()
    }
}

#[test]
fn a_test_alone_is_explained_at_every_point() {
    let steps = balanced().steps();
    let points: Vec<&str> = steps.iter().map(|step| step.point.name()).collect();
    let expected = [
        "sender_socket",
        "sender_interface",
        "receiver_interface",
        "receiver_socket",
        "return_sent",
        "return_received",
    ];
    assert_eq!(points, expected);
    assert!(steps.iter().all(|step| step.residual_bytes == 0 && !step.unaccounted), "{steps:#?}");
    assert_eq!(summary(&steps), None);
}

#[test]
fn bytes_of_others_are_named_where_they_pass() {
    let mut run = balanced();
    let others = 1_000_000;
    eth0(&mut run.receiver).received.bytes =
        Bytes::new(eth0(&mut run.receiver).received.bytes.get() + others);
    let steps = run.steps();
    let open: Vec<&AccountingStep> = steps.iter().filter(|step| step.unaccounted).collect();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].point, open[0].host.as_str()), (AccountingPoint::ReceiverInterface, "b"));
    // All except what the edges of the time may hold.
    assert!((990_000..=1_000_000).contains(&open[0].residual_bytes), "{}", open[0].residual_bytes);
    let text = summary(&steps).unwrap();
    assert!(text.contains("on eth0 of b are not this test's"), "{text}");
}

#[test]
fn a_thousandth_is_the_bound() {
    let with = |others: u64| {
        let mut run = balanced();
        eth0(&mut run.sender).sent.bytes = Bytes::new(eth0(&mut run.sender).sent.bytes.get() + others);
        run.open()
    };
    assert_eq!(with(99_000), []);
    assert_eq!(with(110_000).first().map(|found| found.0), Some("sender_interface"));
}

#[test]
fn what_others_sent_before_the_load_is_allowed_in_addition() {
    let idle = IdleCounts {
        duration: Span::from_secs(2),
        sent_bytes: Bytes::new(200_000),
        received_bytes: Bytes::default(),
    };
    let mut run = balanced();
    let interface = eth0(&mut run.sender);
    interface.idle = Some(idle);
    // A megabyte in ten seconds, as in the two seconds before.
    interface.sent.bytes = Bytes::new(interface.sent.bytes.get() + 1_000_000);
    assert_eq!(run.open(), []);
    let mut run = balanced();
    let interface = eth0(&mut run.sender);
    interface.idle = Some(idle);
    interface.sent.bytes = Bytes::new(interface.sent.bytes.get() + 2_000_000);
    assert_eq!(run.open().len(), 1);
}

#[test]
fn bytes_that_never_passed_an_interface_are_missed_there() {
    let mut run = balanced();
    let interface = eth0(&mut run.sender);
    interface.sent.bytes = Bytes::new(interface.sent.bytes.get() - 1_000_000);
    let steps = run.steps();
    let step = steps.iter().find(|step| step.unaccounted).unwrap();
    assert!(step.residual_bytes < -990_000, "{}", step.residual_bytes);
    assert!(summary(&steps).unwrap().contains("less than passed there (sender_interface)"));
}

#[test]
fn a_socket_that_sent_less_than_was_written_is_no_matter_of_others() {
    let mut run = balanced();
    run.sender.total_bytes = Bytes::new(PAYLOAD + 500_000);
    assert_eq!(run.open(), [("sender_socket", -500_000)]);
    let mut run = balanced();
    run.sender.total_bytes = Bytes::new(PAYLOAD + 500_000);
    run.sender.queued_bytes = Some(Bytes::new(500_000));
    assert_eq!(run.open(), [], "it was still queued");
}

#[test]
fn a_queue_and_a_port_count_the_headers_of_every_segment() {
    let each = PAYLOAD + SEGMENTS * HEADER;
    let with = |bytes: u64, on_port: u64| {
        let mut run = balanced();
        let qdisc = QdiscCounts {
            kind: "fq".into(),
            bytes: Bytes::new(bytes),
            packets: SEGMENTS,
            ..QdiscCounts::default()
        };
        eth0(&mut run.sender).qdisc = Some(qdisc);
        run.ports = vec![("s>b", on_port), ("a>s", 7)];
        run.open()
    };
    // A port counts the FCS, too.
    assert_eq!(with(each, each + 4 * SEGMENTS), []);
    assert_eq!(
        with(each + 1_000_000, each + 4 * SEGMENTS).first().map(|found| found.0),
        Some("sender_qdisc")
    );
    let port = each + 4 * SEGMENTS;
    assert_eq!(with(each, port - port / 100), [], "the last interval was not over");
    assert_eq!(with(each, port - port / 50).first().map(|found| found.0), Some("port"), "more is missing");
    assert_eq!(with(each, port + 1_000_000).first().map(|found| found.0), Some("port"));
}

#[test]
fn a_receiver_that_counts_bundles_as_one_is_accounted_at_a_port() {
    let with = |on_port: u64| {
        let mut run = balanced();
        let socket = kernel(&mut run.receiver).socket.as_mut().unwrap();
        (socket.data_segments_in, socket.segments_in) = (BUNDLES, BUNDLES);
        run.ports = vec![("s>b", on_port)];
        run.open()
    };
    let each = PAYLOAD + SEGMENTS * (HEADER + 4);
    assert_eq!(with(each), []);
    assert_eq!(with(each + 1_000_000).first().map(|found| found.0), Some("port"));
}

#[test]
fn what_was_sent_again_may_arrive_or_not() {
    let mut run = balanced();
    let again = 1_448_000;
    let bytes = |bytes: Bytes| Bytes::new(bytes.get() + again);
    let socket = kernel(&mut run.sender).socket.as_mut().unwrap();
    (socket.sent_bytes, socket.retransmitted_bytes) = (bytes(socket.sent_bytes), Bytes::new(again));
    let sent = &mut eth0(&mut run.sender).sent;
    sent.bytes = bytes(sent.bytes);
    assert_eq!(run.open(), [], "lost on the way");
    let mut run = balanced();
    let socket = kernel(&mut run.sender).socket.as_mut().unwrap();
    (socket.sent_bytes, socket.retransmitted_bytes) = (bytes(socket.sent_bytes), Bytes::new(again));
    for passed in [&mut eth0(&mut run.sender).sent, &mut eth0(&mut run.receiver).received] {
        passed.bytes = bytes(passed.bytes);
    }
    assert_eq!(run.open(), [], "arrived twice");
}

/// As measured through a tbf on the sender's own interface with four streams: TCP counts what its queue
/// rejected as sent, and again when it leaves.
#[test]
fn what_the_senders_own_queue_threw_away_is_accounted() {
    let refused: u64 = 54_000_000;
    let with = |missing: u64, dropped: u64| {
        let mut run = balanced();
        let socket = kernel(&mut run.sender).socket.as_mut().unwrap();
        socket.sent_bytes = Bytes::new(PAYLOAD + refused);
        socket.data_segments_out = SEGMENTS + refused / 1448;
        socket.segments_out = socket.data_segments_out;
        let left = PAYLOAD + SEGMENTS * HEADER - missing;
        let qdisc = QdiscCounts {
            kind: "tbf".into(),
            bytes: Bytes::new(left),
            packets: SEGMENTS,
            dropped,
            ..QdiscCounts::default()
        };
        let interface = eth0(&mut run.sender);
        interface.qdisc = Some(qdisc);
        interface.sent.bytes = Bytes::new(interface.sent.bytes.get() - missing);
        run.open()
    };
    // 9,500 super-packets of at most 64 KiB.
    assert_eq!(with(0, 9_500), []);
    // Acknowledged bytes must have passed nevertheless; the number of their headers is unknown.
    let points: Vec<&str> = with(10_000_000, 9_500).into_iter().map(|(point, _)| point).collect();
    assert_eq!(points, ["sender_qdisc", "sender_interface"]);
    // A few drops do not explain that much, and no drops explain nothing.
    assert_eq!(with(0, 100).first().map(|found| found.0), Some("sender_socket"));
    assert!(!with(0, 0).is_empty());
}

#[test]
fn datagrams_that_the_senders_own_queue_threw_away_are_accounted() {
    let udp = |packets, lost| Some(UdpTally { packets, lost, ..UdpTally::default() });
    let (payload, segments) = (PAYLOAD / 2, SEGMENTS / 2);
    let with = |dropped: u64| {
        let mut run = balanced();
        run.transport = Transport::Udp;
        // Half of them left.
        let frames = passed(payload + segments * 42, segments);
        (eth0(&mut run.sender).sent, eth0(&mut run.sender).received) = (frames, passed(0, 0));
        (eth0(&mut run.receiver).received, eth0(&mut run.receiver).sent) = (frames, passed(0, 0));
        let bytes = Bytes::new(frames.bytes.get());
        eth0(&mut run.sender).qdisc = Some(QdiscCounts {
            kind: "tbf".into(),
            bytes,
            packets: segments,
            dropped,
            ..QdiscCounts::default()
        });
        (run.sender.udp, run.receiver.udp) = (udp(SEGMENTS, 0), udp(segments, SEGMENTS - segments));
        run.receiver.total_bytes = Bytes::new(payload);
        for tally in [&mut run.sender, &mut run.receiver] {
            kernel(tally).socket = None;
        }
        run.open()
    };
    assert_eq!(with(SEGMENTS - segments), []);
    assert_eq!(with(0).first().map(|found| found.0), Some("sender_qdisc"));
}

#[test]
fn datagrams_have_no_counts_of_their_sockets() {
    let udp = |packets| Some(UdpTally { packets, ..UdpTally::default() });
    let mut run = balanced();
    run.transport = Transport::Udp;
    let frames = passed(PAYLOAD + SEGMENTS * 42, SEGMENTS);
    (eth0(&mut run.sender).sent, eth0(&mut run.sender).received) = (frames, passed(0, 0));
    (eth0(&mut run.receiver).received, eth0(&mut run.receiver).sent) = (frames, passed(0, 0));
    (run.sender.udp, run.receiver.udp) = (udp(SEGMENTS), udp(SEGMENTS));
    for tally in [&mut run.sender, &mut run.receiver] {
        kernel(tally).socket = None;
    }
    let steps = run.steps();
    let points: Vec<&str> = steps.iter().map(|step| step.point.name()).collect();
    assert_eq!(points, ["sender_interface", "receiver_interface", "return_sent", "return_received"]);
    assert!(steps.iter().all(|step| !step.unaccounted), "{steps:#?}");
}

#[test]
fn on_loopback_both_directions_pass_one_interface() {
    let mut run = balanced();
    run.kind = LinkKind::Loopback;
    // Without the 14 bytes of Ethernet.
    let both = passed(PAYLOAD + (BUNDLES + ACKS) * (HEADER - 14), BUNDLES + ACKS);
    for tally in [&mut run.sender, &mut run.receiver] {
        *eth0(tally) = interface(both, both);
    }
    let steps = run.steps();
    let points: Vec<&str> = steps.iter().map(|step| step.point.name()).collect();
    assert_eq!(points, ["sender_socket", "sender_interface", "receiver_socket"]);
    assert!(steps.iter().all(|step| !step.unaccounted), "{steps:#?}");
}

#[test]
fn loopback_counts_datagrams_without_the_header_of_ethernet() {
    let udp = |packets| Some(UdpTally { packets, ..UdpTally::default() });
    let with = |header: u64| {
        let mut run = balanced();
        (run.kind, run.transport) = (LinkKind::Loopback, Transport::Udp);
        let both = passed(PAYLOAD + SEGMENTS * header, SEGMENTS);
        for tally in [&mut run.sender, &mut run.receiver] {
            *eth0(tally) = interface(both, both);
            kernel(tally).socket = None;
        }
        (run.sender.udp, run.receiver.udp) = (udp(SEGMENTS), udp(SEGMENTS));
        run.open()
    };
    assert_eq!(with(28), []);
    assert_eq!(
        with(42).first().map(|found| found.0),
        Some("sender_interface"),
        "14 bytes each are of others"
    );
}

/// 9000 bytes and the header of UDP are six packets of 1480 bytes over IPv4, and one of 128.
#[test]
fn datagrams_that_ip_cuts_have_a_header_in_each_packet() {
    const DATAGRAMS: u64 = 10_000;
    let udp = |packets, lost| Some(UdpTally { packets, lost, ..UdpTally::default() });
    let with = |lost: u64, lost_packets: u64| {
        let mut run = balanced();
        (run.transport, run.cut) = (Transport::Udp, Some((9000, 1500)));
        let bytes = DATAGRAMS * (9000 + 8 + 7 * 34);
        // The last packet of a lost datagram is missing.
        let data = |missing: u64| passed(bytes - missing * (128 + 34), DATAGRAMS * 7 - missing);
        (run.sender.udp, run.receiver.udp) = (udp(DATAGRAMS, 0), udp(DATAGRAMS - lost, lost));
        for (tally, datagrams) in [(&mut run.sender, DATAGRAMS), (&mut run.receiver, DATAGRAMS - lost)] {
            tally.total_bytes = Bytes::new(datagrams * 9000);
            kernel(tally).socket = None;
        }
        eth0(&mut run.sender).sent = data(0);
        eth0(&mut run.sender).received = passed(0, 0);
        eth0(&mut run.receiver).received = data(lost_packets);
        eth0(&mut run.receiver).sent = passed(0, 0);
        run
    };
    assert_eq!(with(0, 0).open(), []);
    assert_eq!(with(1000, 1000).open(), [], "the other six packets of each arrived");
    let others = AccountedRun { cut: None, ..with(0, 0) };
    assert_eq!(others.open().first().map(|found| found.0), Some("sender_interface"), "not known to be cut");
}

#[test]
fn what_was_not_read_makes_no_step() {
    let mut run = balanced();
    run.sender.kernel = None;
    let points: Vec<&str> = run.steps().iter().map(|step| step.point.name()).collect();
    assert_eq!(points, ["receiver_interface", "receiver_socket", "return_sent"]);
    let nothing = RunRecord::fold(&[]);
    assert!(nothing.flows.is_empty());
}

#[test]
fn absurd_counts_make_no_panic() {
    for value in [0, 1, u64::MAX] {
        let counts = SocketCounts {
            sent_bytes: Bytes::new(value),
            retransmitted_bytes: Bytes::new(value),
            acked_bytes: Bytes::new(value),
            received_bytes: Bytes::new(value),
            segments_out: value,
            segments_in: value,
            data_segments_out: 0,
            data_segments_in: value,
        };
        let idle = IdleCounts {
            duration: Span::from_ns(1),
            sent_bytes: Bytes::new(value),
            received_bytes: Bytes::new(value),
        };
        let mut run = balanced();
        for tally in [&mut run.sender, &mut run.receiver] {
            tally.total_bytes = Bytes::new(value);
            kernel(tally).socket = Some(counts);
            kernel(tally).control = Some(counts);
            *eth0(tally) =
                InterfaceCounts { idle: Some(idle), ..interface(passed(value, value), passed(value, value)) };
        }
        run.ports = vec![("s>b", value)];
        let steps = run.steps();
        assert!(!steps.is_empty());
    }
}
