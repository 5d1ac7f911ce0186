//! Tests between two other hosts: `linerate serve --agent-token-file` and `linerate test --from`.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_control::{FlowJob, HostRef, Log, RunEvent, RunGroup, RunServer, TestBed, run_group};
use linerate_model::{Body, CaveatKind, Outcome, TestSpec};
use linerate_proto::agent::Token;
use linerate_units::{Bitrate, Span};

use crate::support::{self, AgentPair, Process, ServeProcess, TIMEOUT, linerate, signal, token_file};

/// Timeout for one end to notice that the other one is gone.
const NOTICE: Duration = Duration::from_secs(20);

fn agent(token: &str) -> ServeProcess {
    ServeProcess::start(&["--agent-token-file", token])
}

/// A test against one server, run by another.
fn test_from(agent: &ServeProcess, target: u16, token: &str, args: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["test", &format!("127.0.0.1:{target}"), "--from", &format!("127.0.0.1:{}", agent.port)]);
    command.args(["--agent-token-file", token]).args(args);
    command
}

#[test]
fn a_test_between_two_other_hosts_is_printed_and_archived_as_any_other() {
    let (folder, token) = token_file();
    let (from, to) = (agent(&token), ServeProcess::start(&[]));
    let archive = folder.file("archive.sqlite");
    let args = ["-t", "5", "--upload", "-b", "20M", "--json", "--archive", &archive];
    let done = Process::start(test_from(&from, to.port, &token, &args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    assert_eq!(document["run"]["outcome"], "completed");
    assert_eq!(document["hosts"].as_array().unwrap().len(), 2);
    let flow = support::flow(&document, "upload");
    assert!(flow["receiver"]["bytes"].as_u64().unwrap() > 0 && flow["verdict"]["rule"].is_string(), "{flow}");
    assert!(flow["latency"]["idle"]["p50_ns"].is_u64(), "{flow}");
    assert!(document["run"].get("group").is_none() && document["run"].get("group_start").is_none());
    assert_eq!(from.await_events("asked", 1)["target"], "127.0.0.1");
    from.await_events("ended", 1);
    to.await_events("begun", 1);
    let mut show = linerate();
    show.args(["show", "--json", "--archive", &archive]);
    assert_eq!(Process::start(show).finish(TIMEOUT).json()["flows"], document["flows"]);
}

#[test]
fn a_wrong_token_and_a_host_without_agent_are_reported() {
    let (folder, token) = token_file();
    let (from, to) = (agent(&token), ServeProcess::start(&[]));
    let other = folder.file("other");
    std::fs::write(&other, "a secret that nobody shares").unwrap();
    for (agent, file, words) in
        [(&from, &other, "the token differs from the agent's"), (&to, &token, "is not an agent")]
    {
        let done = Process::start(test_from(agent, to.port, file, &["-t", "1", "--json"])).finish(NOTICE);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(words), "{done:?}");
        assert_eq!(done.json()["run"]["outcome"], "failed");
    }
    assert!(to.events("begun").is_empty(), "nothing was measured");
    // The server that is not an agent continues to serve.
    support::test_json(support::test("127.0.0.1", to.port, &["-t", "1", "--upload", "-b", "1M", "--json"]));
}

#[test]
fn a_bad_token_is_reported_before_anything_is_done() {
    let (folder, token) = token_file();
    let short = folder.file("short");
    std::fs::write(&short, "secret\n").unwrap();
    let missing = folder.file("missing");
    for (args, words) in [
        (["test", "b", "--from", "a"].as_slice(), "--agent-token-file"),
        (&["test", "b", "--agent-token-file", &token], "--from"),
        (&["test", "b", "--from", "a", "--agent-token-file", &short], "at least 16"),
        (&["test", "b", "--from", "a", "--agent-token-file", &missing], "missing"),
        (&["test", "b", "--from", "a:0", "--agent-token-file", &token], "--from"),
        (&["serve", "-p", "0", "--agent-token-file", &short], "at least 16"),
    ] {
        let mut command = linerate();
        command.args(args);
        let done = Process::start(command).finish(NOTICE);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{args:?}: {done:?}");
    }
}

/// An agent, a target, and a coordinator whose test began a few seconds ago, so that something was reported.
fn measuring(output: &str) -> (ServeProcess, ServeProcess, Process) {
    let (_folder, token) = token_file();
    let (from, to) = (agent(&token), ServeProcess::start(&[]));
    let args = ["-t", "600", "--upload", "-b", "5M", "--no-latency", output];
    let coordinator = Process::start(test_from(&from, to.port, &token, &args));
    to.await_events("begun", 1);
    support::pause(Duration::from_secs(4));
    (from, to, coordinator)
}

#[test]
fn a_coordinator_that_is_killed_frees_its_agent_and_the_target_at_once() {
    let (from, to, coordinator) = measuring("-q");
    signal(coordinator.pid(), "KILL");
    from.await_events("ended", 1);
    to.await_events("ended", 1);
    for server in [&from, &to] {
        let args = ["-t", "1", "--upload", "-b", "1M", "--json"];
        support::test_json(support::test("127.0.0.1", server.port, &args));
    }
}

#[test]
fn a_killed_agent_fails_the_test_and_what_was_reported_is_kept() {
    let (from, to, coordinator) = measuring("--json");
    from.signal("KILL");
    let done = coordinator.finish(NOTICE);
    assert_eq!(done.code, Some(1), "{done:?}");
    let document = done.json();
    assert_eq!(document["run"]["outcome"], "failed");
    assert!(document["run"]["reason"].as_str().unwrap().starts_with("127.0.0.1:"), "{document}");
    assert!(support::caveats(&document).contains(&"partial".to_owned()), "{document}");
    assert!(support::flow(&document, "upload")["receiver"]["bytes"].as_u64().unwrap() > 0, "{document}");
    to.await_events("ended", 1);
    support::test_json(support::test("127.0.0.1", to.port, &["-t", "1", "--upload", "-b", "1M", "--json"]));
}

#[test]
fn an_interrupted_coordinator_prints_what_was_measured() {
    let (_from, _to, coordinator) = measuring("--json");
    signal(coordinator.pid(), "INT");
    let done = coordinator.finish(NOTICE);
    assert_eq!(done.code, Some(130), "{done:?}");
    let document = done.json();
    assert_eq!(document["run"]["outcome"], "interrupted");
    assert!(support::flow(&document, "upload")["receiver"]["bytes"].as_u64().unwrap() > 0, "{document}");
}

#[test]
fn of_three_pairs_one_loses_its_client_one_its_server_and_the_third_goes_on() {
    let (_folder, token) = token_file();
    let servers: Vec<ServeProcess> = (0..6).map(|_| agent(&token)).collect();
    let host = |(number, server): (usize, &ServeProcess)| HostRef {
        name: format!("h{number}"),
        address: "127.0.0.1".to_owned(),
        port: Some(server.port),
        test_address: None,
        token: Token::new(AgentPair::SECRET).unwrap(),
        tls: None,
        netns: None,
    };
    let bed = TestBed { name: "the test".to_owned(), hosts: servers.iter().enumerate().map(host).collect() };
    let flow = |from, to, seconds| {
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_secs(seconds));
        spec.traffic.upload = true;
        spec.traffic.no_latency = true;
        spec.traffic.rate = Bitrate::from_bps(5e6);
        FlowJob {
            from,
            to: RunServer::Host(to),
            spec,
            start_after: Span::ZERO,
            after: None,
            cross_traffic: false,
            plan: None,
        }
    };
    let flows = vec![flow(0, 1, 600), flow(2, 3, 600), flow(4, 5, 3)];
    let group =
        RunGroup { name: Some("three pairs".to_owned()), started_at: String::new(), start_by: None, flows };
    let mut logs = ["1", "2", "3"].map(|name| Log::new(name.to_owned(), Vec::new()));
    let mut killed = [false; 2];
    let mut on = |event: &RunEvent<'_>| {
        // The client of the first pair and the server of the second one.
        let victim = [&servers[0], &servers[3]].into_iter().nth(event.flow);
        if let (Body::Progress { .. }, Some(victim)) = (event.body, victim)
            && !std::mem::replace(&mut killed[event.flow], true)
        {
            victim.signal("KILL");
        }
    };
    let ends = run_group(bed, &group, &mut logs, &AtomicBool::new(false), &mut on).unwrap();
    let outcomes: Vec<Outcome> = ends.iter().map(|end| end.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Failed, Outcome::Completed], "{ends:?}");
    assert!(ends[0].reason.as_ref().unwrap().starts_with("h0: "), "{ends:?}");
    assert!(ends[1].reason.is_some() && ends[2].reason.is_none(), "{ends:?}");
    for (log, end) in logs.iter().zip(&ends) {
        let record = log.record();
        assert_eq!((record.outcome, record.reason.as_deref()), (Some(end.outcome), end.reason.as_deref()));
        let partial = record.flows[0].caveats.iter().any(|caveat| caveat.kind == CaveatKind::Partial);
        assert_eq!(partial, end.outcome == Outcome::Failed, "{record:?}");
        assert!(record.flows[0].received().is_some(), "what was reported is kept");
    }
}
