//! Hosts that limit for how long a coordinator may hold a place.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_control::{
    After, Coordinator, FlowJob, HostRef, Log, RunGroup, ServerConfig, ServerEvent, ServerLimits, TestBed,
};
use linerate_model::Outcome;
use linerate_proto::Ticket;
use linerate_proto::agent::{
    About, AgentDialogue, AgentEnd, AgentInput, AgentOutput, SettingInForce, SettingsAnswer, SettingsRequest,
};
use linerate_sock::clock;
use linerate_units::{Bytes, Span, Timestamp};

use super::hosts::{LoopbackAgent, carry_out, flow, group, test_bed, token};

/// An agent that allows runs of this length.
fn limited(longest: Span) -> LoopbackAgent {
    let limits = ServerLimits { longest: Some(longest), ..ServerLimits::default() };
    LoopbackAgent::with(ServerConfig { agent_token: Some(token()), limits, ..ServerConfig::default() })
}

/// Two groups, one directly after the other, of 12 s each by the estimate of a server, which take little more than a
/// second.
#[test]
fn a_place_that_would_not_last_for_the_next_group_is_taken_anew() {
    let mut brief = flow(0, 1, 0);
    (brief.spec.traffic.duration, brief.spec.traffic.bytes) = (None, Some(Bytes::new(1_500_000)));
    let (group, stop) = (group(vec![brief]), AtomicBool::new(false));
    let taken = |event| match event {
        ServerEvent::Held { .. } => Some("held"),
        ServerEvent::Begun { .. } => Some("begun"),
        _ => None,
    };
    let one_place = ["held", "begun", "begun"].as_slice();
    for (longest, events) in [(13, ["held", "begun", "held", "begun"].as_slice()), (60, one_place)] {
        let (a, b) = (LoopbackAgent::start(), limited(Span::from_secs(longest)));
        let mut coordinator = Coordinator::connect(test_bed([&a, &b]), &stop).unwrap();
        let mut run = |next: Option<&RunGroup>| {
            let mut logs = [Log::new("run".to_owned(), Vec::new())];
            coordinator.run_before(&group, next, &mut logs, &stop, &mut |_| ()).unwrap().remove(0)
        };
        for end in [run(Some(&group)), run(None)] {
            assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
        }
        coordinator.finish();
        let seen: Vec<_> = events.iter().map(|_| b.wait_for(taken)).collect();
        assert_eq!(seen, events, "with a limit of {longest} s");
    }
}

#[test]
fn a_group_that_takes_longer_than_a_host_keeps_a_place_is_refused_by_its_limit() {
    let (a, b) = (LoopbackAgent::start(), limited(Span::from_secs(4)));
    let after = Some(After { flows: vec![0], pause: Span::from_secs(30) });
    let chained = FlowJob { after, ..flow(0, 1, 300) };
    let late = FlowJob { start_after: Span::from_ms(32_300), ..flow(0, 1, 300) };
    for second in [chained, late] {
        let flows = vec![flow(0, 1, 300), second.clone(), second];
        let troubles = carry_out(test_bed([&a, &b]), &group(flows)).unwrap_err();
        let [trouble] = &troubles[..] else { panic!("one for the host: {troubles:?}") };
        let text = trouble.to_string();
        assert!(text.starts_with("b: its runs would take 34.6 s in all, but the host keeps"), "{text}");
        assert!(text.contains("--limit-time"), "{text}");
    }
}

/// A host whose agent grants everything and changes nothing.
struct ScriptedHost {
    host: HostRef,
    requests: Receiver<SettingsRequest>,
}

impl ScriptedHost {
    fn start(name: &str, longest: Option<Span>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let about = About {
            identity: name.into(),
            longest_ns: longest,
            settings: vec!["mtu".into()],
            ..About::default()
        };
        std::thread::spawn(move || grant(listener.accept().unwrap().0, &about, &sender));
        let host = HostRef {
            name: name.to_owned(),
            address: "127.0.0.1".to_owned(),
            port: Some(port),
            test_address: None,
            token: token(),
            tls: None,
            netns: None,
        };
        Self { host, requests }
    }

    /// The requests about settings since the last call.
    fn requests(&self) -> Vec<SettingsRequest> {
        self.requests.try_iter().collect()
    }
}

/// Serves a coordinator until it leaves, and reports its requests about settings.
fn grant(mut stream: TcpStream, about: &About, requests: &Sender<SettingsRequest>) {
    let began = clock::now();
    let now = || Timestamp::START + Span::from(clock::now().since(began));
    let mut end = AgentEnd::new(now(), Some(token()), [3; 16]);
    let mut bytes = [0; 16 << 10];
    loop {
        while let Some(output) = end.output() {
            let answer = match output {
                AgentOutput::Send(bytes) => {
                    stream.write_all(&bytes).unwrap();
                    continue;
                }
                AgentOutput::Known { .. } => AgentInput::About(Box::new(about.clone())),
                AgentOutput::Hold { .. } => AgentInput::Held(Ticket([5; 16])),
                AgentOutput::Settings(request) => {
                    let mtu = SettingInForce {
                        setting: "mtu".into(),
                        interface: None,
                        found: "1500".into(),
                        now: "9000".into(),
                    };
                    let applies = matches!(request, SettingsRequest::Apply(_));
                    requests.send(request).unwrap();
                    let in_force = applies.then_some(mtu).into_iter().collect();
                    AgentInput::SettingsDone(Box::new(SettingsAnswer { in_force, troubles: Vec::new() }))
                }
                AgentOutput::Done => return,
                _ => continue,
            };
            end.input(now(), answer).unwrap();
        }
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => end.input(now(), AgentInput::Bytes(&bytes[..count])).unwrap(),
            _ => return,
        }
    }
}

/// An agent ends a place that nobody has extended for as long as its longest run. A request about settings extends it.
#[test]
fn a_host_without_settings_keeps_its_place_while_those_of_another_are_changed() {
    let limit = Some(Span::from_secs(60));
    let (set, limited) = (ScriptedHost::start("a", limit), ScriptedHost::start("b", limit));
    let endless = ScriptedHost::start("c", None);
    let hosts = [&set, &limited, &endless].map(|scripted| scripted.host.clone()).to_vec();
    let stop = AtomicBool::new(false);
    let mut coordinator =
        Coordinator::connect(TestBed { name: "the tests".to_owned(), hosts }, &stop).unwrap();
    let mtu = |value: &str| vec![(0, BTreeMap::from([("mtu".to_owned(), value.to_owned())]))];
    for value in ["9000", "1500", "1500"] {
        let in_force = coordinator.apply_settings(&mtu(value), &stop).unwrap();
        assert_eq!(
            in_force.iter().map(|host| host.host).collect::<Vec<_>>(),
            [0],
            "nothing is set at the others"
        );
        let requests = set.requests();
        assert!(matches!(requests[..], [SettingsRequest::Apply(_)]), "{requests:?}");
        assert_eq!(limited.requests(), [SettingsRequest::Restore], "its place is extended for {value}");
        assert_eq!(endless.requests(), [], "a place without an end needs no extension");
    }
    assert_eq!(coordinator.restore_settings(), []);
    assert_eq!((set.requests(), limited.requests()), (vec![SettingsRequest::Restore], Vec::new()));
    coordinator.finish();
}
