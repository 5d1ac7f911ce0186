//! Our server against the requests of real clients, and against clients that misbehave.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::Side;
use linerate_units::{Bytes, Span, Timestamp};

use super::{messages, transcript};
use crate::netperf::wire::kind;
use crate::netperf::{
    DataRoles, MESSAGE_BYTES, NetperfMessage, NetperfRequest, NetperfResults, NetperfServer,
    NetperfServerOptions, Response, ServerCommand,
};
use crate::stand_in::{
    CpuTime, EndMark, FlowCounts, FlowId, FlowTask, HostCounts, Input, Link, Opened, Output, StandIn, Stop,
    StreamCounts, SystemError, Transport,
};
use crate::virtual_hosts;

const LISTENER: Link = Link(0);
/// The port for data of the first client.
const DATA: Link = Link(1);
const CONTROL: Link = Link::FIRST_ACCEPTED;

struct NetperfServerHost {
    server: NetperfServer,
    now: Timestamp,
    outputs: VecDeque<Output>,
}

fn opened(port: u16) -> Opened {
    virtual_hosts::opened(([10, 0, 0, 2], port), ([10, 0, 0, 1], 40_000))
}

impl NetperfServerHost {
    /// A server that listens and has accepted a client.
    fn with_client(options: NetperfServerOptions) -> Self {
        let server = NetperfServer::new(options);
        let mut host = Self { server, now: Timestamp::START, outputs: VecDeque::new() };
        host.give(Input::Begin);
        assert!(matches!(host.next(), Output::Listen { link: LISTENER, port: 12_865, .. }));
        host.give(Input::Opened { link: LISTENER, opened: opened(12_865) });
        let Output::Print(text) = host.next() else { panic!() };
        assert_eq!(text, "Starting netserver with host 'IN(6)ADDR_ANY' port '12865' and family AF_UNSPEC\n");
        host.accept(LISTENER, CONTROL);
        host
    }

    fn new() -> Self {
        Self::with_client(NetperfServerOptions::default())
    }

    fn give(&mut self, input: Input<'_>) {
        self.server.input(self.now, input);
        while let Some(output) = self.server.output() {
            match output {
                Output::Look => {
                    self.server
                        .input(self.now, Input::Counts { cpu: CpuTime::default(), flows: &[counts(7, 1)] });
                }
                Output::LookHost { .. } => {
                    let used = 30 + self.now.as_ns() / 1_000_000_000;
                    let cpu = Some([used, 0, used, 1000 + 2 * used, 0, 0, 0, 0]);
                    let counts = HostCounts { cpu, cores: Some(4), ..HostCounts::default() };
                    self.server.input(self.now, Input::Host(&counts));
                }
                output => self.outputs.push_back(output),
            }
        }
    }

    fn next(&mut self) -> Output {
        self.outputs.pop_front().expect("an output")
    }

    fn accept(&mut self, listener: Link, link: Link) {
        self.give(Input::Accepted { listener, link, opened: opened(12_865) });
    }

    fn receive(&mut self, link: Link, bytes: &[u8]) {
        self.give(Input::Bytes { link, bytes });
    }

    fn close(&mut self, link: Link) {
        self.give(Input::Closed { link, reason: None });
    }

    /// Requests a test that is admitted; returns the options of its port and the response.
    fn request(&mut self, bytes: &[u8]) -> Response {
        self.receive(CONTROL, bytes);
        let Output::Ask(planned) = self.next() else { panic!() };
        self.give(Input::Admitted { run: planned.run });
        let Output::Listen { link: DATA, .. } = self.next() else { panic!() };
        self.give(Input::Opened { link: DATA, opened: opened(45_000) });
        let message = self.message();
        assert_eq!((message.kind(), message.errno()), (kind::TEST_RESPONSE, 0));
        Response::decode(&message)
    }

    fn message(&mut self) -> NetperfMessage {
        let Output::Send { link: CONTROL, mut bytes } = self.next() else { panic!() };
        NetperfMessage::take(&mut bytes).unwrap()
    }

    fn results(&mut self) -> NetperfResults {
        let message = self.message();
        assert_eq!((message.kind(), message.errno()), (kind::TEST_RESULTS, 0));
        NetperfResults::decode(&message)
    }

    fn task(&mut self) -> FlowTask {
        match self.next() {
            Output::Start(task) => *task,
            other => panic!("{other:?}"),
        }
    }

    /// Takes all outputs.
    fn rest(&mut self) -> Vec<Output> {
        self.outputs.drain(..).collect()
    }

    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(deadline) = self.server.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.give(Input::Tick);
            assert!(self.server.deadline().is_none_or(|next| next > self.now), "a tick moves the deadline");
        }
        self.now = until;
    }
}

fn counts(bytes: u64, calls: u64) -> FlowCounts {
    let stream =
        StreamCounts { bytes, calls, packets: calls, retransmits: Some(5), ..StreamCounts::default() };
    FlowCounts { flow: FlowId(0), streams: vec![stream], ..FlowCounts::default() }
}

fn over(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::RunOver { .. })).count()
}

/// The first message of a recorded client, and the real server's answer to it.
fn recorded(transcript: &str) -> (Vec<u8>, Response) {
    let all = messages(transcript);
    (all[0].1.clone(), Response::decode(&NetperfMessage::take(&mut all[1].1.clone()).unwrap()))
}

#[test]
fn a_real_client_that_sends_gets_the_answers_of_the_real_server() {
    let mut host = NetperfServerHost::new();
    let (request, real) = recorded(transcript!("tcp-stream"));
    let response = host.request(&request);
    assert_eq!(Response { port: real.port, ..response }, real);
    host.accept(DATA, Link(CONTROL.0 + 1));
    assert!(matches!(host.next(), Output::Close { link: DATA }));
    let task = host.task();
    assert_eq!((task.side, task.length, task.end_mark), (Side::Receiver, Bytes::new(131_072), EndMark::None));
    host.pass(Span::from_ms(2_010));
    host.give(Input::Ended { counts: &counts(5_000_000_000, 70_000) });
    assert!(matches!(host.next(), Output::Forget { flow: FlowId(0) }));
    let results = host.results();
    assert_eq!((results.received, results.receive_calls), (5_000_000_000, 70_000));
    assert_eq!((results.sent, results.elapsed), (0, 2.01));
    assert_eq!(results.congestion, "cubic");
    let rest = host.rest();
    assert_eq!(over(&rest), 1, "{rest:?}");
    // The next test of the same client (-i): another run, the same port for data.
    host.request(&request);
    host.close(CONTROL);
    let rest = host.rest();
    assert!(rest.iter().any(|output| matches!(output, Output::Close { link: CONTROL })), "{rest:?}");
    assert_eq!(over(&rest), 1);
}

#[test]
fn a_real_client_that_receives_gets_data_for_its_time() {
    let mut host = NetperfServerHost::new();
    let (request, real) = recorded(transcript!("tcp-maerts"));
    let response = host.request(&request);
    assert_eq!(Response { port: real.port, ..response }, real);
    host.pass(Span::from_ms(100));
    host.accept(DATA, Link(CONTROL.0 + 1));
    host.next();
    let task = host.task();
    assert_eq!((task.side, task.length), (Side::Sender, Bytes::new(16_384)));
    assert_eq!(task.time, Some(Span::from_ms(1_900)), "the time counts from the response");
    host.pass(Span::from_ms(1_900));
    host.give(Input::Written { flow: FlowId(0) });
    assert!(matches!(host.next(), Output::Stop { flow: FlowId(0), how: Stop::Regularly }));
    host.give(Input::Ended { counts: &counts(1 << 33, 9) });
    host.next();
    let results = host.results();
    assert_eq!((results.sent, results.received, results.elapsed), (1 << 33, 0, 2.0));
    assert_eq!(results.retransmits, Some(5));
}

#[test]
fn datagrams_end_with_an_empty_one_or_with_the_timer() {
    let mut host = NetperfServerHost::new();
    let (request, real) = recorded(transcript!("udp-stream"));
    let response = host.request(&request);
    assert_eq!(response.port, 45_000);
    assert_eq!((response.flags, response.cpu_rate), (real.flags, real.cpu_rate));
    let task = host.task();
    assert_eq!((task.transport, task.links), (Transport::Udp, vec![DATA]));
    assert_eq!(task.end_mark, EndMark::Short { bytes: 0, nth: 1 });
    host.pass(Span::from_ms(5_900));
    assert!(host.rest().is_empty());
    host.pass(Span::from_ms(100));
    assert!(matches!(host.next(), Output::Stop { flow: FlowId(0), how: Stop::AtOnce }));
    host.give(Input::Ended { counts: &counts(1000, 1) });
    host.next();
    assert_eq!(host.results().elapsed, 2.0, "without the four seconds of waiting");
}

#[test]
fn requests_get_responses_however_they_are_cut() {
    let mut host = NetperfServerHost::new();
    let (request, real) = recorded(transcript!("tcp-rr"));
    let response = host.request(&request);
    assert_eq!(Response { port: real.port, ..response }, real);
    let data = Link(CONTROL.0 + 1);
    host.accept(DATA, data);
    host.receive(data, &[1; 10]);
    assert!(host.rest().is_empty());
    host.receive(data, &[1; 6 + 16 + 3]);
    let Output::Send { bytes, .. } = host.next() else { panic!() };
    assert_eq!(bytes.len(), 2 * 512, "two requests were complete");
    host.receive(data, &[1; 13]);
    assert!(host.rest().is_empty(), "not before the last ones are on their way");
    host.give(Input::Sent { link: data });
    let Output::Send { bytes, .. } = host.next() else { panic!() };
    assert_eq!(bytes.len(), 512);
    host.pass(Span::from_secs(1));
    host.close(data);
    assert!(matches!(host.next(), Output::Close { .. }));
    let results = host.results();
    assert_eq!((results.transactions, results.received, results.sent), (3, 48, 3 * 512));
    assert_eq!(results.elapsed, 1.0);
}

#[test]
fn every_transaction_may_have_its_own_connection() {
    let mut host = NetperfServerHost::new();
    let (request, _) = recorded(transcript!("tcp-crr"));
    host.request(&request);
    for number in 1..=3 {
        let data = Link(CONTROL.0 + number);
        host.accept(DATA, data);
        host.receive(data, b"x");
        assert!(matches!(host.next(), Output::Send { bytes, .. } if bytes.len() == 1));
        assert!(matches!(host.next(), Output::Close { link } if link == data));
        // What is left of a closed connection is none of our business.
        host.receive(data, b"x");
        host.close(data);
    }
    host.pass(Span::from_ms(2_500));
    host.accept(DATA, Link(CONTROL.0 + 9));
    host.close(Link(CONTROL.0 + 9));
    host.next();
    assert_eq!(host.results().transactions, 3);
}

#[test]
fn datagrams_are_answered_to_the_client_only() {
    let mut host = NetperfServerHost::new();
    let (request, _) = recorded(transcript!("udp-rr"));
    host.request(&request);
    let client = SocketAddr::from(([10, 0, 0, 1], 50_000));
    let mut send = |from: SocketAddr, bytes: &[u8]| {
        host.give(Input::Datagram { link: DATA, from, bytes });
        host.rest()
    };
    let answer = send(client, &[0; 100]);
    assert!(
        matches!(&answer[..], [Output::SendTo { link: DATA, to, bytes }] if *to == client && bytes.len() == 200)
    );
    assert!(send(([10, 0, 0, 3], 50_000).into(), &[0; 100]).is_empty());
    assert!(send(([10, 0, 0, 3], 50_000).into(), &[]).is_empty());
    let end = send(client, &[]);
    let Some(Output::Send { link: CONTROL, bytes }) = end.first() else { panic!("{end:?}") };
    let results = NetperfResults::decode(&NetperfMessage::take(&mut bytes.clone()).unwrap());
    assert_eq!((results.transactions, results.received, results.sent), (1, 100, 200));
    assert!(send(client, &[]).is_empty(), "the second and third empty datagram");
}

#[test]
fn processor_time_is_measured_when_it_is_wanted() {
    let mut host = NetperfServerHost::new();
    let (request, real) = recorded(transcript!("tcp-stream-cpu"));
    let response = host.request(&request);
    assert_eq!(Response { port: real.port, ..response }, real);
    host.accept(DATA, Link(CONTROL.0 + 1));
    host.rest();
    host.pass(Span::from_secs(2));
    host.give(Input::Ended { counts: &counts(1, 1) });
    host.next();
    let results = host.results();
    assert_eq!(results.cores, 4);
    assert_eq!(results.cpu.map(|cpu| (cpu.busy, cpu.user, cpu.system)), Some((50.0, 25.0, 25.0)));
}

/// The answer to a request that is refused.
fn refused(request: &NetperfRequest) -> i32 {
    let mut host = NetperfServerHost::new();
    host.receive(CONTROL, &request.encode().into_bytes());
    let message = host.message();
    assert!(host.rest().is_empty());
    // The client may ask again.
    host.request(&NetperfRequest::default().encode().into_bytes());
    message.errno()
}

#[test]
fn what_is_not_served_is_refused_with_an_error_number() {
    use crate::netperf::NetperfProtocol;
    let both = DataRoles { sends: true, receives: true };
    let sends = DataRoles { sends: true, receives: false };
    let base = NetperfRequest::default();
    let rr = NetperfRequest { roles: both, request_size: Some(1), response_size: Some(1), ..base.clone() };
    assert_eq!(refused(&NetperfRequest { protocol: NetperfProtocol::Other(132), ..base.clone() }), 93);
    assert_eq!(refused(&NetperfRequest { protocol: NetperfProtocol::Udp, roles: sends, ..base.clone() }), 95);
    assert_eq!(refused(&NetperfRequest { roles: DataRoles::default(), ..base.clone() }), 95);
    assert_eq!(refused(&NetperfRequest { request_size: None, ..rr.clone() }), 22);
    assert_eq!(refused(&NetperfRequest { response_size: Some(0), ..rr.clone() }), 22);
    assert_eq!(refused(&NetperfRequest { request_size: Some(i32::MAX as u32), ..rr.clone() }), 90);
    assert_eq!(
        refused(&NetperfRequest {
            protocol: NetperfProtocol::Udp,
            response_size: Some(65_508),
            ..rr.clone()
        }),
        90
    );
    assert_eq!(refused(&NetperfRequest { protocol: NetperfProtocol::Udp, length: -5, ..rr.clone() }), 22);
    assert_eq!(refused(&NetperfRequest { roles: sends, send_size: Some(0), ..base.clone() }), 22);
    assert_eq!(refused(&NetperfRequest { length: i32::MIN, ..base }), 22);
}

#[test]
fn a_busy_server_and_a_port_in_use_are_reported() {
    let mut host = NetperfServerHost::new();
    let request = NetperfRequest::default().encode().into_bytes();
    host.receive(CONTROL, &request);
    let Output::Ask(planned) = host.next() else { panic!() };
    host.give(Input::Refused { run: planned.run, why: "busy".to_owned(), may_retry: true });
    assert_eq!(host.message().errno(), 16);
    host.receive(CONTROL, &request);
    let Output::Ask(planned) = host.next() else { panic!() };
    host.give(Input::Admitted { run: planned.run });
    host.next();
    let reason = SystemError { errno: 13, text: "Permission denied".to_owned() };
    host.give(Input::NotOpened { link: DATA, reason });
    let rest = host.rest();
    assert_eq!(over(&rest), 1);
    let sent = rest.iter().find_map(|output| match output {
        Output::Send { bytes, .. } => NetperfMessage::take(&mut bytes.clone()),
        _ => None,
    });
    assert_eq!(sent.unwrap().errno(), 13);
}

#[test]
fn other_requests_get_short_answers() {
    let mut host = NetperfServerHost::new();
    for (asked, answered, errno) in [
        (kind::DEBUG_ON, kind::DEBUG_OK, 0),
        (kind::DEBUG_OFF, kind::DEBUG_OK, 0),
        (kind::CPU_CALIBRATE, kind::CPU_CALIBRATE, 0),
        (kind::SYSTEM, kind::SYSTEM_RESPONSE, 0),
        (300, kind::TEST_RESPONSE, 998),
    ] {
        host.receive(CONTROL, &NetperfMessage::new(asked).into_bytes());
        let message = host.message();
        assert_eq!((message.kind(), message.errno()), (answered, errno));
    }
    host.receive(CONTROL, &NetperfMessage::new(kind::PASSPHRASE).into_bytes());
    assert!(host.rest().is_empty(), "a passphrase that nobody asked for is ignored");
}

#[test]
fn a_passphrase_comes_first() {
    let with = || {
        NetperfServerHost::with_client(NetperfServerOptions {
            passphrase: Some("secret".to_owned()),
            ..NetperfServerOptions::default()
        })
    };
    let real = messages(transcript!("passphrase"));
    let mut host = with();
    host.receive(CONTROL, &real[0].1);
    host.request(&NetperfRequest::default().encode().into_bytes());
    for wrong in
        [NetperfMessage::new(kind::PASSPHRASE).with_text("secre"), NetperfRequest::default().encode()]
    {
        let mut host = with();
        host.receive(CONTROL, &wrong.into_bytes());
        assert!(matches!(host.rest()[..], [Output::Close { link: CONTROL }]));
    }
}

#[test]
fn hostile_clients_cost_neither_memory_nor_time() {
    // Floods the control connection.
    let mut host = NetperfServerHost::new();
    host.request(&NetperfRequest::default().encode().into_bytes());
    host.receive(CONTROL, &[0; MESSAGE_BYTES]);
    host.receive(CONTROL, &[0; MESSAGE_BYTES]);
    assert!(host.rest().is_empty());
    host.receive(CONTROL, &[0; 1]);
    assert!(host.rest().iter().any(|output| matches!(output, Output::Close { link: CONTROL })));
    // Says nothing.
    let mut host = NetperfServerHost::new();
    host.pass(Span::from_secs(59));
    assert!(host.rest().is_empty());
    host.pass(Span::from_secs(2));
    assert!(matches!(host.rest()[..], [Output::Close { link: CONTROL }]));
    // Never opens the data connection of an endless test.
    let mut host = NetperfServerHost::new();
    host.request(&NetperfRequest { length: 0, ..NetperfRequest::default() }.encode().into_bytes());
    host.pass(Span::from_secs(66));
    assert_eq!(over(&host.rest()), 1);
    // Leaves in the middle of a flow, whose number is not used before it has ended.
    let mut host = NetperfServerHost::new();
    host.request(&NetperfRequest::default().encode().into_bytes());
    host.accept(DATA, Link(CONTROL.0 + 1));
    host.rest();
    host.close(CONTROL);
    let rest = host.rest();
    assert!(matches!(rest[0], Output::Stop { flow: FlowId(0), how: Stop::Abort }));
    assert_eq!(over(&rest), 1);
    host.accept(LISTENER, Link(CONTROL.0 + 2));
    host.receive(Link(CONTROL.0 + 2), &NetperfRequest::default().encode().into_bytes());
    let Output::Ask(planned) = host.next() else { panic!() };
    assert_eq!(planned.flows[0].0, FlowId(1));
    host.give(Input::Ended { counts: &counts(1, 1) });
    assert!(matches!(host.rest()[..], [Output::Forget { flow: FlowId(0) }]));
    // Connects again and again instead of sending.
    let mut host = NetperfServerHost::new();
    let (request, _) = recorded(transcript!("tcp-crr"));
    host.request(&request);
    (1..100).for_each(|number| host.accept(DATA, Link(CONTROL.0 + number)));
    let closed = host.rest().iter().filter(|output| matches!(output, Output::Close { .. })).count();
    assert_eq!(closed, 99 - 64);
    // Sends requests without reading the responses.
    let mut host = NetperfServerHost::new();
    host.request(&recorded(transcript!("tcp-rr")).0);
    let data = Link(CONTROL.0 + 1);
    host.accept(DATA, data);
    (0..1000).for_each(|_| host.receive(data, &[0; 65_536]));
    let sent: usize =
        host.rest().iter().map(|o| if let Output::Send { bytes, .. } = o { bytes.len() } else { 0 }).sum();
    assert!(sent <= 64 << 10, "{sent}");
}

#[test]
fn a_signal_ends_the_server() {
    let mut host = NetperfServerHost::new();
    host.request(&NetperfRequest::default().encode().into_bytes());
    host.give(Input::Signal(2));
    let rest = host.rest();
    assert_eq!(over(&rest), 1);
    assert!(matches!(rest.last(), Some(Output::Exit(130))));
}

#[test]
fn command_lines_are_those_of_netserver() {
    let parse = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        ServerCommand::parse(&words)
    };
    let ServerCommand::Serve(options) = parse("-D -4 -p 2000 -L 127.0.0.1 -Zsecret -v 2 -n4") else {
        panic!()
    };
    assert_eq!(options.listener(), "host '127.0.0.1' port '2000' and family AF_INET");
    assert_eq!(options.passphrase.as_deref(), Some("secret"));
    let ServerCommand::Serve(options) = parse("-L ,6 -DfNd") else { panic!() };
    assert!(options.ipv6 && options.local.is_none());
    assert_eq!(parse("-V"), ServerCommand::Print("Netperf version 2.7.0\n".to_owned()));
    for (line, starts) in [
        ("-h", "\nUsage: netserver [options]"),
        ("-q", "netserver: invalid option -- 'q'\n"),
        ("-p", "netserver: option requires an argument -- 'p'\n"),
        ("-p 70000", "netserver: '70000' is not a port\n"),
        ("-L nowhere", "netserver: -L takes an IP address here"),
    ] {
        let ServerCommand::Mistake(text) = parse(line) else { panic!("{line}") };
        assert!(text.starts_with(starts), "{text}");
    }
}
