//! The client against our server, and against what other servers answer, in virtual time.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use bytes::Bytes as Chunk;
use h2::RecvStream;
use h2::server::SendResponse;
use linerate_model::{Direction, ResponsivenessConfidence, ResponsivenessReport};

use super::*;
use crate::http::http2::Http2Connection;
use crate::http::{
    LoadOrder, RESPONSIVENESS, ResponsivenessTarget, ResponsivenessTest, ResponsivenessTestConfig,
};
use crate::stand_in::LinkOptions;
use crate::virtual_hosts::{VirtualHost, VirtualHosts, VirtualLine, VirtualPath};

fn config(order: LoadOrder) -> ResponsivenessTestConfig {
    ResponsivenessTestConfig {
        target: ResponsivenessTarget::parse("http://h.example:5202/", None).unwrap(),
        tls: None,
        order,
        most_time: Span::from_secs(20),
        interval: Span::from_secs(1),
        link: LinkOptions::default(),
        seed: 7,
        shows_progress: true,
    }
}

fn begun(config: ResponsivenessTestConfig, bps: f64, queue_ms: u64) -> VirtualHosts {
    let path = VirtualPath {
        delay: Span::from_ms(10),
        line: Some(VirtualLine { bps, queue: Span::from_ms(queue_ms) }),
        ..VirtualPath::default()
    };
    let server = (RESPONSIVENESS.embedded_server)(&EmbeddedServerConfig::at(5202));
    let tools: Vec<Option<Box<dyn StandIn>>> =
        vec![Some(Box::new(ResponsivenessTest::new(config))), Some(server)];
    VirtualHosts::on(path, 1, tools)
}

fn measured(config: ResponsivenessTestConfig, bps: f64, queue_ms: u64) -> VirtualHosts {
    let mut hosts = begun(config, bps, queue_ms);
    while hosts.hosts[0].exit.is_none() && hosts.now < Timestamp::from_ns(100_000_000_000) {
        hosts.pass(Span::from_ms(100));
    }
    hosts
}

fn only_report(hosts: &VirtualHosts) -> &ResponsivenessReport {
    let client: &VirtualHost = &hosts.hosts[0];
    assert_eq!((client.exit, client.runs.as_slice()), (Some(0), &[None][..]));
    let [report] = &client.responsiveness[..] else { panic!("{:?}", client.responsiveness) };
    report
}

/// How far a number is from another one, as a share of that.
fn deviation(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0).abs()
}

fn rates(host: &VirtualHost) -> Vec<(Direction, f64)> {
    host.counted.iter().map(|counted| (counted.direction, counted.tally.bitrate.bps())).collect()
}

#[test]
fn both_directions_are_loaded_until_rate_and_responsiveness_are_stable() {
    let hosts = measured(config(LoadOrder::Concurrent), 20e6, 0);
    let report = only_report(&hosts);
    assert_eq!(report.loaded, [Direction::Download, Direction::Upload]);
    let confidence = (report.rate_confidence, report.confidence);
    assert_eq!(confidence, (ResponsivenessConfidence::High, ResponsivenessConfidence::High));
    // Four moving averages of the rate, and four of the responsiveness at least.
    assert!((8..=14).contains(&report.intervals), "{}", report.intervals);
    assert_eq!(
        report.connections,
        2 * report.intervals,
        "one more in each direction after each interval but the last"
    );
    let idle = report.idle_rpm.unwrap();
    assert!(deviation(idle, 3_000.0) < 0.02, "20 ms: {idle}");
    // One connection after the other waits in front of the line, with 2 to 4 KiB.
    let (foreign, loaded) = (report.foreign_rpm.unwrap(), report.loaded_rpm.unwrap());
    assert!(foreign < idle && foreign > 0.4 * idle, "{foreign}");
    assert!(loaded < foreign && loaded > 0.25 * idle, "{loaded}");
    assert!(deviation(report.rpm.unwrap(), f64::midpoint(foreign, loaded)) < 1e-9);
    let [tcp, http] = [report.tcp, report.http].map(|time| time.unwrap().as_secs_f64());
    assert!(deviation(foreign, 60.0 / f64::midpoint(tcp, http)) < 1e-6, "without TLS");
    assert_eq!((report.tls, report.encrypted, report.lost), (None, false, 0));
    // At most a twentieth of the path: 20 pairs in a second.
    assert!(report.probes.iter().all(|count| (60..=84).contains(count)), "{:?}", report.probes);
    let client = &hosts.hosts[0];
    for (direction, bps) in rates(client) {
        assert!(deviation(bps, 20e6) < 0.02, "{direction:?} {bps}");
    }
    assert_eq!(client.counted.len(), 2);
    assert!(client.counted.iter().all(|counted| counted.samples.len() > 60));
    assert_eq!(client.plans.len(), 1);
    assert!(client.plans[0].client);
    let (flows, counts): (Vec<_>, Vec<_>) =
        client.latencies.iter().map(|(flow, probes)| (*flow, probes.len())).unzip();
    assert_eq!(flows, [None, Some(FlowId(0)), Some(FlowId(1))]);
    assert_eq!((counts[0], counts[1]), (10, counts[2]), "the probes of both directions are the same");
}

#[test]
fn client_and_server_count_the_same_bytes() {
    let mut hosts = measured(config(LoadOrder::Concurrent), 20e6, 0);
    hosts.pass(Span::from_secs(10));
    let bytes = |host: usize, direction| {
        let counted =
            hosts.hosts[host].counted.iter().find(|counted| counted.direction == direction).unwrap();
        counted.tally.bytes.get() as f64
    };
    for direction in [Direction::Download, Direction::Upload] {
        // What was in flight at the end of a second or more is all that they may differ by.
        let (here, there) = (bytes(0, direction), bytes(1, direction));
        assert!(deviation(here, there) < 0.02, "{direction:?}: {here} {there}");
    }
}

#[test]
fn a_queue_in_front_of_the_path_lowers_the_responsiveness_over_new_connections_too() {
    let short = measured(config(LoadOrder::Only(Direction::Upload)), 20e6, 0);
    let long = measured(config(LoadOrder::Only(Direction::Upload)), 20e6, 200);
    let [short, long] = [&short, &long].map(only_report);
    assert_eq!(long.loaded, [Direction::Upload]);
    let (before, after) = (short.foreign_rpm.unwrap(), long.foreign_rpm.unwrap());
    // The queue is always full: 220 ms and a little more.
    assert!(before > 1_000.0, "{before}");
    assert!((200.0..=60.0 / 0.22).contains(&after), "{after}");
    assert!(deviation(long.idle_rpm.unwrap(), 3_000.0) < 0.02, "the path is idle before");
}

#[test]
fn directions_can_be_loaded_one_after_the_other() {
    let hosts = measured(config(LoadOrder::Sequential), 20e6, 0);
    let client = &hosts.hosts[0];
    assert_eq!((client.exit, client.runs.as_slice()), (Some(0), &[None][..]));
    let loaded: Vec<_> = client.responsiveness.iter().map(|report| report.loaded.clone()).collect();
    assert_eq!(loaded, [[Direction::Download], [Direction::Upload]]);
    for (direction, bps) in rates(client) {
        assert!(deviation(bps, 20e6) < 0.02, "{direction:?} {bps}");
    }
}

#[test]
fn what_is_not_stable_in_time_says_so() {
    let short = ResponsivenessTestConfig { most_time: Span::from_secs(2), ..config(LoadOrder::Concurrent) };
    let hosts = measured(short, 20e6, 0);
    let report = only_report(&hosts);
    let low = ResponsivenessConfidence::Low;
    assert_eq!((report.rate_confidence, report.confidence, report.intervals), (low, low, 2));
    assert!(report.rpm.is_some());
    let medium = ResponsivenessTestConfig { most_time: Span::from_secs(6), ..config(LoadOrder::Concurrent) };
    let hosts = measured(medium, 20e6, 0);
    let report = only_report(&hosts);
    assert_eq!(
        report.rate_confidence,
        ResponsivenessConfidence::High,
        "four intervals were enough for the rate"
    );
    assert_eq!(report.confidence, low, "and left too few for the responsiveness");
}

#[test]
fn an_interrupted_test_keeps_what_it_has_measured() {
    let mut hosts = begun(config(LoadOrder::Concurrent), 20e6, 0);
    hosts.pass(Span::from_ms(5_500));
    hosts.feed(0, Input::Signal(2));
    let client = &hosts.hosts[0];
    assert_eq!(client.exit, Some(130));
    assert_eq!(client.runs, [Some("stopped by a signal".to_owned())]);
    assert_eq!((client.responsiveness.len(), client.counted.len()), (1, 2));
}

#[test]
fn a_server_that_refuses_is_quoted() {
    let mut hosts = begun(config(LoadOrder::Concurrent), 20e6, 0);
    hosts.hosts[1].admits = false;
    hosts.pass(Span::from_secs(3));
    let client = &hosts.hosts[0];
    assert_eq!(client.exit, Some(1));
    assert_eq!(client.runs, [Some("the server answered 503 Service Unavailable: busy".to_owned())]);
}

#[test]
fn a_server_that_vanishes_ends_the_test() {
    let mut hosts = begun(config(LoadOrder::Concurrent), 20e6, 0);
    hosts.pass(Span::from_secs(3));
    hosts.feed(1, Input::Signal(15));
    hosts.pass(Span::from_secs(3));
    let client = &hosts.hosts[0];
    assert_eq!(client.exit, Some(1));
    let why = client.runs[0].as_deref().unwrap();
    assert!(why.contains("the server") && why.contains("clos") || why.contains("broke off"), "{why}");
    assert_eq!(client.counted.len(), 2, "what was measured is kept");
}

/// What a server answers to a request.
#[derive(Clone, Copy)]
enum ScriptedAnswer {
    /// A whole response.
    Whole(u16, &'static str),
    /// A response that refuses a body after this number of its bytes.
    TooLarge(u64),
    /// The same after the connection was ended for further requests, with success.
    GoAway(u64),
    /// Nothing.
    Silence,
}

/// A server of which a test decides what it answers.
struct ScriptedHttp2Server {
    answer: fn(&str) -> ScriptedAnswer,
    links: BTreeMap<Link, Http2Connection>,
    uploads: Vec<(Link, RecvStream, SendResponse<Chunk>, u64, u16)>,
    kept: Vec<(RecvStream, SendResponse<Chunk>)>,
    out: VecDeque<Output>,
}

impl ScriptedHttp2Server {
    fn boxed(answer: fn(&str) -> ScriptedAnswer) -> Box<dyn StandIn> {
        let options = LinkOptions::default();
        let out = VecDeque::from([Output::Listen { link: LISTENER, port: 5202, options }]);
        Box::new(Self { answer, links: BTreeMap::new(), uploads: Vec::new(), kept: Vec::new(), out })
    }

    fn work(&mut self, link: Link) {
        let mut leaving = Vec::new();
        let Some(connection) = self.links.get_mut(&link) else { return };
        for (request, mut respond) in connection.advance() {
            let (head, body) = request.into_parts();
            match (self.answer)(head.uri.path()) {
                ScriptedAnswer::Whole(status, text) => send(&mut respond, status, text),
                ScriptedAnswer::TooLarge(most) => self.uploads.push((link, body, respond, most, 413)),
                ScriptedAnswer::GoAway(most) => {
                    self.uploads.push((link, body, respond, most, 200));
                    leaving.push(link);
                }
                ScriptedAnswer::Silence => self.kept.push((body, respond)),
            }
        }
        connection.open_windows();
        if !leaving.is_empty() {
            connection.leave();
        }
        let mut context = Context::from_waker(Waker::noop());
        self.uploads.retain_mut(|(_, body, respond, left, status)| {
            while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut context) {
                body.flow_control().release_capacity(bytes.len()).unwrap();
                *left = left.saturating_sub(bytes.len() as u64);
            }
            if *left == 0 {
                send(respond, *status, "too long");
            }
            *left > 0
        });
        let Some(connection) = self.links.get_mut(&link) else { return };
        connection.advance();
        if let Some(bytes) = connection.queue.take() {
            self.out.push_back(Output::Send { link, bytes });
        }
    }
}

fn send(respond: &mut SendResponse<Chunk>, status: u16, text: &'static str) {
    let head = http::Response::builder().status(status).body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    stream.send_data(Chunk::from_static(text.as_bytes()), true).unwrap();
}

impl StandIn for ScriptedHttp2Server {
    fn input(&mut self, _: Timestamp, input: Input<'_>) {
        match input {
            Input::Accepted { link, .. } => drop(self.links.insert(link, Http2Connection::new(64 << 10))),
            Input::Bytes { link, bytes } => {
                if let Some(connection) = self.links.get_mut(&link) {
                    connection.queue.received(bytes);
                }
                self.work(link);
            }
            Input::Sent { link } => self.work(link),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

const CONFIG: &str = r#"{"version": 1, "urls": {"small_download_url": "http://h.example:5202/small",
    "large_download_url": "http://h.example:5202/large", "upload_url": "http://h.example:5202/upload"}}"#;

/// How a test with such a server ended, after at most this time.
fn ended(order: LoadOrder, seconds: u64, answer: fn(&str) -> ScriptedAnswer) -> VirtualHosts {
    ended_after(order, 8, seconds, answer)
}

/// The same with this longest time of the load.
fn ended_after(
    order: LoadOrder,
    most: u64,
    seconds: u64,
    answer: fn(&str) -> ScriptedAnswer,
) -> VirtualHosts {
    let line = Some(VirtualLine { bps: 5e6, queue: Span::ZERO });
    let path = VirtualPath { line, ..VirtualPath::default() };
    let most_time = Span::from_secs(most);
    let client = Box::new(ResponsivenessTest::new(ResponsivenessTestConfig { most_time, ..config(order) }));
    let mut hosts = VirtualHosts::on(path, 1, vec![Some(client), Some(ScriptedHttp2Server::boxed(answer))]);
    hosts.pass(Span::from_secs(seconds));
    hosts
}

/// Why a test did not begin, or why its run failed.
fn trouble(hosts: &VirtualHosts) -> &str {
    let client = &hosts.hosts[0];
    assert_eq!(client.exit, Some(1), "{:?}", client.runs);
    match &client.runs[..] {
        [] => client.err.trim(),
        [why] => why.as_deref().unwrap(),
        more => panic!("{more:?}"),
    }
}

#[test]
fn what_a_server_gets_wrong_is_named() {
    let both = LoadOrder::Concurrent;
    let hosts = ended(both, 1, |_| ScriptedAnswer::Whole(404, "nothing \u{1b}[31mhere\nmore"));
    let said = trouble(&hosts);
    assert!(said.starts_with("the server answered 404 Not Found: nothing"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains("more"), "{said}");
    let hosts = ended(both, 1, |_| ScriptedAnswer::Whole(200, "<html>"));
    assert_eq!(trouble(&hosts), "the server's configuration is not JSON; check the address");
    let hosts = ended(both, 15, |_| ScriptedAnswer::Silence);
    assert_eq!(trouble(&hosts), "no answer from the server for 10 s");
    let hosts = ended(both, 15, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        _ => ScriptedAnswer::Silence,
    });
    assert_eq!(trouble(&hosts), "a request over the idle path was not answered");
    let hosts = ended(both, 3, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::Whole(403, "not you"),
    });
    assert_eq!(trouble(&hosts), "the server answered 403 Forbidden: not you");
    assert_eq!(hosts.hosts[0].responsiveness.len(), 0, "there was no load");
    let hosts = ended(LoadOrder::Only(Direction::Download), 3, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        _ => ScriptedAnswer::Whole(200, "x"),
    });
    assert_eq!(trouble(&hosts), "the server ends each download after less than 1 MB");
    let hosts = ended(LoadOrder::Only(Direction::Upload), 3, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::TooLarge(100_000),
    });
    assert_eq!(trouble(&hosts), "the server answered 413 Payload Too Large: too long");
}

#[test]
fn a_limit_of_the_bodies_does_not_end_the_test() {
    let hosts = ended(LoadOrder::Only(Direction::Upload), 12, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::TooLarge(1_200_000),
    });
    let client = &hosts.hosts[0];
    assert_eq!((client.exit, client.runs.as_slice()), (Some(0), &[None][..]));
    let [(Direction::Upload, bps)] = rates(client)[..] else { panic!("{:?}", client.counted) };
    assert!(deviation(bps, 5e6) < 0.05, "{bps}");
}

#[test]
fn a_server_that_answers_no_probe_under_load_has_no_responsiveness() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let hosts = ended(LoadOrder::Only(Direction::Upload), 12, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" if ASKED.fetch_add(1, Ordering::Relaxed) < 10 => ScriptedAnswer::Whole(200, "x"),
        "/small" => ScriptedAnswer::Silence,
        _ => ScriptedAnswer::TooLarge(u64::MAX),
    });
    let report = only_report(&hosts);
    assert_eq!((report.rpm, report.probes), (None, [0, 0]), "{report:?}");
    assert!(report.lost > 20, "{}", report.lost);
    assert_eq!(report.intervals, 8, "what is not known is not stable");
    assert!(report.idle_rpm.is_some());
}

#[test]
fn a_server_that_has_had_enough_of_a_connection_gets_another_one() {
    let hosts = ended(LoadOrder::Only(Direction::Upload), 12, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        // After which it takes no further request over the same connection.
        _ => ScriptedAnswer::GoAway(1_200_000),
    });
    let client = &hosts.hosts[0];
    assert_eq!((client.exit, client.runs.as_slice()), (Some(0), &[None][..]));
    let [(Direction::Upload, bps)] = rates(client)[..] else { panic!("{:?}", client.counted) };
    assert!(deviation(bps, 5e6) < 0.1, "{bps}");
    // One that does so again and again without taking anything is no server for this.
    let hosts = ended(LoadOrder::Only(Direction::Upload), 12, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::GoAway(1_000),
    });
    assert_eq!(trouble(&hosts), "the server ends each upload after less than 1 MB");
}

#[test]
fn a_path_that_carries_nothing_is_not_loaded() {
    let hosts = ended_after(LoadOrder::Only(Direction::Download), 2, 5, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::Silence,
    });
    assert_eq!(trouble(&hosts), "nothing was transferred in the download");
    let [report] = &hosts.hosts[0].responsiveness[..] else { panic!() };
    assert_eq!(report.rpm, None, "although probes were answered: {report:?}");
    assert!(report.probes.iter().all(|count| *count > 0), "{report:?}");
}

#[test]
fn a_pause_of_the_program_does_not_look_like_stability() {
    let mut hosts = begun(config(LoadOrder::Only(Direction::Upload)), 20e6, 0);
    hosts.pass(Span::from_ms(3_200));
    let intervals = hosts.hosts[0].err.lines().count();
    // Nothing is run for 6 s, and then everything that was due.
    hosts.now = hosts.now + Span::from_secs(6);
    hosts.pass(Span::from_ms(950));
    assert!(hosts.hosts[0].err.lines().count() <= intervals + 2, "{}", hosts.hosts[0].err);
}

#[test]
fn a_request_over_the_idle_path_that_is_not_answered_is_lost_and_the_test_goes_on() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let hosts = ended_after(LoadOrder::Only(Direction::Upload), 2, 20, |path| match path {
        "/.well-known/nq" => ScriptedAnswer::Whole(200, CONFIG),
        "/small" if ASKED.fetch_add(1, Ordering::Relaxed) == 3 => ScriptedAnswer::Silence,
        "/small" => ScriptedAnswer::Whole(200, "x"),
        _ => ScriptedAnswer::TooLarge(u64::MAX),
    });
    assert!(only_report(&hosts).idle_rpm.is_some());
    let (None, idle) = &hosts.hosts[0].latencies[0] else { panic!("{:?}", hosts.hosts[0].latencies) };
    let lost: Vec<usize> = (0..idle.len()).filter(|at| idle[*at].1.is_none()).collect();
    assert_eq!((idle.len(), lost), (10, vec![3]));
}
