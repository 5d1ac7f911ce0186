//! Host settings changed by a coordinator: set, restored, and restored after every kind of sudden end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_control::{
    Coordinator, FlowEnd, FlowJob, HostError, HostRef, Log, RunGroup, RunServer, SETTINGS, TestBed,
};
use linerate_model::{Outcome, TestSpec};
use linerate_proto::agent::Token;
use linerate_sock::host_setting::HostSetting;
use linerate_sock::netns;
use linerate_units::{Bitrate, Span};

use crate::support::{self, AgentPair, LinkSide, Process, ServeProcess, TIMEOUT, eventually, pause, signal};

/// Environment variable with the task of another process of this program.
const COORDINATE: &str = "LINERATE_TEST_COORDINATOR";
static NO_STOP: AtomicBool = AtomicBool::new(false);

/// Settings of a point that every host here supports, all different from the current ones.
const POINT: [(&str, &str); 5] = [
    ("mtu", "3000"),
    ("tso", "false"),
    ("gro", "true"),
    ("tcp_rmem", "8192 262144 8388608"),
    ("qdisc", "pfifo limit 9"),
];

impl AgentPair {
    /// Works on host `a` as a coordinator in this process.
    fn with<T: Send>(&self, work: impl FnOnce(&mut Coordinator) -> T + Send) -> T {
        self.inside("a", || {
            let mut coordinator = Coordinator::connect(test_bed(), &NO_STOP).unwrap();
            let done = work(&mut coordinator);
            coordinator.finish();
            done
        })
    }
}

fn test_bed() -> TestBed {
    let host = |name: &str, side: LinkSide| HostRef {
        name: name.to_owned(),
        address: side.address().to_owned(),
        port: None,
        test_address: None,
        token: Token::new(AgentPair::SECRET).unwrap(),
        tls: None,
        netns: None,
    };
    TestBed { name: "the tests".to_owned(), hosts: vec![host("a", LinkSide::A), host("b", LinkSide::B)] }
}

fn settings(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn messages(troubles: &[HostError]) -> String {
    troubles.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A small run from `a` to `b`; returns how it ended.
fn measure(coordinator: &mut Coordinator) -> Result<Outcome, Vec<HostError>> {
    measured(coordinator).map(|end| end.outcome)
}

fn measured(coordinator: &mut Coordinator) -> Result<FlowEnd, Vec<HostError>> {
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_ms(300));
    (spec.traffic.upload, spec.traffic.no_latency) = (true, true);
    spec.traffic.rate = Bitrate::from_bps(10e6);
    let flow = FlowJob {
        from: 0,
        to: RunServer::Host(1),
        spec,
        start_after: Span::ZERO,
        after: None,
        cross_traffic: false,
        plan: None,
    };
    let group = RunGroup {
        name: Some("point".to_owned()),
        started_at: String::new(),
        start_by: None,
        flows: vec![flow],
    };
    let mut logs = [Log::new("run".to_owned(), Vec::new())];
    Ok(coordinator.run_group(&group, &mut logs, &NO_STOP, &mut |_| ())?.remove(0))
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_point_is_measured_under_its_settings_and_the_next_under_others() {
    let pair = AgentPair::new();
    let before = pair.state();
    pair.with(|coordinator| {
        let wanted = [(0, settings(&POINT)), (1, settings(&[("mtu", "3000")]))];
        assert_eq!(messages(&coordinator.check_settings(&wanted, &NO_STOP)), "");
        assert_eq!(pair.state(), before, "a look changes nothing");
        assert!(pair.is_clean());
        let in_force = coordinator.apply_settings(&wanted, &NO_STOP).unwrap();
        let mtu = in_force[1].in_force.first().unwrap();
        assert_eq!(
            (mtu.interface.as_deref(), mtu.found.as_str(), mtu.now.as_str()),
            (Some("veth0"), "1500", "3000")
        );
        assert_eq!(in_force[0].in_force.len(), POINT.len());
        let during = pair.state();
        let changed = during.iter().zip(&before).filter(|(now, then)| now != then).count();
        assert_eq!(changed, POINT.len() + 1, "{during:#?}");
        assert_eq!(measure(coordinator).unwrap(), Outcome::Completed);
        // Longer than the agents' timeout for a silent coordinator.
        coordinator.wait(Span::from_secs(8), &NO_STOP);
        assert_eq!(pair.state(), during, "settings outlast a run and a rest");
        // The next point changes one of them and does not mention the others.
        coordinator.apply_settings(&[(0, settings(&[("mtu", "2000")]))], &NO_STOP).unwrap();
        let now = pair.state();
        let differ: Vec<usize> = (0..now.len()).filter(|at| now[*at] != before[*at]).collect();
        assert_eq!((differ.len(), now[differ[0]].as_str()), (1, "2000"));
        assert_eq!(measure(coordinator).unwrap(), Outcome::Completed);
        assert_eq!(coordinator.restore_settings(), []);
        assert_eq!(pair.state(), before);
        assert_eq!(measure(coordinator).unwrap(), Outcome::Completed);
    });
    assert!(pair.is_clean());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn obstacles_of_all_hosts_are_reported_before_anything_is_changed() {
    let pair = AgentPair::new();
    let before = pair.state();
    pair.with(|coordinator| {
        let wanted = [
            (0, settings(&[("mtu", "70000"), ("congestion", "carrier-pigeon"), ("lro", "true")])),
            (1, settings(&[("tcp_rmem", "0 1 2"), ("interface", "eth7"), ("tso", "false")])),
        ];
        let troubles = messages(&coordinator.check_settings(&wanted, &NO_STOP));
        for words in [
            "a: mtu 70000 of veth0: the NIC accepts 68 to 65535",
            "a: the congestion control 'carrier-pigeon' is not loaded in its kernel",
            "a: lro of veth0",
            "b: interface eth7",
        ] {
            assert!(troubles.contains(words), "{words}: {troubles}");
        }
        let unknown = coordinator.check_settings(&[(1, settings(&[("colour", "red")]))], &NO_STOP);
        assert!(messages(&unknown).contains("b: its agent cannot set colour"), "{unknown:?}");
        // One host supports it, the other does not: neither is changed.
        let half = [(0, settings(&POINT)), (1, settings(&[("mtu", "70000")]))];
        let troubles = messages(&coordinator.apply_settings(&half, &NO_STOP).unwrap_err());
        assert!(troubles.contains("b: mtu 70000"), "{troubles}");
        assert_eq!(pair.state(), before);
        assert_eq!(measure(coordinator).unwrap(), Outcome::Completed);
    });
    assert!(pair.is_clean());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_coordinators_have_the_hosts_one_after_the_other() {
    let pair = AgentPair::new();
    let before = pair.state();
    pair.with(|first| {
        first.apply_settings(&[(0, settings(&POINT))], &NO_STOP).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                pair.with(|second| {
                    second.apply_settings(&[(0, settings(&[("mtu", "2000")]))], &NO_STOP).map(drop)
                })
            });
            for agent in pair.agents.values() {
                agent.await_events("held", 1);
            }
            eventually("the second waits at one of them", || {
                pair.agents.values().any(|agent| !agent.events("waiting").is_empty()).then_some(())
            });
            assert_eq!(measure(first).unwrap(), Outcome::Completed);
            assert_eq!(first.restore_settings(), []);
            assert_eq!(second.join().unwrap(), Ok(()));
        });
        assert_eq!(pair.state(), before);
    });
    assert!(pair.is_clean());
}

/// Another process sets the point's settings repeatedly, as a coordinator does between runs, until it is
/// killed.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_coordinator_killed_at_any_moment_leaves_the_hosts_as_they_were() {
    let pair = AgentPair::new();
    let before = pair.state();
    let mut seen_changed = 0;
    for (rounds, round) in (0..30_u64).enumerate() {
        let child = pair.child();
        eventually("it has begun to change settings", || (pair.state() != before).then_some(()));
        pause(Duration::from_millis(round * 17 % 97));
        signal(child.pid(), "KILL");
        seen_changed += u32::from(pair.state() != before);
        for agent in pair.agents.values() {
            agent.await_events("ended", rounds + 1);
        }
        assert_eq!(pair.state(), before, "round {round}");
        assert!(pair.is_clean(), "round {round}");
        drop(child);
    }
    assert!(seen_changed > 0, "no kill came while settings were changed");
}

/// The processes that an agent has started.
fn guardians(agent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid| support::parent_of(*pid) == Some(agent)).collect()
}

/// Simulates a power failure: the agent is stopped so that it cannot start another guardian, then both are
/// killed.
fn kill_with_guardian(agent: &ServeProcess) {
    agent.signal("STOP");
    support::kill(&guardians(agent.pid()));
    agent.signal("KILL");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_settings_of_an_agent_that_is_killed_are_put_back_at_once_by_its_guardian() {
    let mut pair = AgentPair::new();
    let before = pair.state();
    assert_eq!(
        guardians(pair.agents["a"].pid()),
        Vec::<u32>::new(),
        "there is none before anything is changed"
    );
    for signals in [&["KILL"][..], &["STOP", "KILL"]] {
        let child = pair.child_at_rest();
        for agent in pair.agents.values() {
            agent.await_events("settings_changed", 1);
        }
        assert_ne!(pair.state(), before);
        let agent = pair.agents.remove("a").unwrap();
        let guardian = guardians(agent.pid());
        assert_eq!(guardian.len(), 1, "{guardian:?}");
        // Signals that end an agent do not end its guardian.
        for name in ["INT", "TERM", "HUP", "QUIT", "ABRT"] {
            signal(guardian[0], name);
        }
        signals.iter().for_each(|name| agent.signal(name));
        // `finish` also waits for the guardian, which shares its stderr.
        let errors = agent.finish(TIMEOUT).stderr;
        assert!(errors.contains("the agent was killed: restored mtu of veth0"), "{errors}");
        drop(child);
        eventually("all is as before", || (pair.state() == before && pair.is_clean()).then_some(()));
        pair.start("a");
        pair.agents.remove("b");
        pair.start("b");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_agent_killed_at_any_moment_puts_the_hosts_settings_back_at_its_next_start() {
    let mut pair = AgentPair::new();
    let before = pair.state();
    let mut left_over = 0;
    for (rounds, round) in (0..30_u64).enumerate() {
        let child = pair.child();
        eventually("it has begun to change settings", || (pair.state() != before).then_some(()));
        // At moments from the first change through several rounds of setting and restoring.
        pause(Duration::from_micros(round * 7_919 % 120_000));
        let agent = pair.agents.remove("a").unwrap();
        kill_with_guardian(&agent);
        agent.finish(TIMEOUT);
        drop(child);
        // The other agent is alive and restores everything when its coordinator is gone.
        pair.agents["b"].await_events("ended", rounds + 1);
        assert_eq!(pair.state().split_off(HostSetting::ALL.len()), before[HostSetting::ALL.len()..]);
        let changed = pair.state() != before;
        left_over += u32::from(changed);
        let doctor = Process::start(pair.command("a", &["doctor", "--json"])).finish(TIMEOUT);
        let checks = doctor.json()["checks"].to_string();
        assert!(!changed || checks.contains("agent.setting.1"), "{checks}");
        pair.start("a");
        assert_eq!(pair.state(), before, "round {round}");
        assert!(pair.is_clean(), "round {round}");
        if changed {
            let words = "left by a killed agent: restored";
            eventually("it says so", || pair.agents["a"].stderr().contains(words).then_some(()));
        }
    }
    assert!(left_over >= 5, "only {left_over} kills came while settings were changed");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_agent_that_is_stopped_puts_back_first_and_what_a_killed_one_left_can_be_put_back_by_hand() {
    let mut pair = AgentPair::new();
    let before = pair.state();
    for (name, by_hand) in [("TERM", false), ("KILL", true)] {
        let child = pair.child_at_rest();
        eventually("both are set", || (!pair.is_clean() && pair.state() != before).then_some(()));
        pair.agents["a"].await_events("settings_changed", 1);
        let agent = pair.agents.remove("a").unwrap();
        if by_hand {
            kill_with_guardian(&agent)
        } else {
            agent.signal(name)
        }
        agent.finish(TIMEOUT);
        drop(child);
        if by_hand {
            let restore = |words: &str| {
                let args = ["doctor", "--restore-settings"];
                let done = Process::start(pair.command("a", &args)).finish(TIMEOUT);
                assert!(done.code == Some(0) && done.stderr.contains(words), "{done:?}");
            };
            restore("restored mtu of veth0: 3000, before 1500");
            restore("no agent has left");
        }
        eventually("all is as before", || (pair.state() == before && pair.is_clean()).then_some(()));
        pair.start("a");
    }
}

/// A host that hangs, or a cable that is unplugged, closes no connection.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_coordinator_that_falls_silent_loses_its_settings() {
    let pair = AgentPair::new();
    let before = pair.state();
    let child = pair.child_at_rest();
    for agent in pair.agents.values() {
        agent.await_events("settings_changed", 1);
    }
    assert_ne!(pair.state(), before);
    signal(child.pid(), "STOP");
    for agent in pair.agents.values() {
        let event = agent.await_events("settings_restored", 1);
        assert!(
            !event["put_back"].as_array().unwrap().is_empty() && event["left"] == serde_json::json!([]),
            "{event}"
        );
        agent.await_events("ended", 1);
    }
    assert_eq!(pair.state(), before);
    assert!(pair.is_clean());
    signal(child.pid(), "KILL");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_agent_that_dies_between_two_runs_is_missed_before_the_next_one() {
    let mut pair = AgentPair::new();
    let before = pair.state();
    let net = netns::of_this_thread().unwrap();
    let mut coordinator = pair.inside("a", || Coordinator::connect(test_bed(), &NO_STOP).unwrap());
    coordinator.apply_settings(&[(1, settings(&[("mtu", "3000")]))], &NO_STOP).unwrap();
    let agent = pair.agents.remove("b").unwrap();
    agent.signal("KILL");
    agent.finish(TIMEOUT);
    pair.start("b");
    netns::enter_fd(&std::fs::File::open(format!("/run/netns/{}", pair.net.a)).unwrap()).unwrap();
    let end = measured(&mut coordinator).unwrap();
    let reason = end.reason.unwrap();
    assert!(end.outcome == Outcome::Failed && reason.contains("b: its connection was lost"), "{reason}");
    coordinator.apply_settings(&[(1, settings(&[("mtu", "3000")]))], &NO_STOP).unwrap();
    assert_eq!(measure(&mut coordinator).unwrap(), Outcome::Completed);
    coordinator.finish();
    netns::enter_fd(&net).unwrap();
    assert_eq!(pair.state(), before);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_host_that_is_gone_fails_its_own_runs_and_the_others_are_set_until_it_is_back() {
    let mut pair = AgentPair::new();
    let before = pair.state();
    let net = netns::of_this_thread().unwrap();
    let mut coordinator = pair.inside("a", || Coordinator::connect(test_bed(), &NO_STOP).unwrap());
    netns::enter_fd(&std::fs::File::open(format!("/run/netns/{}", pair.net.a)).unwrap()).unwrap();
    let point = |mtu: &str| [(0, settings(&[("mtu", mtu)])), (1, settings(&[("mtu", mtu)]))];
    let (in_force, troubles) = coordinator.apply_where_possible(&point("3000"), &NO_STOP).unwrap();
    assert_eq!((in_force.len(), troubles), (2, Vec::new()));
    let agent = pair.agents.remove("b").unwrap();
    agent.signal("KILL");
    agent.finish(TIMEOUT);
    let (in_force, troubles) = coordinator.apply_where_possible(&point("2000"), &NO_STOP).unwrap();
    let hosts: Vec<usize> = in_force.iter().map(|host| host.host).collect();
    assert!(hosts == [0] && messages(&troubles).starts_with("b: "), "{in_force:?} {troubles:?}");
    assert_eq!(in_force[0].in_force[0].now, "2000");
    let end = measured(&mut coordinator).unwrap();
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.reason.as_ref().unwrap().starts_with("b: "), "{end:?}");
    // When it is back, it restores what is in its journal, and takes part again.
    pair.start("b");
    let (in_force, troubles) = coordinator.apply_where_possible(&point("2500"), &NO_STOP).unwrap();
    assert_eq!((in_force.len(), troubles), (2, Vec::new()));
    assert_eq!(measure(&mut coordinator).unwrap(), Outcome::Completed);
    // A stop ends everything, and all settings are restored.
    let stopped = coordinator.apply_where_possible(&point("2600"), &AtomicBool::new(true)).unwrap_err();
    assert!(messages(&stopped).contains("cancelled"), "{stopped:?}");
    netns::enter_fd(&net).unwrap();
    assert_eq!(pair.state(), before);
    coordinator.finish();
    assert!(pair.is_clean());
}

/// The other process of the tests that kill a coordinator: this program with a single test.
impl AgentPair {
    fn child(&self) -> Process {
        self.coordinate("again and again")
    }

    fn child_at_rest(&self) -> Process {
        self.coordinate("once")
    }

    fn coordinate(&self, how: &str) -> Process {
        let me = std::env::current_exe().unwrap();
        let me = me.to_str().unwrap();
        let args = [
            "--ignored",
            "--exact",
            "host_settings::the_points_of_a_coordinator_that_is_killed_can_be_set",
            "--nocapture",
        ];
        let mut command = self.net.exec(LinkSide::A, me, &args);
        command.env(COORDINATE, how);
        Process::start(command)
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_agent_without_the_privilege_says_so_before_anything_is_changed() {
    let mut pair = AgentPair::new();
    drop(pair.agents.remove("b").unwrap());
    let token = pair.folder.file("token");
    let program = env!("CARGO_BIN_EXE_linerate");
    let serve = ["serve", "-p", "5201", "--json", "--agent-token-file", &token];
    let mut command = pair.net.exec(
        LinkSide::B,
        "setpriv",
        &[&["--bounding-set", "-net_admin", program], &serve[..]].concat(),
    );
    command.env("LINERATE_RUN", pair.folder.path());
    pair.agents.insert("b", ServeProcess::from(command));
    let before = pair.state();
    pair.with(|coordinator| {
        let wanted = [(0, settings(&POINT)), (1, settings(&[("mtu", "2000"), ("tcp_wmem", "1 2 3")]))];
        let troubles = messages(&coordinator.check_settings(&wanted, &NO_STOP));
        for setting in ["mtu", "tcp_wmem"] {
            assert!(
                troubles.contains(&format!("b: {setting} needs the capability CAP_NET_ADMIN")),
                "{troubles}"
            );
        }
        assert_eq!(messages(&coordinator.apply_settings(&wanted, &NO_STOP).unwrap_err()), troubles);
    });
    assert_eq!(pair.state(), before);
    assert!(pair.is_clean());
}

/// The host settings that a plan may contain are those that an agent supports.
#[test]
fn a_plan_asks_for_nothing_that_agents_cannot_set_and_may_ask_for_all_they_can() {
    let schema = linerate_plan::schema();
    let keys = schema["$defs"]["host"]["properties"].as_object().unwrap().keys();
    let asked: BTreeSet<&str> =
        keys.map(String::as_str).filter(|key| !["address", "port", "interface"].contains(key)).collect();
    assert_eq!(asked, SETTINGS.into_iter().collect());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_agent_without_permission_changes_nothing() {
    let mut pair = AgentPair::new();
    drop(pair.agents.remove("b").unwrap());
    pair.start_with("b", &["--no-settings"]);
    pair.with(|coordinator| {
        let wanted = [(1, settings(&[("mtu", "2000")]))];
        let checked = messages(&coordinator.check_settings(&wanted, &NO_STOP));
        let applied = messages(&coordinator.apply_settings(&wanted, &NO_STOP).unwrap_err());
        assert_eq!(checked, applied);
        assert!(
            checked.contains("b: its agent cannot set mtu") && checked.contains("--no-settings"),
            "{checked}"
        );
        assert_eq!(measure(coordinator).unwrap(), Outcome::Completed);
    });
}

/// The settings that the killed coordinator applies to both hosts in turn.
fn points() -> [BTreeMap<String, String>; 3] {
    [settings(&POINT), settings(&[("mtu", "2000"), ("congestion", "reno")]), settings(&[("gso", "false")])]
}

/// When the tests above start this in another process, it runs until it is killed.
#[test]
#[ignore = "needs root and network namespaces"]
fn the_points_of_a_coordinator_that_is_killed_can_be_set() {
    if let Ok(how) = std::env::var(COORDINATE) {
        return coordinate(&how);
    }
    let pair = AgentPair::new();
    let before = pair.state();
    pair.with(|coordinator| {
        for point in points() {
            coordinator.apply_settings(&[(0, point.clone()), (1, point)], &NO_STOP).unwrap();
            assert_ne!(pair.state(), before);
        }
    });
    assert_eq!(pair.state(), before);
}

fn coordinate(how: &str) {
    let mut coordinator = Coordinator::connect(test_bed(), &NO_STOP).unwrap();
    for point in points().iter().cycle() {
        let wanted = [(0, point.clone()), (1, point.clone())];
        if coordinator.apply_settings(&wanted, &NO_STOP).is_err() {
            return;
        }
        if how == "once" {
            return coordinator.wait(Span::from_secs(600), &NO_STOP);
        }
    }
}
