//! Two ends in virtual time, and bytes that our own peers never send.

mod delivery;
mod orders;
mod trials;

use std::collections::{BTreeMap, VecDeque};

use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction, FlowOutcome, HostInfo, Side, SideSettings, Tally, TestSpec};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::PeerError;
use crate::session::{Admission, Ended, FlowOrder, QueuePosition, Session, SessionInput, SessionOutput};

const COOKIE: [u8; 16] = *b"0123456789abcdef";
const DRAIN: Span = Span::from_secs(1);
const TRANSFER: Span = Span::from_secs(2);

/// Two sessions, a path with a delay between them, and hosts that open, transfer and close immediately.
struct NativeWorld {
    now: Timestamp,
    delay: Span,
    client: ClientSession,
    server: ServerSession,
    wire: VecDeque<(Timestamp, bool, Vec<u8>)>,
    /// Later actions of the hosts: the end of a flow at one end (true is the client).
    later: VecDeque<(Timestamp, bool, FlowId, Direction)>,
    orders: BTreeMap<bool, Vec<FlowOrder>>,
    next_flow: FlowId,
    log: Vec<String>,
    /// Number of messages after which the path is cut.
    cut_after: usize,
    carried: usize,
    /// Whether flows end when their data have been sent; otherwise only when they are cut.
    drains: bool,
    failure: Option<(bool, Timestamp, PeerError)>,
}

impl NativeWorld {
    /// One phase with these directions.
    fn new(delay: Span, directions: &[Direction]) -> Self {
        let mut spec = TestSpec::default();
        spec.traffic.upload = directions == [Direction::Upload];
        spec.traffic.bidir = directions.len() == 2;
        Self::asking(delay, spec)
    }

    fn asking(delay: Span, spec: TestSpec) -> Self {
        let start = Timestamp::START;
        let spec = spec.checked().unwrap();
        Self {
            now: start,
            delay,
            client: ClientSession::new(start, HostInfo::default(), spec, DRAIN),
            server: ServerSession::new(start),
            wire: VecDeque::new(),
            later: VecDeque::new(),
            orders: BTreeMap::new(),
            next_flow: FlowId(1),
            log: Vec::new(),
            cut_after: usize::MAX,
            carried: 0,
            drains: true,
            failure: None,
        }
    }

    fn feed(&mut self, client: bool, input: SessionInput<'_>) {
        let result =
            if client { self.client.input(self.now, input) } else { self.server.input(self.now, input) };
        if let Err(error) = result {
            self.failure.get_or_insert((client, self.now, error));
        }
        self.drain(client);
    }

    fn drain(&mut self, client: bool) {
        while let Some(output) = if client { self.client.output() } else { self.server.output() } {
            let who = if client { "client" } else { "server" };
            match output {
                SessionOutput::Send(bytes) => {
                    self.carried += 1;
                    if self.carried <= self.cut_after {
                        self.wire.push_back((self.now + self.delay, !client, bytes));
                    }
                }
                SessionOutput::Asked(hello) => {
                    self.log.push(format!("server: asked for {} streams", hello.spec.traffic.streams));
                    let host = HostInfo { name: "b".into(), ..HostInfo::default() };
                    self.feed(
                        false,
                        SessionInput::Admit(Box::new(Admission { host, cookie: COOKIE, concurrent_runs: 1 })),
                    );
                }
                SessionOutput::Welcomed(welcome) => {
                    assert_eq!((welcome.cookie, welcome.host.name.as_str()), (COOKIE, "b"));
                    self.log.push("client: welcomed".into());
                }
                SessionOutput::Open(flows) => {
                    self.orders.insert(client, flows);
                    self.feed(client, SessionInput::FlowsOpen);
                }
                SessionOutput::Start => {
                    self.log.push(format!("{who}: start"));
                    for order in self.orders.get(&client).cloned().unwrap_or_default() {
                        let span = if side(&order, client) == Side::Sender {
                            TRANSFER
                        } else {
                            TRANSFER + self.delay
                        };
                        self.later.push_back((self.now + span, client, order.flow(), order.direction()));
                    }
                }
                SessionOutput::Cut => {
                    self.log.push(format!("{who}: cut"));
                    for order in self.orders.get(&client).cloned().unwrap_or_default() {
                        self.end(client, &order);
                    }
                }
                SessionOutput::PhaseDone => self.log.push(format!("{who}: phase done")),
                SessionOutput::PeerResults(results) => {
                    let entries = results.iter().map(|flow| format!("{who}: result of {}", flow.name));
                    self.log.extend(entries);
                }
                SessionOutput::PeerEnded(ended) => {
                    self.log.push(format!(
                        "{who}: peer ended {} with {}",
                        ended.flow,
                        ended.tally.total_bytes.get()
                    ));
                }
                SessionOutput::Queued(place) => self.log.push(format!("{who}: place {}", place.position)),
                SessionOutput::Done => self.log.push(format!("{who}: done")),
                SessionOutput::StopWriting => self.log.push(format!("{who}: stop")),
                SessionOutput::PeerSenderDone { .. }
                | SessionOutput::PeerProgress(_)
                | SessionOutput::PeerSamples { .. } => {}
                SessionOutput::Trial(_) | SessionOutput::PeerTrial(_) => panic!("nobody asked for a series"),
            }
        }
    }

    fn end(&mut self, client: bool, order: &FlowOrder) {
        let tally = Tally { total_bytes: Bytes::new(77), ..Tally::default() };
        let settings = SideSettings::default();
        let ended =
            Ended { flow: order.flow(), side: side(order, client), settings, tally, caveats: Vec::new() };
        self.feed(client, SessionInput::FlowEnded(Box::new(ended)));
    }

    /// Advances to the next event; false if there is none.
    fn step(&mut self) -> bool {
        let arrival = self.wire.front().map(|w| w.0);
        let host = self.later.front().map(|l| l.0);
        let timers = [self.client.deadline(), self.server.deadline()];
        let Some(next) = [arrival, host].into_iter().chain(timers).flatten().min() else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            if let Some((_, client, bytes)) = self.wire.pop_front() {
                self.feed(client, SessionInput::Bytes(&bytes));
            }
        } else if host == Some(next) {
            if let Some((_, client, flow, direction)) = self.later.pop_front() {
                let order = FlowOrder::new(&CheckedSpec::default(), flow, direction, Bytes::new(1)).unwrap();
                if side(&order, client) == Side::Sender {
                    self.feed(client, SessionInput::SenderDone { flow });
                }
                if self.drains {
                    self.end(client, &order);
                }
            }
        } else {
            self.feed(timers[0] == Some(next), SessionInput::Tick);
        }
        true
    }

    fn run_until(&mut self, what: &str, limit: Span) {
        while !self.log.iter().any(|line| line == what) && self.failure.is_none() {
            assert!(self.step(), "nothing will happen before '{what}': {:?}", self.log);
            assert!(self.now.since(Timestamp::START) < limit, "no '{what}' in time: {:?}", self.log);
        }
    }

    fn measure(&mut self, directions: &[Direction]) {
        let numbered = directions.iter().zip((self.next_flow.0..).map(FlowId));
        let orders = numbered.map(|(direction, flow)| order(flow, *direction)).collect();
        self.next_flow.0 += directions.len() as u16;
        self.feed(true, SessionInput::Measure(orders));
    }
}

fn order(flow: FlowId, direction: Direction) -> FlowOrder {
    FlowOrder::new(&CheckedSpec::default(), flow, direction, Bytes::new(1)).unwrap()
}

fn side(order: &FlowOrder, client: bool) -> Side {
    if (order.direction() == Direction::Upload) == client { Side::Sender } else { Side::Receiver }
}

fn whole_run(delay: Span, directions: &[Direction]) -> NativeWorld {
    let mut world = NativeWorld::new(delay, directions);
    world.drain(true);
    world.run_until("client: welcomed", Span::from_secs(3));
    world.measure(directions);
    world.run_until("client: phase done", Span::from_secs(20));
    let result = |name: &str| FlowOutcome {
        name: name.into(),
        bitrate: None,
        transactions_per_second: None,
        verdict: None,
    };
    // One result too many.
    let results =
        directions.iter().map(|way| result(way.name())).chain([result("a flow that was not there")]);
    world.feed(true, SessionInput::Finish(results.collect()));
    world.run_until("server: done", Span::from_secs(25));
    world
}

#[test]
fn both_ends_come_to_a_regular_end_in_every_direction() {
    use Direction::{Download, Upload};
    for directions in [&[Upload][..], &[Download], &[Upload, Download]] {
        for delay in [Span::ZERO, Span::from_ms(300)] {
            let world = whole_run(delay, directions);
            assert!(world.failure.is_none(), "{:?}", world.failure);
            for flow in 1..=directions.len() {
                for who in ["client", "server"] {
                    let line = format!("{who}: peer ended {flow} with 77");
                    assert!(world.log.contains(&line), "{line} not in {:?}", world.log);
                }
            }
            assert!(!world.log.iter().any(|line| line.ends_with("cut")), "{:?}", world.log);
            for way in directions {
                let line = format!("server: result of {}", way.name());
                assert!(world.log.contains(&line), "{line} not in {:?}", world.log);
            }
            assert!(!world.log.iter().any(|line| line.contains("not there")), "{:?}", world.log);
        }
    }
}

#[test]
fn a_drain_that_does_not_end_is_cut_at_both_ends() {
    let mut world = NativeWorld::new(Span::from_ms(10), &[Direction::Upload]);
    world.drains = false;
    world.drain(true);
    world.run_until("client: welcomed", Span::from_secs(1));
    world.measure(&[Direction::Upload]);
    world.run_until("client: phase done", Span::from_secs(10));
    assert!(world.failure.is_none(), "{:?}", world.failure);
    assert!(world.log.contains(&"client: cut".to_owned()) && world.log.contains(&"server: cut".to_owned()));
    // Opening takes a little more than 3 round trips; the cut follows one drain time after the end of the
    // sender.
    let cut = world.now.since(Timestamp::START);
    assert!(cut >= TRANSFER + DRAIN && cut < TRANSFER + DRAIN + Span::from_ms(200), "{cut}");
}

#[test]
fn a_stop_before_the_start_holds_from_the_start() {
    let mut world = NativeWorld::asking(Span::from_ms(10), TestSpec::default());
    world.drain(true);
    world.run_until("client: welcomed", Span::from_secs(1));
    world.measure(&[Direction::Download]);
    world.feed(true, SessionInput::Stop);
    world.run_until("server: stop", Span::from_secs(1));
    assert!(world.failure.is_none(), "{:?}", world.failure);
    let at = |log: &[String], what: &str| log.iter().position(|line| line == what);
    assert!(at(&world.log, "client: start") < at(&world.log, "client: stop"), "{:?}", world.log);
    assert!(at(&world.log, "server: start") < at(&world.log, "server: stop"), "{:?}", world.log);
    // It does not stop the next phase.
    world.run_until("client: phase done", Span::from_secs(10));
    world.log.clear();
    world.measure(&[Direction::Upload]);
    world.run_until("client: phase done", Span::from_secs(20));
    assert_eq!(at(&world.log, "client: stop"), None, "{:?}", world.log);
}

#[test]
fn a_path_cut_at_any_message_ends_both_sides_in_time() {
    let carried = whole_run(Span::from_ms(5), &[Direction::Upload, Direction::Download]).carried;
    assert!(carried > 15);
    for cut_after in 0..carried - 1 {
        let mut world = NativeWorld::new(Span::from_ms(5), &[Direction::Upload, Direction::Download]);
        world.cut_after = cut_after;
        world.drain(true);
        let mut asked = false;
        let mut cut_at = None;
        while world.failure.is_none() && !world.log.contains(&"server: done".to_owned()) {
            if world.carried > cut_after {
                cut_at.get_or_insert(world.now);
            }
            if !asked && world.log.contains(&"client: welcomed".to_owned()) {
                asked = true;
                world.measure(&[Direction::Upload, Direction::Download]);
            }
            if world.log.contains(&"client: phase done".to_owned()) {
                world.feed(true, SessionInput::Finish(Vec::new()));
            }
            if !world.step() {
                break;
            }
        }
        let (_, when, _) =
            world.failure.clone().unwrap_or_else(|| panic!("cut after {cut_after}: {:?}", world.log));
        let waited = when.since(cut_at.unwrap_or(Timestamp::START));
        assert!(waited < Span::from_secs(8), "cut after {cut_after}: {waited}, {:?}", world.failure);
    }
}

#[test]
fn a_waiting_client_hears_its_place_and_then_begins() {
    let mut server = ServerSession::new(Timestamp::START);
    let mut client = ClientSession::new(Timestamp::START, HostInfo::default(), CheckedSpec::default(), DRAIN);
    let mut now = Timestamp::START;
    let carry = |client: &mut ClientSession, server: &mut ServerSession, now: Timestamp| {
        let mut seen = Vec::new();
        loop {
            let mut moved = false;
            while let Some(output) = client.output() {
                moved = true;
                match output {
                    SessionOutput::Send(bytes) => server.input(now, SessionInput::Bytes(&bytes)).unwrap(),
                    other => seen.push(format!("{other:?}")),
                }
            }
            while let Some(output) = server.output() {
                moved = true;
                match output {
                    SessionOutput::Send(bytes) => client.input(now, SessionInput::Bytes(&bytes)).unwrap(),
                    other => seen.push(format!("{other:?}")),
                }
            }
            if !moved {
                return seen.join(" ");
            }
        }
    };
    assert!(carry(&mut client, &mut server, now).contains("Asked"));
    server
        .input(now, SessionInput::Wait(QueuePosition { position: 2, wait_ns: Span::from_secs(30) }))
        .unwrap();
    assert!(carry(&mut client, &mut server, now).contains("Queued(QueuePosition { position: 2"));
    // One minute in the queue, kept alive only by heartbeats.
    for _ in 0..600 {
        now = now + Span::from_ms(100);
        client.input(now, SessionInput::Tick).unwrap();
        server.input(now, SessionInput::Tick).unwrap();
        carry(&mut client, &mut server, now);
    }
    let admission = Admission { host: HostInfo::default(), cookie: COOKIE, concurrent_runs: 0 };
    server.input(now, SessionInput::Admit(Box::new(admission))).unwrap();
    assert!(carry(&mut client, &mut server, now).contains("Welcomed"));
}

#[test]
fn other_services_are_named() {
    let greet = |bytes: &[u8]| {
        let mut client =
            ClientSession::new(Timestamp::START, HostInfo::default(), CheckedSpec::default(), DRAIN);
        client.input(Timestamp::START, SessionInput::Bytes(bytes)).unwrap_err().to_string()
    };
    assert!(greet(b"HTTP/1.1 400 Bad Request\r\n").contains("HTTP server"));
    assert!(greet(b"SSH-2.0-OpenSSH_9.2\r\n").contains("SSH server"));
    assert!(greet(b"\x15\x03\x01\x00\x02").contains("TLS server"));
    assert!(greet(b"what?").contains("unknown service"));
    let mut client = ClientSession::new(Timestamp::START, HostInfo::default(), CheckedSpec::default(), DRAIN);
    let later = Timestamp::START + Span::from_secs(5);
    let silent = client.input(later, SessionInput::Tick).unwrap_err().to_string();
    assert!(silent.contains("no answer"), "{silent}");
}

#[test]
fn other_versions_are_distinguished_from_garbage() {
    let mut preface = Preface::CONTROL.encode();
    preface[8] = 9;
    let error = Preface::decode(&preface).unwrap_err();
    assert_eq!(error, PeerError::Version { theirs: "9".into(), ours: VERSION.to_string() });
    let mut server = ServerSession::new(Timestamp::START);
    let hello = br#"{"type":"hello","versions":[7,8],"capabilities":[],"host":{},"spec":{}}"#;
    let mut bytes = Preface::CONTROL.encode().to_vec();
    bytes.extend_from_slice(&u32::try_from(hello.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(hello);
    let error = server.input(Timestamp::START, SessionInput::Bytes(&bytes)).unwrap_err();
    assert!(matches!(error, PeerError::Version { .. }), "{error}");
    let mut sent = Vec::new();
    while let Some(SessionOutput::Send(bytes)) = server.output() {
        sent.extend(bytes);
    }
    let mut client = ClientSession::new(Timestamp::START, HostInfo::default(), CheckedSpec::default(), DRAIN);
    let error = client.input(Timestamp::START, SessionInput::Bytes(&sent)).unwrap_err();
    assert!(error.to_string().contains("same version"), "{error}");
}

#[test]
fn a_server_that_lacks_a_feature_is_distinguished_from_a_broken_one() {
    let welcome = |capabilities: &str, change: fn(&mut TestSpec)| {
        let mut spec = TestSpec::default();
        change(&mut spec);
        let spec = spec.checked().unwrap();
        let mut client = ClientSession::new(Timestamp::START, HostInfo::default(), spec, DRAIN);
        let message = format!(
            r#"{{"type":"welcome","version":2,"capabilities":{capabilities},"host":{{}},"cookie":"{}","concurrent_runs":0}}"#,
            "0".repeat(32)
        );
        let mut bytes = Preface::CONTROL.encode().to_vec();
        bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(message.as_bytes());
        client.input(Timestamp::START, SessionInput::Bytes(&bytes)).map(|()| {
            let mut outputs = std::iter::from_fn(|| client.output());
            outputs.find_map(|output| match output {
                SessionOutput::Welcomed(welcome) => Some(welcome.capabilities),
                _ => None,
            })
        })
    };
    let can = welcome(r#"["tcp","probe_tcp","teleport"]"#, |_| {}).unwrap().unwrap();
    assert_eq!(can, ["tcp", "probe_tcp"], "what only one end can do is not in it");
    let lacks = |change| welcome(r#"["tcp","probe_tcp"]"#, change).unwrap_err();
    let error = |what| PeerError::Lacks { what, can: "tcp, probe_tcp".into() };
    assert_eq!(lacks(|spec| spec.traffic.udp = true), error("udp"));
    assert_eq!(lacks(|spec| spec.socket.quick_ack = true), error("sending"));
    let bursts = |spec: &mut TestSpec| {
        spec.traffic.rate = Bitrate::from_bps(1e6);
        spec.traffic.burst_period = Some(Span::from_secs(1));
    };
    assert_eq!(lacks(bursts), error("sending"));
    let to_a_group = |spec: &mut TestSpec| {
        spec.traffic.udp = true;
        spec.traffic.multicast = "239.1.2.3".parse().ok();
    };
    let older = welcome(r#"["udp","sending"]"#, to_a_group).unwrap_err();
    assert_eq!(older, PeerError::Lacks { what: "multicast", can: "udp, sending".into() });
    let with_times = |spec: &mut TestSpec| (spec.traffic.udp, spec.traffic.txtime) = (true, true);
    let older = welcome(r#"["udp","sending"]"#, with_times).unwrap_err();
    assert_eq!(older, PeerError::Lacks { what: "txtime", can: "udp, sending".into() });
}

#[test]
fn a_stranger_cannot_make_us_hold_much() {
    let mut server = ServerSession::new(Timestamp::START);
    let mut bytes = Preface::CONTROL.encode().to_vec();
    bytes.extend_from_slice(&u32::try_from(HELLO_LIMIT + 1).unwrap().to_be_bytes());
    let error = server.input(Timestamp::START, SessionInput::Bytes(&bytes)).unwrap_err();
    assert!(matches!(error, PeerError::Misbehaved { .. }), "{error}");
    // An incomplete greeting is given up at its deadline.
    let mut server = ServerSession::new(Timestamp::START);
    server.input(Timestamp::START, SessionInput::Bytes(&bytes[..20])).unwrap();
    let deadline = server.deadline().unwrap();
    assert!(server.input(deadline, SessionInput::Tick).is_err());
}

#[test]
fn the_table_distinguishes_ours_from_others() {
    let native = &NATIVE;
    assert_eq!((native.sniff)(b"LINE"), Match::More);
    assert_eq!((native.sniff)(&Preface::CONTROL.encode()), Match::Yes);
    assert_eq!((native.sniff)(b"GET / HTTP/1.1"), Match::No);
    assert_ne!(data_tag(&COOKIE), COOKIE[..8]);
}

#[test]
fn datagrams_to_a_group_are_told_apart_by_group_and_port() {
    let tag = |group: &str, port| data_tag(&multicast_cookie(group.parse().unwrap(), port));
    let all = [
        tag("239.1.2.3", 5000),
        tag("239.1.2.3", 5001),
        tag("239.1.2.3", 0x8813),
        tag("239.1.3.3", 5000),
        tag("ff15::1", 5000),
        tag("ff15::2", 5000),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());
}

fn any_datagram() -> impl Strategy<Value = ProbeDatagram> {
    let kind = prop_oneof![
        Just(DatagramKind::Open),
        Just(DatagramKind::Challenge),
        Just(DatagramKind::Echo),
        Just(DatagramKind::Ready),
        Just(DatagramKind::Probe),
        Just(DatagramKind::Reply),
    ];
    (kind, any::<u16>(), any::<u32>(), any::<[u8; 16]>(), any::<u64>(), any::<[u64; 3]>()).prop_map(
        |(kind, flow, stream, cookie, number, times)| ProbeDatagram {
            kind,
            flow: FlowId(flow),
            stream,
            cookie,
            number,
            times,
        },
    )
}

proptest! {
    #[test]
    fn datagrams_round_trip(datagram in any_datagram()) {
        prop_assert_eq!(ProbeDatagram::decode(&datagram.encode()), Some(datagram));
    }

    #[test]
    fn prefaces_round_trip(flow in any::<u16>(), stream in any::<u32>(), cookie in any::<[u8; 16]>()) {
        let preface = Preface { connection: ConnectionPurpose::Data, flow: FlowId(flow), stream, cookie };
        prop_assert_eq!(Preface::decode(&preface.encode()), Ok(Some(preface)));
    }

    #[test]
    fn noise_does_no_harm(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8), preface: bool) {
        let mut client = ClientSession::new(Timestamp::START, HostInfo::default(), CheckedSpec::default(), DRAIN);
        let mut server = ServerSession::new(Timestamp::START);
        if preface {
            let start = Preface::CONTROL.encode();
            client.input(Timestamp::START, SessionInput::Bytes(&start)).unwrap();
            server.input(Timestamp::START, SessionInput::Bytes(&start)).unwrap();
        }
        for chunk in &chunks {
            let _ = ProbeDatagram::decode(chunk);
            let _ = client.input(Timestamp::START, SessionInput::Bytes(chunk));
            let _ = server.input(Timestamp::START, SessionInput::Bytes(chunk));
        }
    }
}
