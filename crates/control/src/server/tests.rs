//! Embedded servers of invented protocols together with native clients, over loopback.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_compat::stand_in::{Input, Link, LinkOptions, Output, Planned, StandIn, Transport};
use linerate_compat::{EmbeddedServerConfig, Tool};
use linerate_model::flow::RunId;
use linerate_model::sniff::Match;
use linerate_model::{CaveatKind, Outcome, RunRecord, TestSpec, World};
use linerate_sock::inherited::InheritedSockets;
use linerate_units::Span;

use super::{ClassicPort, Policy, Server, ServerConfig, ServerEvent, ServerHandle, ServerLimits};
use crate::stand_in::tests::script::{MemorySink, options, script};
use crate::{Log, TestRequest, measure};

mod arrivals;

/// Timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);

const TCP: Link = Link(0);
const UDP: Link = Link(1);

/// Interprets the text after `echo:`: `run` begins a run that ends with its connection, `die` ends the embedded
/// server, and everything else is echoed.
static ECHO: Tool = Tool {
    name: "echo",
    default_port: 7,
    sniff: sniff_echo,
    embedded_server: echo,
    refusal: linerate_compat::no_refusal,
    options: &[],
};

/// A protocol whose server sends first.
static GREETER: Tool = Tool {
    name: "greeter",
    default_port: 8,
    sniff: |_| Match::No,
    embedded_server: greeter,
    refusal: linerate_compat::no_refusal,
    options: &[],
};

fn sniff_echo(start: &[u8]) -> Match {
    Match::magic(start, b"echo:")
}

fn echo(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
    let port = config.port;
    let mut runs = BTreeSet::new();
    script(move |input, context| match input {
        Input::Begin => {
            context.output(Output::Listen { link: TCP, port, options: LinkOptions::default() });
            context.output(Output::Listen { link: UDP, port, options: options(Transport::Udp) });
        }
        Input::Opened { opened, .. } => assert_eq!(opened.descriptor, -1, "the server has the port"),
        Input::Bytes { bytes: b"echo:die", .. } => panic!("the embedded server panics on request"),
        Input::Bytes { link, bytes: b"echo:run" } => {
            let (run, spec, flows) = (link.0, TestSpec::default(), Vec::new());
            let expected = Some(Span::from_secs(1));
            let planned = Planned {
                run: RunId(run),
                tool: "echo",
                peer: None,
                link,
                client: false,
                spec,
                flows,
                expected,
            };
            context.output(Output::Ask(Box::new(planned)));
        }
        Input::Admitted { run } => {
            runs.insert(run);
            context.output(Output::Send { link: Link(run.0), bytes: b"yes".to_vec() });
        }
        Input::Refused { run, why, .. } => {
            context.output(Output::Send { link: Link(run.0), bytes: why.into_bytes() });
            context.output(Output::Close { link: Link(run.0) });
        }
        Input::Bytes { link, bytes } => context.output(Output::Send { link, bytes: bytes.to_vec() }),
        Input::Closed { link, .. } => {
            context.output(Output::Close { link });
            if runs.remove(&RunId(link.0)) {
                context.output(Output::RunOver { run: RunId(link.0), trouble: None });
            }
        }
        Input::Datagram { link: UDP, from, bytes } => {
            context.output(Output::SendTo { link: UDP, to: from, bytes: bytes.to_vec() });
            let options = options(Transport::Udp);
            context.output(Output::Adopt { listener: UDP, peer: from, options });
        }
        Input::Accepted { listener: UDP, link, .. } => {
            context.output(Output::Send { link, bytes: b"your own".to_vec() });
        }
        Input::Signal(_) => context.output(Output::Exit(1)),
        _ => {}
    })
}

/// Listens on the port after `claim:`, which belongs to another tool, and reserves a run until its client leaves.
static CLAIMER: Tool = Tool {
    name: "claimer",
    default_port: 9,
    sniff: |start| Match::magic(start, b"claim:"),
    embedded_server: claimer,
    refusal: linerate_compat::no_refusal,
    options: &[],
};

fn claimer(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
    const CLAIMED: Link = Link(2);
    let port = config.port;
    let mut client = None;
    script(move |input, context| match input {
        Input::Begin => context.output(Output::Listen { link: TCP, port, options: LinkOptions::default() }),
        Input::Bytes { link, bytes } => {
            let text = std::str::from_utf8(bytes).unwrap().strip_prefix("claim:").unwrap();
            client = Some(link);
            let options = LinkOptions::default();
            context.output(Output::Listen { link: CLAIMED, port: text.parse().unwrap(), options });
        }
        Input::Opened { link: CLAIMED, .. } => {
            context.output(Output::Reserve { run: RunId(1), tool: "claimer", link: client.unwrap() });
        }
        Input::Admitted { .. } => {
            context.output(Output::Send { link: client.unwrap(), bytes: b"reserved".to_vec() });
        }
        Input::Accepted { listener: CLAIMED, link, .. } => {
            context.output(Output::Send { link, bytes: b"claimed".to_vec() });
            context.output(Output::Close { link });
        }
        Input::Closed { link, .. } if client == Some(link) => {
            context.output(Output::Close { link });
            context.output(Output::RunOver { run: RunId(1), trouble: Some("the client left".to_owned()) });
        }
        Input::Signal(_) => context.output(Output::Exit(1)),
        _ => {}
    })
}

fn greeter(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
    let port = config.port;
    script(move |input, context| match input {
        Input::Begin => context.output(Output::Listen { link: TCP, port, options: LinkOptions::default() }),
        Input::Accepted { link, .. } => {
            context.output(Output::Send { link, bytes: b"welcome".to_vec() });
            context.output(Output::Close { link });
        }
        Input::Signal(_) => context.output(Output::Exit(1)),
        _ => {}
    })
}

struct Serving {
    addresses: Vec<SocketAddr>,
    switch: Arc<ServerHandle>,
    event: Mutex<Receiver<ServerEvent>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn start(config: ServerConfig) -> Self {
        Self::start_with(config, |_| ())
    }

    /// Like [`Self::start`], but calls `on` with every event in the thread that reports it.
    fn start_with(config: ServerConfig, on: impl Fn(&ServerEvent) + Send + Sync + 'static) -> Self {
        let config = ServerConfig { addresses: vec!["127.0.0.1:0".parse().unwrap()], ..config };
        Self::serve(Server::bind(config).unwrap(), on)
    }

    fn serve(server: Server, on: impl Fn(&ServerEvent) + Send + Sync + 'static) -> Self {
        let (addresses, switch) = (server.addresses(), Arc::new(ServerHandle::new().unwrap()));
        let (sender, event) = channel();
        let for_server = Arc::clone(&switch);
        let thread = std::thread::spawn(move || {
            let handler = move |event| {
                on(&event);
                drop(sender.send(event));
            };
            server.run(for_server, handler).unwrap();
        });
        Self { addresses, switch, event: Mutex::new(event), thread: Some(thread) }
    }

    fn echo(config: ServerConfig) -> Self {
        Self::start(ServerConfig { foreign: vec![&ECHO], ..config })
    }

    fn send(&self, words: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.addresses[0]).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(words).unwrap();
        stream
    }

    /// The first event for which `wanted` returns a value.
    fn wait_for<T>(&self, wanted: impl Fn(ServerEvent) -> Option<T>) -> T {
        let event = self.event.lock().unwrap();
        std::iter::from_fn(|| event.recv_timeout(TIMEOUT).ok()).find_map(wanted).unwrap()
    }

    fn wait_for_end(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }

    fn measure(&self) -> RunRecord {
        self.try_to_measure().unwrap()
    }

    fn try_to_measure(&self) -> Result<RunRecord, String> {
        self.try_to_measure_with(|_| ())
    }

    fn try_to_measure_with(&self, change: impl FnOnce(&mut TestSpec)) -> Result<RunRecord, String> {
        let memory = MemorySink::default();
        let mut sink = memory.clone();
        let mut log = Log::new("native".to_owned(), vec![&mut sink]);
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_ms(100));
        spec.traffic.upload = true;
        spec.traffic.no_latency = true;
        change(&mut spec);
        let request = TestRequest {
            host: "127.0.0.1".to_owned(),
            port: Some(self.addresses[0].port()),
            spec,
            tls: None,
            world: World::Hosts,
            started_at: String::new(),
            calibration: None,
            observer: None,
            file: None,
            stop: &AtomicBool::new(false),
        };
        measure(&request, &mut log).map_err(|error| error.to_string())?;
        Ok(log.into_record())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.switch.turn_off();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn sockets_of_the_service_manager_have_another_number_and_are_the_servers_own() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut inherited = InheritedSockets::default();
    inherited.add(listener.into()).unwrap();
    let configured = vec!["127.0.0.1:1".parse().unwrap()];
    let classic = vec![ClassicPort { port: 0, tools: vec![&GREETER] }];
    let config = ServerConfig { addresses: configured, classic, ..ServerConfig::default() };
    let server = Server::bind_with(config, &mut inherited).unwrap();
    assert_eq!((server.own_addresses(), server.addresses().len()), (vec![address], 2));
    assert!(server.handover().takes(address.ip()), "connections that come to the pages at this address");
}

fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 100];
    let count = stream.read(&mut bytes).unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

#[test]
fn one_port_serves_natives_and_others_one_at_a_time() {
    let memory = MemorySink::default();
    let log_store = Some(Arc::new(memory.clone()) as Arc<dyn crate::LogStore>);
    let server = Serving::echo(ServerConfig { log_store, ..ServerConfig::default() });
    let mut first = server.send(b"echo:run");
    assert_eq!(answer(&mut first), "yes");
    let begun =
        |event| if let ServerEvent::Begun { name, .. } = event { Some(name.into_string()) } else { None };
    assert_eq!(server.wait_for(begun), "echo");
    // A second run of the protocol is refused, and a native client waits.
    assert_eq!(answer(&mut server.send(b"echo:run")), "another run is in progress");
    std::thread::scope(|scope| {
        let native = scope.spawn(|| server.measure());
        assert_eq!(
            server.wait_for(|event| if let ServerEvent::Waiting { position, .. } = event {
                Some(position)
            } else {
                None
            }),
            1
        );
        first.shutdown(Shutdown::Write).unwrap();
        assert_eq!(native.join().unwrap().outcome, Some(Outcome::Completed));
    });
    drop(server);
    let record = RunRecord::fold(memory.0.lock().unwrap().iter());
    assert_eq!((record.outcome, record.hosts.len()), (Some(Outcome::Completed), 2));
}

#[test]
fn a_shared_server_lets_them_in_together_and_says_so() {
    let memory = MemorySink::default();
    let log_store = Some(Arc::new(memory.clone()) as Arc<dyn crate::LogStore>);
    let server = Serving::echo(ServerConfig { policy: Policy::Shared, log_store, ..ServerConfig::default() });
    let (mut first, mut second) = (server.send(b"echo:run"), server.send(b"echo:run"));
    assert_eq!((answer(&mut first).as_str(), answer(&mut second).as_str()), ("yes", "yes"));
    drop((first, second));
    for _ in 0..2 {
        server.wait_for(|event| matches!(event, ServerEvent::Ended { trouble: None, .. }).then_some(()));
    }
    drop(server);
    let events = memory.0.lock().unwrap();
    for run in [Link::FIRST_ACCEPTED.0, Link::FIRST_ACCEPTED.0 + 1] {
        let name = format!("echo-{run}");
        let record = RunRecord::fold(events.iter().filter(|event| event.run == name));
        assert!(record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ConcurrentRun), "{name}");
    }
}

#[test]
fn a_run_longer_than_the_server_allows_is_refused() {
    let longest = Some(Span::from_ms(500));
    let server = Serving::echo(ServerConfig {
        limits: ServerLimits { longest, ..ServerLimits::default() },
        ..ServerConfig::default()
    });
    assert!(answer(&mut server.send(b"echo:run")).contains("500 ms"));
}

#[test]
fn a_server_for_one_run_ends_after_a_foreign_one() {
    let server = Serving::echo(ServerConfig { one_off: true, ..ServerConfig::default() });
    let mut client = server.send(b"echo:run");
    assert_eq!(answer(&mut client), "yes");
    drop(client);
    server.wait_for_end();
}

#[test]
fn the_results_of_a_foreign_run_come_before_its_end_as_those_of_a_native_one() {
    let server = Serving::echo(ServerConfig::default());
    let kind = |event| match event {
        ServerEvent::Measured { .. } => Some("measured"),
        ServerEvent::Ended { trouble: None, .. } => Some("ended"),
        _ => None,
    };
    let mut client = server.send(b"echo:run");
    assert_eq!(answer(&mut client), "yes");
    drop(client);
    assert_eq!([server.wait_for(kind), server.wait_for(kind)], ["measured", "ended"]);
    server.measure();
    assert_eq!([server.wait_for(kind), server.wait_for(kind)], ["measured", "ended"]);
}

#[test]
fn two_hundred_at_once_are_answered_and_whoever_vanishes_harms_nobody() {
    let server = Serving::echo(ServerConfig::default());
    let mut all: Vec<TcpStream> = (0..200).map(|_| server.send(b"echo:")).collect();
    for (at, stream) in all.iter_mut().enumerate() {
        match at % 4 {
            0 => linerate_sock::sockopt::set_linger_abort(stream).unwrap(),
            1 => stream.shutdown(Shutdown::Write).unwrap(),
            _ => {}
        }
    }
    // The resets arrive in the middle of the dialogues of others.
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        at % 4 != 1
    });
    for stream in &mut all {
        assert_eq!(answer(stream), "echo:");
    }
    drop(all);
    assert_eq!(server.measure().outcome, Some(Outcome::Completed));
}

#[test]
fn what_nobody_understands_is_turned_away_and_the_server_goes_on() {
    let server = Serving::echo(ServerConfig::default());
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 300], b"LINERATF", &[0xff; 5000]] {
        let mut stream = server.send(garbage);
        // Bytes that were not read turn the close into a reset.
        let ended = stream.read(&mut [0; 10]);
        assert!(ended.is_err() || ended.unwrap() == 0);
        let why = server
            .wait_for(|event| if let ServerEvent::Foreign { why, .. } = event { Some(why) } else { None });
        assert!(why.contains("not a protocol"), "{why}");
    }
    assert_eq!(answer(&mut server.send(b"echo:still there")), "echo:still there");
}

#[test]
fn an_embedded_server_that_dies_is_replaced_and_its_run_is_over() {
    let server = Serving::echo(ServerConfig::default());
    let mut run = server.send(b"echo:run");
    assert_eq!(answer(&mut run), "yes");
    drop(server.send(b"echo:die"));
    let why =
        server.wait_for(|event| if let ServerEvent::Ended { trouble, .. } = event { trouble } else { None });
    assert!(why.contains("ended during the run"), "{why}");
    // Clients that arrive meanwhile wait for the next embedded server.
    assert_eq!(answer(&mut server.send(b"echo:again")), "echo:again");
}

#[test]
fn a_run_that_panics_gives_its_place_back_and_its_client_reads_so() {
    let once = AtomicBool::new(true);
    let server = Serving::start_with(
        ServerConfig {
            limits: ServerLimits { most_clients: Some(1), ..ServerLimits::default() },
            ..ServerConfig::default()
        },
        {
            move |event| {
                let panics =
                    matches!(event, ServerEvent::Begun { .. }) && once.swap(false, Ordering::Relaxed);
                assert!(!panics, "a run panics on purpose");
            }
        },
    );
    let why = server.try_to_measure().unwrap_err();
    assert!(why.contains("failed during the run"), "{why}");
    // The client hears of it before its place is free.
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }).then_some(()));
    assert_eq!(server.measure().outcome, Some(Outcome::Completed));
}

#[test]
fn datagrams_that_are_not_ours_go_to_the_embedded_server() {
    let server = Serving::echo(ServerConfig::default());
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.addresses[0]).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.send(b"\x39\x38\x37\x36").unwrap();
    let mut bytes = [0; 100];
    for expected in [&b"\x39\x38\x37\x36"[..], b"your own"] {
        let count = client.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..count], expected);
    }
}

#[test]
fn at_a_classic_port_the_only_candidate_may_send_first_and_several_are_distinguished() {
    let classic = vec![
        ClassicPort { port: 0, tools: vec![&GREETER] },
        ClassicPort { port: 0, tools: vec![&GREETER, &ECHO] },
    ];
    let server = Serving::start(ServerConfig { classic, ..ServerConfig::default() });
    let [_, alone, together] = server.addresses[..] else { panic!("three ports: {:?}", server.addresses) };
    let at = |address: SocketAddr| TcpStream::connect(address).unwrap();
    assert_eq!(answer(&mut at(alone)), "welcome");
    let mut client = at(together);
    client.write_all(b"echo:x").unwrap();
    assert_eq!(answer(&mut client), "echo:x");
    // The native protocol is only served on the main port.
    assert_eq!(server.measure().outcome, Some(Outcome::Completed));
}

#[test]
fn a_reserved_run_gets_what_its_client_sends_to_the_port_of_another_tool() {
    let classic = vec![ClassicPort { port: 0, tools: vec![&GREETER] }];
    let server = Serving::start(ServerConfig { foreign: vec![&CLAIMER], classic, ..ServerConfig::default() });
    let other = server.addresses[1];
    let answer_of_other = || answer(&mut TcpStream::connect(other).unwrap());
    assert_eq!(answer_of_other(), "welcome");
    let mut client = server.send(format!("claim:{}", other.port()).as_bytes());
    assert_eq!(answer(&mut client), "reserved");
    // At once, and before it has sent anything.
    assert_eq!((answer_of_other(), answer_of_other()), ("claimed".to_owned(), "claimed".to_owned()));
    drop(client);
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }).then_some(()));
    assert_eq!(answer_of_other(), "welcome");
}

#[test]
fn a_reserved_run_has_the_place_of_a_run() {
    let classic = vec![ClassicPort { port: 0, tools: vec![&GREETER] }];
    let foreign: Vec<&'static Tool> = vec![&CLAIMER, &ECHO];
    let server = Serving::start(ServerConfig { foreign, classic, ..ServerConfig::default() });
    let port = server.addresses[1].port();
    let mut first = server.send(b"echo:run");
    assert_eq!(answer(&mut first), "yes");
    let mut claim = server.send(format!("claim:{port}").as_bytes());
    let why =
        server.wait_for(|event| if let ServerEvent::Foreign { why, .. } = event { Some(why) } else { None });
    assert_eq!(&*why, "claimer: another run is in progress");
    assert_eq!(answer(&mut TcpStream::connect(server.addresses[1]).unwrap()), "welcome");
    drop(first);
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }).then_some(()));
    claim.write_all(format!("claim:{port}").as_bytes()).unwrap();
    assert_eq!(answer(&mut claim), "reserved");
    assert_eq!(answer(&mut server.send(b"echo:run")), "another run is in progress");
}
