//! A rig on one host: agents, coordinators and strangers over loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot be prepared fails")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_control::{
    After, Coordinator, FlowEnd, FlowJob, Group, HostRef, Log, News, Request, Rig, Server, ServerConfig,
    Sink, Switch, Target, Told, Trouble, measure, run_group,
};
use linerate_model::{Body, CaveatKind, Event, HostInfo, Outcome, RunRecord, TestSpec, World};
use linerate_proto::Ticket;
use linerate_proto::agent::{CoordinatorEnd, Dialogue, Input, Output, Token};
use linerate_proto::native::{Framer, Preface};
use linerate_sock::clock;
use linerate_units::{Bitrate, Span, Timestamp};

/// After so long nothing comes any more.
const PATIENCE: Duration = Duration::from_secs(60);

fn token() -> Token {
    Token::new("a secret of these tests").unwrap()
}

/// An agent of a test's own.
struct Agent {
    address: SocketAddr,
    switch: Arc<Switch>,
    news: Mutex<Receiver<News>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start() -> Self {
        Self::with(ServerConfig { agent_token: Some(token()), ..ServerConfig::default() })
    }

    fn with(config: ServerConfig) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), config)
    }

    fn at(address: SocketAddr, config: ServerConfig) -> Self {
        let server = Server::bind(ServerConfig { addresses: vec![address], ..config }).unwrap();
        let (address, switch) = (server.addresses()[0], Arc::new(Switch::new().unwrap()));
        let (tell, news) = channel();
        let for_server = Arc::clone(&switch);
        let thread = std::thread::spawn(move || {
            server.run(for_server, move |news| drop(tell.send(news))).unwrap();
        });
        Self { address, switch, news: Mutex::new(news), thread: Some(thread) }
    }

    fn named(&self, name: &str) -> HostRef {
        let (address, port) = (self.address.ip().to_string(), Some(self.address.port()));
        HostRef { name: name.to_owned(), address, port, test_address: None, token: token(), netns: None }
    }

    /// The first news that `wanted` knows.
    fn hear<T>(&self, wanted: impl Fn(News) -> Option<T>) -> T {
        let news = self.news.lock().unwrap();
        std::iter::from_fn(|| news.recv_timeout(PATIENCE).ok()).find_map(wanted).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.switch.turn_off();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn rig<const N: usize>(agents: [&Agent; N]) -> Rig {
    let names = ["a", "b", "c", "d"];
    let hosts = agents.iter().zip(names).map(|(agent, name)| agent.named(name)).collect();
    Rig { name: "the tests".to_owned(), hosts }
}

/// An upload of a little for so long.
fn spec(ms: u64) -> TestSpec {
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_ms(ms));
    spec.traffic.upload = true;
    spec.traffic.no_latency = true;
    spec.traffic.rate = Bitrate::from_bps(10e6);
    spec
}

fn flow(from: usize, to: usize, ms: u64) -> FlowJob {
    let to = Target::Host(to);
    FlowJob { from, to, spec: spec(ms), start_after: Span::ZERO, after: None, background: false, plan: None }
}

fn group(flows: Vec<FlowJob>) -> Group {
    Group { name: Some("together".to_owned()), started_at: String::new(), flows }
}

/// Carries a group out; how each run ended, and its record.
fn carry_out(rig: Rig, group: &Group) -> Result<Vec<(FlowEnd, RunRecord)>, Vec<Trouble>> {
    let mut logs: Vec<Log<'_>> = group.flows.iter().map(|_| Log::new("run".to_owned(), Vec::new())).collect();
    let ends = run_group(rig, group, &mut logs, &AtomicBool::new(false), &mut |_| ())?;
    Ok(ends.into_iter().zip(logs.into_iter().map(Log::into_record)).collect())
}

/// A client that is nobody's; its record.
fn stranger(to: &Agent) -> RunRecord {
    let mut log = Log::new("stranger".to_owned(), Vec::new());
    let request = Request {
        host: "127.0.0.1".to_owned(),
        port: Some(to.address.port()),
        spec: spec(100),
        world: World::Hosts,
        started_at: String::new(),
        calibration: None,
        witness: None,
        stop: &AtomicBool::new(false),
    };
    measure(&request, &mut log).unwrap();
    log.into_record()
}

#[test]
fn two_runs_to_one_exclusive_server_go_together_and_a_stranger_waits() {
    let (a, b, c) = (Agent::start(), Agent::start(), Agent::start());
    let group = group(vec![flow(0, 1, 1500), flow(2, 1, 1500)]);
    let rig = rig([&a, &b, &c]);
    let runs = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            b.hear(|news| matches!(news, News::Held { .. }).then_some(()));
            let late = stranger(&b);
            let first = b.hear(|news| match news {
                News::Waiting { .. } => Some("waited"),
                News::Ended { .. } => Some("did not wait"),
                _ => None,
            });
            (late, first)
        });
        let runs = carry_out(rig, &group).unwrap();
        let (late, first) = waiting.join().unwrap();
        assert_eq!((late.outcome, first), (Some(Outcome::Completed), "waited"));
        runs
    });
    for (end, record) in &runs {
        assert_eq!((end.outcome, record.outcome), (Outcome::Completed, Some(Outcome::Completed)), "{end:?}");
        assert!(record.flows[0].bitrate().is_some() && record.hosts.len() == 2);
        let place = record.group.as_ref().unwrap();
        assert_eq!((place.group.as_str(), place.background), ("together", false));
        let (start, noted) = (end.start.unwrap(), record.group_start.unwrap());
        assert_eq!((start.late, Some(start.clock_error)), (noted.late, noted.clock_error));
        eprintln!("start error {}, clock error {}", start.late, start.clock_error);
        assert!(start.late < Span::from_secs(1) && start.clock_error < Span::from_secs(1));
        assert!(!record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Neighbour), "{record:?}");
    }
    assert_eq!(runs[0].0.start.unwrap().planned, runs[1].0.start.unwrap().planned);
}

#[test]
fn every_trouble_of_every_host_is_told_before_anything_is_measured() {
    let (good, plain) = (Agent::start(), Agent::with(ServerConfig::default()));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut rig = rig([&good, &good, &plain, &good]);
    rig.hosts[1].token = Token::new("some other secret of theirs").unwrap();
    rig.hosts[3].port = Some(nobody.port());
    let troubles = carry_out(rig, &group(vec![flow(0, 1, 100)])).unwrap_err();
    let told: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("b: ") && told[0].contains("token"), "{told:?}");
    assert!(told[1].starts_with("c: ") && told[1].contains("--agent-token-file"), "{told:?}");
    assert!(told[2].starts_with("d: ") && told[2].contains("refused"), "{told:?}");
}

#[test]
fn what_a_host_cannot_do_and_one_server_under_two_names_are_told_too() {
    let limited = ServerConfig {
        agent_token: Some(token()),
        longest: Some(Span::from_secs(4)),
        ..ServerConfig::default()
    };
    let (a, b) = (Agent::start(), Agent::with(limited));
    let mut long = flow(0, 1, 5000);
    long.spec.socket.congestion = Some("of_tomorrow".to_owned());
    let troubles = carry_out(rig([&a, &b]), &group(vec![long, flow(0, 9, 100)])).unwrap_err();
    let told: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    for (at, words) in [
        (0, "a: flow 1: its kernel has no congestion control 'of_tomorrow'"),
        (1, "b: flow 1: its kernel has no congestion control"),
        (2, "b: flow 1: the run would take 7 s, it allows 4 s"),
        (3, "flow 2: host number 9"),
    ] {
        assert!(told[at].starts_with(words), "{at}: {told:?}");
    }
    let troubles = carry_out(rig([&a, &a]), &group(Vec::new())).unwrap_err();
    assert!(troubles[0].to_string().starts_with("b: it is the same server as a"), "{troubles:?}");
}

#[test]
fn an_agent_measures_its_own_loopback() {
    let a = Agent::start();
    let ends = carry_out(rig([&a]), &group(vec![flow(0, 0, 300)])).unwrap();
    assert_eq!(ends[0].0.outcome, Outcome::Completed, "{:?}", ends[0].0);
}

#[test]
fn an_agent_that_ends_fails_its_own_run_and_the_other_goes_on() {
    let (a, b, c, d) = (Agent::start(), Agent::start(), Agent::start(), Agent::start());
    let group = group(vec![flow(0, 1, 60_000), flow(2, 3, 2500)]);
    let mut logs = [Log::new("1".to_owned(), Vec::new()), Log::new("2".to_owned(), Vec::new())];
    let mut on = |told: &Told<'_>| {
        if told.flow == 0 && matches!(told.body, Body::Progress { .. }) {
            a.switch.turn_off();
        }
    };
    let stop = AtomicBool::new(false);
    let ends = run_group(rig([&a, &b, &c, &d]), &group, &mut logs, &stop, &mut on).unwrap();
    let reason = ends[0].reason.clone().unwrap();
    assert!(ends[0].outcome == Outcome::Failed && reason.contains("its agent ended it"), "{ends:?}");
    assert_eq!((ends[1].outcome, &ends[1].reason), (Outcome::Completed, &None));
    assert!(logs[0].record().flows[0].progress.is_some(), "what was told is kept");
}

#[test]
fn the_stop_flag_ends_everything_and_keeps_what_was_measured() {
    let (a, b) = (Agent::start(), Agent::start());
    let stop = AtomicBool::new(false);
    let mut logs = [Log::new("1".to_owned(), Vec::new())];
    let mut on = |told: &Told<'_>| {
        if matches!(told.body, Body::Progress { .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let ends = run_group(rig([&a, &b]), &group(vec![flow(0, 1, 60_000)]), &mut logs, &stop, &mut on).unwrap();
    assert_eq!(ends[0].outcome, Outcome::Interrupted, "{ends:?}");
    assert!(logs[0].record().flows[0].receiver.is_some());
}

#[test]
fn the_background_ends_with_the_others_and_who_starts_later_starts_later() {
    let (a, b, c, d) = (Agent::start(), Agent::start(), Agent::start(), Agent::start());
    let background = FlowJob { background: true, ..flow(0, 1, 60_000) };
    let later = FlowJob { start_after: Span::from_ms(700), ..flow(2, 3, 500) };
    let runs = carry_out(rig([&a, &b, &c, &d]), &group(vec![background, later])).unwrap();
    let [(under, under_record), (over, _)] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((under.outcome, over.outcome), (Outcome::Completed, Outcome::Completed), "{runs:?}");
    let (first, second) = (under.start.unwrap().planned, over.start.unwrap().planned);
    assert_eq!(second.since(first), Span::from_ms(700));
    let (_, elapsed) = under_record.flows[0].received().unwrap();
    assert!(elapsed < Span::from_secs(30), "{elapsed}");
}

#[test]
fn who_waits_for_others_begins_behind_their_real_end_and_its_lateness_is_its_own() {
    let (a, b, c, d) = (Agent::start(), Agent::start(), Agent::start(), Agent::start());
    let after = |flows: Vec<usize>, ms| Some(After { flows, pause: Span::from_ms(ms) });
    // It would begin in ten minutes by the estimate.
    let second = FlowJob { start_after: Span::from_secs(600), after: after(vec![0], 0), ..flow(2, 3, 600) };
    let third = FlowJob { after: after(vec![0, 1], 200), ..second.clone() };
    let runs =
        carry_out(rig([&a, &b, &c, &d]), &group(vec![flow(0, 1, 800), second.clone(), third])).unwrap();
    let starts: Vec<_> = runs.iter().map(|(end, _)| end.start.unwrap()).collect();
    for ((end, record), start) in runs.iter().zip(&starts) {
        assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
        let noted = record.group_start.unwrap();
        assert_eq!(noted.late, start.late, "the log says the same");
    }
    let began = |at: usize| starts[at].planned + starts[at].late;
    assert!(starts[1].planned >= began(0) + Span::from_ms(800), "{starts:?}");
    assert!(starts[2].planned >= began(1) + Span::from_ms(800), "{starts:?}");
    assert!(began(2).since(began(0)) < Span::from_secs(60), "not by the estimate: {starts:?}");
    // It was prepared when the other had ended, and that is part of its lateness.
    assert!(starts[1].late > Span::ZERO, "{starts:?}");
    assert_eq!(runs[1].1.group_start.unwrap().planned, Timestamp::START, "before it was there itself");

    // What would never begin is refused.
    for wrong in [vec![7], vec![1]] {
        let waits = FlowJob { after: after(wrong, 0), ..second.clone() };
        let troubles = carry_out(rig([&a, &b, &c, &d]), &group(vec![flow(0, 1, 100), waits])).unwrap_err();
        assert!(troubles[0].to_string().starts_with("flow 2: it waits for a run"), "{troubles:?}");
    }
    let background = FlowJob { background: true, ..flow(0, 1, 100) };
    let troubles = carry_out(rig([&a, &b, &c, &d]), &group(vec![background, second])).unwrap_err();
    assert!(troubles[0].to_string().contains("in the background"), "{troubles:?}");
}

#[test]
fn places_are_kept_from_group_to_group_and_who_waits_gets_its_turn() {
    let (a, b) = (Agent::start(), Agent::start());
    let (group, stop) = (group(vec![flow(0, 1, 100)]), AtomicBool::new(false));
    let mut coordinator = Coordinator::connect(rig([&a, &b]), &stop).unwrap();
    let run = |coordinator: &mut Coordinator| {
        let mut logs = [Log::new("run".to_owned(), Vec::new())];
        coordinator.run_group(&group, &mut logs, &stop, &mut |_| ()).unwrap().remove(0).outcome
    };
    let place = |news| match news {
        News::Held { .. } => Some("held"),
        News::Waiting { .. } => Some("waits"),
        News::Begun { name, .. } if !name.is_empty() => Some("begun"),
        _ => None,
    };
    assert_eq!(run(&mut coordinator), Outcome::Completed);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| stranger(&b));
        let so_far = [b.hear(place), b.hear(place), b.hear(place)];
        assert_eq!(so_far, ["held", "begun", "waits"], "the place is kept behind the group");
        // Long enough: the next group lets the stranger before it.
        clock::sleep_until(clock::now() + Duration::from_millis(1200));
        assert_eq!(run(&mut coordinator), Outcome::Completed);
        let before: Vec<_> =
            std::iter::from_fn(|| Some(b.hear(place))).take_while(|news| *news != "held").collect();
        assert!(before.contains(&"begun"), "{before:?}");
        assert_eq!(b.hear(place), "begun");
        assert_eq!(waiting.join().unwrap().outcome, Some(Outcome::Completed));
        let waiting = scope.spawn(|| stranger(&b));
        assert_eq!(b.hear(place), "waits");
        coordinator.give_places_back();
        assert_eq!(waiting.join().unwrap().outcome, Some(Outcome::Completed));
    });
    coordinator.finish();
}

#[test]
fn the_next_group_is_prepared_while_this_one_is_judged_and_another_one_may_follow() {
    let (a, b) = (Agent::start(), Agent::start());
    let (first, second) = (group(vec![flow(0, 1, 200)]), group(vec![flow(0, 1, 150)]));
    let stop = AtomicBool::new(false);
    let mut coordinator = Coordinator::connect(rig([&a, &b]), &stop).unwrap();
    let mut begun = Vec::new();
    let mut run = |group: &Group, next: Option<&Group>| {
        let mut logs = [Log::new("run".to_owned(), Vec::new())];
        let mut on = |told: &Told<'_>| begun.extend(matches!(told.body, Body::Started(_)).then_some(told.at));
        let end = coordinator.run_before(group, next, &mut logs, &stop, &mut on).unwrap().remove(0);
        let [log] = logs;
        let record = log.into_record();
        assert_eq!((end.outcome, record.outcome), (Outcome::Completed, Some(Outcome::Completed)), "{end:?}");
        let measured = record.start.unwrap().spec.traffic.duration;
        assert_eq!(
            (measured, record.hosts.len(), record.flows.len()),
            (group.flows[0].spec.traffic.duration, 2, 1)
        );
        assert!(end.start.unwrap().late < Span::from_secs(1) && record.group_start.is_some());
    };
    let asked = || a.hear(|news| matches!(news, News::Asked { .. }).then_some(()));
    run(&first, Some(&second));
    asked();
    asked();
    run(&second, Some(&first));
    // What was prepared is not what follows.
    run(&second, None);
    run(&first, Some(&second));
    coordinator.finish();
    assert_eq!(begun.len(), 4);
    assert!(begun.is_sorted(), "nothing begins before the one before it is over: {begun:?}");
    // What was prepared last keeps nobody from anything.
    assert_eq!(stranger(&b).outcome, Some(Outcome::Completed));
    drop(a);
    drop(b);
}

#[test]
fn events_of_all_runs_come_with_the_time_of_the_coordinator() {
    let (mut a, b, c, d) = (Agent::start(), Agent::start(), Agent::start(), Agent::start());
    // Two groups, so that the runs of the second begin long after the coordinator's own time. In between an agent is
    // started anew: its clock begins then.
    let groups = [group(vec![flow(0, 1, 1500)]), group(vec![flow(0, 1, 300), flow(2, 3, 300)])];
    let mut logs = [Log::new("1".to_owned(), Vec::new()), Log::new("2".to_owned(), Vec::new())];
    let mut began: Vec<(usize, Timestamp, Span)> = Vec::new();
    let mut on = |told: &Told<'_>| {
        if let Body::Started(start) = told.body {
            began.push((told.flow, told.at, start.late));
        }
    };
    let mut coordinator = Coordinator::connect(rig([&a, &b, &c, &d]), &AtomicBool::new(false)).unwrap();
    let error = coordinator.standings().into_iter().map(|s| s.unwrap().offset_error).max().unwrap();
    let stop = AtomicBool::new(false);
    let mut first = [Log::new("0".to_owned(), Vec::new())];
    coordinator.run_group(&groups[0], &mut first, &stop, &mut |_| ()).unwrap();
    let address = a.address;
    drop(a);
    a = Agent::at(address, ServerConfig { agent_token: Some(token()), ..ServerConfig::default() });
    let ends = coordinator.run_group(&groups[1], &mut logs, &stop, &mut on).unwrap();
    coordinator.finish();
    assert!(ends.iter().all(|end| end.outcome == Outcome::Completed) && began.len() == 2, "{ends:?}");
    drop(a);
    for (flow, at, late) in began {
        let start = ends[flow].start.unwrap();
        // The event was noted right after the start, on one machine's clock: what is between is the error of the
        // offsets and a few instructions.
        let told = at.as_ns().abs_diff((start.planned + late).as_ns());
        eprintln!("flow {flow}: {told} ns from plan and lateness, offset error {error}");
        assert!(Span::from_ns(told) < Span::from_secs(1), "{told} ns");
    }
}

#[test]
fn a_target_that_is_no_server_is_named() {
    let (a, listener) = (Agent::start(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = Some(listener.local_addr().unwrap().port());
    let ssh = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").unwrap();
        let _ = client.read(&mut [0; 4096]);
    });
    let to = Target::Server { host: "127.0.0.1".to_owned(), port };
    let runs = carry_out(rig([&a]), &group(vec![FlowJob { to, ..flow(0, 0, 100) }])).unwrap();
    ssh.join().unwrap();
    let (end, record) = &runs[0];
    assert_eq!((end.outcome, record.outcome), (Outcome::Failed, Some(Outcome::Failed)));
    assert!(end.reason.as_ref().unwrap().contains("an SSH server"), "{end:?}");
}

#[test]
fn a_ticket_that_nobody_gave_out_is_refused() {
    let server = Agent::start();
    let mut client = TcpStream::connect(server.address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let hello = serde_json::json!({
        "type": "hello", "versions": [1, 1], "capabilities": ["tcp"], "host": HostInfo::default(),
        "spec": spec(100), "ticket": "07".repeat(16),
    });
    client.write_all(&Preface::CONTROL.encode()).unwrap();
    client.write_all(&Framer::encode(&hello).unwrap()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("refused") && answer.contains("the coordinator of this run held"), "{answer}");
}

/// A coordinator that can vanish: one that only holds the place.
fn hold(agent: &Agent) -> (TcpStream, Ticket) {
    let mut stream = TcpStream::connect(agent.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let now = Timestamp::START;
    let mut end = CoordinatorEnd::new(now, token(), [9; 16], "mortal".to_owned());
    let mut bytes = [0; 16 << 10];
    loop {
        while let Some(output) = end.output() {
            match output {
                Output::Send(bytes) => stream.write_all(&bytes).unwrap(),
                Output::Welcomed(_) => end.input(now, Input::Hold { expected: Span::ZERO }).unwrap(),
                Output::Held(ticket) => return (stream, ticket),
                _ => {}
            }
        }
        let count = stream.read(&mut bytes).unwrap();
        end.input(now, Input::Bytes(&bytes[..count])).unwrap();
    }
}

#[test]
fn who_is_measured_in_a_coordinators_place_leaves_with_it() {
    let server = Agent::start();
    let (coordinator, ticket) = hold(&server);
    let mut guest = TcpStream::connect(server.address).unwrap();
    guest.set_read_timeout(Some(PATIENCE)).unwrap();
    let hello = serde_json::json!({
        "type": "hello", "versions": [1, 1], "capabilities": ["tcp"], "host": HostInfo::default(),
        "spec": spec(100), "ticket": ticket,
    });
    guest.write_all(&Preface::CONTROL.encode()).unwrap();
    guest.write_all(&Framer::encode(&hello).unwrap()).unwrap();
    let mut heard = Vec::new();
    let mut hear = |words: &str| {
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&heard).contains(words) {
            let count = guest.read(&mut piece).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&piece[..count]);
        }
    };
    hear("\"welcome\"");
    drop(coordinator);
    hear("the coordinator of this run is gone");
    // And whoever comes next is measured.
    assert_eq!(stranger(&server).outcome, Some(Outcome::Completed));
}

/// A sink that counts.
#[derive(Default)]
struct Order(Vec<(u64, Timestamp)>);

impl Sink for Order {
    fn on(&mut self, event: &Event) -> Result<(), String> {
        self.0.push((event.seq, event.at));
        Ok(())
    }
}

#[test]
fn the_log_of_a_run_is_one_without_gaps_and_in_order() {
    let (a, b) = (Agent::start(), Agent::start());
    let mut order = Order::default();
    let mut logs = [Log::new("1".to_owned(), vec![&mut order])];
    let group = group(vec![flow(0, 1, 300)]);
    run_group(rig([&a, &b]), &group, &mut logs, &AtomicBool::new(false), &mut |_| ()).unwrap();
    drop(logs);
    assert!(order.0.iter().enumerate().all(|(at, (seq, _))| at as u64 == *seq));
    // What was before the agent took the run up has no time of its own.
    assert!(order.0[..2].iter().all(|(_, at)| *at == Timestamp::START), "{:?}", order.0);
    assert!(order.0.is_sorted_by_key(|(_, at)| *at), "{:?}", order.0);
}
