//! Our client with hand-made answers: what it asks for, and what it prints, against recordings of netperf 2.7.0.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::{messages, options, options_at, transcript};
use crate::netperf::wire::kind;
use crate::netperf::{
    HostCpu, NetperfClient, NetperfClientOptions, NetperfMessage, NetperfRequest, NetperfResults, Response,
};
use crate::stand_in::{
    CpuTime, FlowCounts, FlowId, FlowTask, HostCounts, Input, Link, Opened, Output, StandIn, Stop,
    StreamCounts, SystemError,
};
use crate::virtual_hosts;

const CONTROL: Link = Link(0);
const SIZES: Link = Link(1);
const DATA: Link = Link(2);

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, host], port))
}

fn opened((snd_buf, rcv_buf): (u64, u64)) -> Opened {
    let link = virtual_hosts::opened(address(1, 40_000), address(1, 12_865));
    Opened { mss: Some(32_741), snd_buf, rcv_buf, ..link }
}

/// The buffers of Linux before a connection, and of datagrams.
const TCP_BUFFERS: (u64, u64) = (16_384, 131_072);
const UDP_BUFFERS: (u64, u64) = (212_992, 212_992);

/// A client with everything around it.
struct NetperfClientHost {
    client: NetperfClient,
    now: Timestamp,
    outputs: VecDeque<Output>,
    out: String,
    err: String,
    exit: Option<i32>,
    buffers: (u64, u64),
    /// Bytes of the flow, and the time of the counts.
    counts: FlowCounts,
    /// Ticks of busy and idle processors.
    host: HostCounts,
}

fn flow_counts(at: Timestamp, bytes: u64, calls: u64) -> FlowCounts {
    let stream =
        StreamCounts { bytes, calls, packets: calls, retransmits: Some(3), ..StreamCounts::default() };
    FlowCounts { flow: FlowId(0), at, last_at: Some(at), streams: vec![stream], ..FlowCounts::default() }
}

impl NetperfClientHost {
    fn new(options: NetperfClientOptions, buffers: (u64, u64)) -> Self {
        let client = NetperfClient::new(options);
        let host = HostCounts { cpu: Some([0; 8]), cores: Some(2), ..HostCounts::default() };
        let counts = flow_counts(Timestamp::START, 0, 0);
        let (out, err) = (String::new(), String::new());
        let outputs = VecDeque::new();
        let now = Timestamp::START;
        let mut host = Self { client, now, outputs, out, err, exit: None, buffers, counts, host };
        host.give(Input::Begin);
        assert!(matches!(host.next(), Output::Connect { link: CONTROL, .. }));
        host
    }

    fn connected(line: &str, wall: Span, buffers: (u64, u64)) -> Self {
        let mut host = Self::new(options_at(line, wall), buffers);
        host.give(Input::Opened { link: CONTROL, opened: opened(buffers) });
        host
    }

    fn give(&mut self, input: Input<'_>) {
        self.client.input(self.now, input);
        while let Some(output) = self.client.output() {
            match output {
                Output::Look => {
                    let flows = [self.counts.clone()];
                    self.client.input(self.now, Input::Counts { cpu: CpuTime::default(), flows: &flows });
                }
                Output::LookHost { .. } => {
                    let host = self.host.clone();
                    self.client.input(self.now, Input::Host(&host));
                }
                Output::Print(text) => self.out += &text,
                Output::PrintError(text) => self.err += &text,
                Output::Exit(code) => self.exit = Some(code),
                output => self.outputs.push_back(output),
            }
        }
    }

    fn next(&mut self) -> Output {
        self.outputs.pop_front().expect("an output")
    }

    /// The request, after the sizes of buffers were read.
    fn request(&mut self) -> NetperfMessage {
        let Output::Listen { link: SIZES, port: 0, .. } = self.next() else { panic!() };
        self.give(Input::Opened { link: SIZES, opened: opened(self.buffers) });
        assert!(matches!(self.next(), Output::Close { link: SIZES }));
        self.message()
    }

    fn message(&mut self) -> NetperfMessage {
        let Output::Send { link: CONTROL, mut bytes } = self.next() else { panic!() };
        NetperfMessage::take(&mut bytes).unwrap()
    }

    fn answer(&mut self, message: NetperfMessage) {
        self.give(Input::Bytes { link: CONTROL, bytes: &message.into_bytes() });
    }

    /// Agrees on the test with the buffers of the real server, until the data link is requested.
    fn agree(&mut self, response: &Response) {
        self.request();
        self.answer(response.encode());
        assert!(matches!(self.next(), Output::Plan(_)));
        assert!(matches!(self.next(), Output::Connect { link: DATA, port: 45_000, .. }));
    }

    /// Starts a stream.
    fn stream(&mut self, response: &Response) -> FlowTask {
        self.agree(response);
        self.give(Input::Opened { link: DATA, opened: opened(self.buffers) });
        match self.next() {
            Output::Start(task) => *task,
            other => panic!("{other:?}"),
        }
    }

    /// Ticks at this time after the start.
    fn tick_at(&mut self, time: Span) {
        self.now = Timestamp::START + time;
        self.give(Input::Tick);
    }

    /// Ends the flow with these bytes, at this time after the start.
    fn end(&mut self, time: Span, bytes: u64, calls: u64) {
        self.now = Timestamp::START + time;
        let counts = flow_counts(self.now, bytes, calls);
        self.give(Input::Ended { counts: &counts });
    }

    fn close_data(&mut self, time: Span) {
        self.now = Timestamp::START + time;
        self.give(Input::Closed { link: DATA, reason: None });
    }
}

fn agreement((send_buffer, receive_buffer): (u32, u32)) -> Response {
    Response {
        send_buffer,
        receive_buffer,
        send_size: Some(send_buffer),
        receive_size: Some(receive_buffer),
        send_width: 2,
        receive_width: 2,
        port: 45_000,
        ..Response::default()
    }
}

fn seconds(seconds: f64) -> Span {
    Span::from_secs_f64(seconds).unwrap()
}

/// A recorded output, without the line of its command.
fn recorded(file: &'static str) -> (&'static str, &'static str) {
    let (command, text) = file.split_once('\n').unwrap();
    (command.strip_prefix("$ netperf ").unwrap(), text)
}

macro_rules! result {
    ($name:literal) => {
        recorded(include_str!(concat!("../../../../../fixtures/results/netperf/", $name, ".txt")))
    };
}

#[test]
fn requests_are_those_of_the_real_client_to_the_bit() {
    for (transcript, buffers) in [
        (transcript!("tcp-stream"), TCP_BUFFERS),
        (transcript!("tcp-maerts"), TCP_BUFFERS),
        (transcript!("tcp-rr"), TCP_BUFFERS),
        (transcript!("tcp-crr"), TCP_BUFFERS),
        (transcript!("tcp-rr-count"), TCP_BUFFERS),
        (transcript!("tcp-stream-cpu"), TCP_BUFFERS),
        (transcript!("tcp-stream-bytes"), TCP_BUFFERS),
        (transcript!("tcp-maerts-selectors"), TCP_BUFFERS),
        (transcript!("udp-stream"), UDP_BUFFERS),
        (transcript!("udp-rr"), UDP_BUFFERS),
    ] {
        let command = transcript.lines().next().unwrap().split_once(": netperf ").unwrap().1;
        let mut host = NetperfClientHost::connected(command, Span::ZERO, buffers);
        let own = host.request();
        let mut real = NetperfMessage::take(&mut messages(transcript)[0].1.clone()).unwrap();
        // The real client has bound its data socket already, to a port of the system's choice.
        let port = NetperfRequest { client_port: 0, ..NetperfRequest::decode(&real) };
        real = port.encode();
        assert_eq!(own.into_bytes(), real.into_bytes(), "{command}");
    }
}

#[test]
fn a_passphrase_comes_before_the_request() {
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -Z secret", Span::ZERO, TCP_BUFFERS);
    let real = &messages(transcript!("passphrase"))[0].1;
    assert_eq!(&host.message().into_bytes(), real);
    assert_eq!(host.request().kind(), kind::TEST);
}

#[test]
fn a_stream_with_interim_results_prints_what_netperf_prints() {
    let (command, text) = result!("v270-tcp-stream-interim");
    // The recorded lengths and ends are rounded; these give the same.
    let lengths = [0.504, 0.5014, 0.503, 0.4926];
    let rates = [9649.95, 7919.18, 8219.09, 8604.07];
    let mut host = NetperfClientHost::connected(command, seconds(1_795_469_364.152_9 - 0.504), TCP_BUFFERS);
    let task = host.stream(&agreement((16_384, 131_072)));
    assert_eq!(task.time, Some(Span::from_secs(2)));
    assert_eq!((task.length.get(), &task.payload.head[..16]), (16_384, &b"netperf\0netperf\0"[..]));
    let (mut time, mut bytes) = (0.0, 0.0);
    for (number, (length, rate)) in (0..).zip(lengths.into_iter().zip(rates)) {
        time += length;
        bytes += rate * 1e6 / 8.0 * length;
        host.counts = flow_counts(Timestamp::START + seconds(time), bytes as u64, 1);
        if number < 3 {
            host.tick_at(seconds(time));
        }
    }
    host.give(Input::Written { flow: FlowId(0) });
    assert!(matches!(host.next(), Output::Stop { flow: FlowId(0), how: Stop::Regularly }));
    host.end(seconds(time), bytes as u64, 100);
    assert!(matches!(host.next(), Output::Forget { flow: FlowId(0) }));
    assert!(matches!(host.next(), Output::Tune { link: DATA, .. }));
    let total = 8598.32e6 / 8.0 * 2.004;
    host.answer(
        NetperfResults { received: total as u64, elapsed: 2.0, ..NetperfResults::default() }.encode(),
    );
    assert_eq!(host.exit, None, "the server still has to close the connection");
    host.close_data(seconds(2.004));
    assert_eq!((host.out.as_str(), host.err.as_str(), host.exit), (text, "", Some(0)));
}

#[test]
fn a_stream_from_the_server_prints_what_netperf_prints() {
    let (command, text) = result!("v270-tcp-maerts");
    let mut host = NetperfClientHost::connected(command, Span::ZERO, TCP_BUFFERS);
    let task = host.stream(&agreement((16_384, 131_072)));
    assert_eq!((task.time, task.length.get()), (Some(Span::from_secs(1)), 131_072));
    host.tick_at(Span::from_secs(1));
    assert!(matches!(host.next(), Output::Stop { flow: FlowId(0), how: Stop::AtOnce }));
    // The pump notices 15 ms later; its last bytes came 1 ms after the end.
    host.now = Timestamp::START + seconds(1.015);
    let last = Timestamp::START + seconds(1.001);
    let counts = flow_counts(last, (8230.13e6 / 8.0 * 1.001) as u64, 9);
    host.give(Input::Ended { counts: &counts });
    host.answer(NetperfResults { sent: 1 << 30, elapsed: 1.0, ..NetperfResults::default() }.encode());
    assert_eq!((host.out.as_str(), host.exit), (text, Some(0)));
}

#[test]
fn datagrams_print_what_netperf_prints() {
    let (command, text) = result!("v270-udp-stream");
    let mut host = NetperfClientHost::connected(command, Span::ZERO, UDP_BUFFERS);
    let task = host.stream(&agreement((212_992, 212_992)));
    assert_eq!(task.length.get(), 1000);
    host.give(Input::Written { flow: FlowId(0) });
    let elapsed = 110_429.0 * 8000.0 / 883.37e6;
    host.outputs.clear();
    host.end(seconds(elapsed), 110_429_000, 110_429);
    assert!(matches!(host.next(), Output::Forget { flow: FlowId(0) }));
    for _ in 0..3 {
        assert!(matches!(host.next(), Output::Send { link: DATA, bytes } if bytes.is_empty()));
    }
    let results = NetperfResults {
        received: 32_701_000,
        receive_calls: 32_701,
        elapsed: 1.0,
        ..NetperfResults::default()
    };
    host.answer(results.encode());
    assert_eq!((host.out.as_str(), host.exit), (text, Some(0)));
}

#[test]
fn transactions_print_what_netperf_prints() {
    let (command, text) = result!("v270-tcp-rr");
    let mut host = NetperfClientHost::connected(command, Span::ZERO, TCP_BUFFERS);
    host.agree(&agreement((16_384, 131_072)));
    host.give(Input::Opened { link: DATA, opened: opened(TCP_BUFFERS) });
    let elapsed = 30_940.0 / 30_937.06;
    for _ in 0..30_940 {
        assert!(matches!(host.next(), Output::Send { link: DATA, bytes } if bytes == b"n"));
        assert!(host.outputs.is_empty(), "one request at a time");
        host.give(Input::Bytes { link: DATA, bytes: &[0] });
    }
    host.next();
    host.tick_at(Span::from_secs(1));
    assert!(matches!(host.next(), Output::Tune { link: DATA, .. }));
    assert!(matches!(host.next(), Output::FinishWriting { link: DATA }));
    host.close_data(seconds(elapsed));
    host.answer(NetperfResults { transactions: 30_941, elapsed: 1.0, ..NetperfResults::default() }.encode());
    assert_eq!((host.out.as_str(), host.exit), (text, Some(0)));
}

#[test]
fn processor_time_is_printed_as_netperf_prints_it() {
    let (command, text) = result!("v270-tcp-stream-cpu");
    let mut host = NetperfClientHost::connected(command, Span::ZERO, TCP_BUFFERS);
    host.stream(&agreement((16_384, 131_072)));
    let bytes = (666.46 * 1_048_576.0) as u64;
    host.host.cpu = Some([100, 0, 100, 0, 0, 0, 0, 0]);
    host.give(Input::Written { flow: FlowId(0) });
    host.outputs.clear();
    host.end(Span::from_secs(1), bytes, 9);
    let cpu = HostCpu { busy: 100.0, ..HostCpu::default() };
    host.answer(
        NetperfResults { received: bytes, cpu: Some(cpu), cores: 2, ..NetperfResults::default() }.encode(),
    );
    host.close_data(Span::from_secs(1));
    assert_eq!((host.out.as_str(), host.exit), (text, Some(0)));
}

#[test]
fn selected_values_print_what_netperf_prints() {
    let (command, text) = result!("v270-keyval");
    // The recorded lengths and the time are rounded; these give the same.
    let (first, elapsed) = (0.501_092_4, 1.000_085_5);
    let mut host = NetperfClientHost::connected(command, seconds(1_795_469_370.205_4 - first), TCP_BUFFERS);
    host.stream(&agreement((16_384, 131_072)));
    let bytes = (5204.44e6 / 8.0 * first) as u64;
    host.counts = flow_counts(Timestamp::START + seconds(first), bytes, 1);
    host.tick_at(seconds(first));
    host.end(seconds(elapsed), 895_759_093, 9);
    let results =
        NetperfResults { sent: 900_530_176, retransmits: Some(3), elapsed: 1.0, ..NetperfResults::default() };
    host.answer(results.encode());
    assert_eq!((host.out.as_str(), host.exit), (text, Some(0)));
}

#[test]
fn a_server_that_is_not_there_is_named_as_netperf_names_it() {
    let (command, text) = result!("v270-refused");
    let mut host = NetperfClientHost::new(options(command), TCP_BUFFERS);
    let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
    host.give(Input::NotOpened { link: CONTROL, reason });
    assert_eq!((host.out.as_str(), host.exit), (text, Some(255)));
    let mut host = NetperfClientHost::new(options("-H nowhere"), TCP_BUFFERS);
    host.give(Input::NotOpened {
        link: CONTROL,
        reason: SystemError { errno: 0, text: "unknown".to_owned() },
    });
    assert_eq!(
        (host.out.as_str(), host.exit),
        ("Netperf could not resolve nowhere as a host name\n", Some(255))
    );
}

#[test]
fn errors_of_the_server_are_printed_with_their_numbers() {
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0", Span::ZERO, TCP_BUFFERS);
    host.request();
    host.answer(NetperfMessage::error(kind::TEST_RESPONSE, 16));
    assert_eq!((host.out.as_str(), host.exit), ("netperf: remote error 16", Some(255)));
    assert_eq!(host.err, "Device or resource busy\n");
}

#[test]
fn a_server_that_floods_or_is_silent_is_left() {
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0", Span::ZERO, TCP_BUFFERS);
    host.request();
    for _ in 0..3 {
        host.give(Input::Bytes { link: CONTROL, bytes: &[0; 600] });
    }
    assert_eq!(host.exit, Some(1), "{}", host.err);
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0", Span::ZERO, TCP_BUFFERS);
    host.request();
    host.tick_at(Span::from_secs(119));
    assert_eq!(host.exit, None);
    host.tick_at(Span::from_secs(120));
    assert_eq!((host.exit, host.err.as_str()), (Some(1), "netperf: no response received from the server\n"));
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0", Span::ZERO, TCP_BUFFERS);
    host.request();
    host.give(Input::Closed { link: CONTROL, reason: None });
    assert_eq!(host.err, "recv_response: partial response received: 0 bytes\n");
}

#[test]
fn lost_datagrams_are_asked_again_after_their_time() {
    let line = "-H 127.0.0.1 -P 0 -v 0 -t UDP_RR -l 5 -- -e 1 -r 10,20 -b 1";
    let mut host = NetperfClientHost::connected(line, Span::ZERO, UDP_BUFFERS);
    host.agree(&agreement((212_992, 212_992)));
    host.give(Input::Opened { link: DATA, opened: opened(UDP_BUFFERS) });
    let asked = |host: &mut NetperfClientHost| {
        let sent: Vec<Output> = host.outputs.drain(..).collect();
        assert!(sent.iter().all(|o| matches!(o, Output::Send { link: DATA, bytes } if bytes.len() == 10)));
        sent.len()
    };
    let answer = |host: &mut NetperfClientHost| {
        host.give(Input::Datagram { link: DATA, from: address(1, 45_000), bytes: &[0; 20] });
    };
    assert_eq!(asked(&mut host), 2);
    answer(&mut host);
    assert_eq!(asked(&mut host), 1);
    host.tick_at(Span::from_ms(999));
    assert_eq!(asked(&mut host), 0);
    host.tick_at(Span::from_ms(1_000));
    assert_eq!(asked(&mut host), 2, "both were lost");
    (0..9).for_each(|_| answer(&mut host));
    asked(&mut host);
    host.tick_at(Span::from_secs(5));
    host.answer(NetperfResults { transactions: 10, ..NetperfResults::default() }.encode());
    assert_eq!((host.out.as_str(), host.exit), ("   2.00 \n", Some(0)));
}

#[test]
fn an_endless_test_ends_with_an_interrupt() {
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0 -v 0 -l 0", Span::ZERO, TCP_BUFFERS);
    let task = host.stream(&agreement((16_384, 131_072)));
    assert_eq!((task.time, task.bytes), (None, None));
    host.now = Timestamp::START + Span::from_secs(500);
    host.give(Input::Signal(2));
    assert!(matches!(host.next(), Output::Stop { flow: FlowId(0), how: Stop::Regularly }));
    let mut host = NetperfClientHost::connected("-H 127.0.0.1 -P 0", Span::ZERO, TCP_BUFFERS);
    host.stream(&agreement((16_384, 131_072)));
    host.give(Input::Signal(2));
    assert_eq!(host.exit, Some(130));
    assert!(host.outputs.iter().any(|o| matches!(o, Output::RunOver { trouble: Some(_), .. })));
}

#[test]
fn datagrams_stay_away_from_routers_unless_they_are_allowed() {
    for (line, kept) in
        [("-t UDP_STREAM", true), ("-t UDP_STREAM -- -R 1", false), ("-t UDP_RR", false), ("-- -R 0", true)]
    {
        let mut host = NetperfClientHost::connected(line, Span::ZERO, UDP_BUFFERS);
        let request = NetperfRequest::decode(&host.request());
        assert_eq!(request.has(crate::netperf::wire::flag::ROUTED), !kept, "{line}");
        host.answer(agreement((212_992, 212_992)).encode());
        assert!(matches!(host.next(), Output::Plan(_)));
        let Output::Connect { options, .. } = host.next() else { panic!() };
        assert_eq!(options.dont_route, kept, "{line}");
    }
}
