//! Failures of one host or one run, and their effect on the others.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;

use linerate_control::{FlowJob, Log, RunEvent, RunServer, ServerConfig, ServerLimits, run_group};
use linerate_model::{Body, Outcome};
use linerate_proto::agent::Token;
use linerate_units::Span;

use super::hosts::{LoopbackAgent, carry_out, flow, group, test_bed, token};

#[test]
fn every_error_of_every_host_is_reported_before_anything_is_measured() {
    let (good, plain) = (LoopbackAgent::start(), LoopbackAgent::with(ServerConfig::default()));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut test_bed = test_bed([&good, &good, &plain, &good]);
    test_bed.hosts[1].token = Token::new("some other secret of theirs").unwrap();
    test_bed.hosts[3].port = Some(nobody.port());
    let troubles = carry_out(test_bed, &group(vec![flow(0, 1, 100)])).unwrap_err();
    let messages: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].starts_with("b: ") && messages[0].contains("token"), "{messages:?}");
    assert!(messages[1].starts_with("c: ") && messages[1].contains("--agent-token-file"), "{messages:?}");
    assert!(messages[2].starts_with("d: ") && messages[2].contains("refused"), "{messages:?}");
}

#[test]
fn what_a_host_cannot_do_and_one_server_under_two_names_are_reported() {
    let limited = ServerConfig {
        agent_token: Some(token()),
        limits: ServerLimits { longest: Some(Span::from_secs(4)), ..ServerLimits::default() },
        ..ServerConfig::default()
    };
    let (a, b) = (LoopbackAgent::start(), LoopbackAgent::with(limited));
    let mut long = flow(0, 1, 5000);
    long.spec.socket.congestion = Some("of_tomorrow".into());
    let troubles = carry_out(test_bed([&a, &b]), &group(vec![long, flow(0, 9, 100)])).unwrap_err();
    let messages: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    for (at, words) in [
        (0, "a: flow 1: its kernel does not have the congestion control 'of_tomorrow'"),
        (1, "b: flow 1: its kernel does not have the congestion control"),
        (2, "b: flow 1: the run would take 7 s, but the host allows 4 s"),
        (3, "flow 2: host number 9"),
    ] {
        assert!(messages[at].starts_with(words), "{at}: {messages:?}");
    }
    let troubles = carry_out(test_bed([&a, &a]), &group(Vec::new())).unwrap_err();
    assert!(troubles[0].to_string().starts_with("b: it is the same server as a"), "{troubles:?}");
}

#[test]
fn an_agent_that_ends_fails_its_own_run_and_the_other_goes_on() {
    let (a, b, c, d) =
        (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    let group = group(vec![flow(0, 1, 60_000), flow(2, 3, 2500)]);
    let mut logs = [Log::new("1".to_owned(), Vec::new()), Log::new("2".to_owned(), Vec::new())];
    let mut on = |event: &RunEvent<'_>| {
        if event.flow == 0 && matches!(event.body, Body::Progress { .. }) {
            a.switch.turn_off();
        }
    };
    let stop = AtomicBool::new(false);
    let ends = run_group(test_bed([&a, &b, &c, &d]), &group, &mut logs, &stop, &mut on).unwrap();
    let reason = ends[0].reason.clone().unwrap();
    assert!(ends[0].outcome == Outcome::Failed && reason.contains("its agent ended it"), "{ends:?}");
    assert_eq!((ends[1].outcome, &ends[1].reason), (Outcome::Completed, &None));
    assert!(logs[0].record().flows[0].progress.is_some(), "what was reported is kept");
}

#[test]
fn a_target_that_is_no_server_is_named() {
    let (a, listener) = (LoopbackAgent::start(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = Some(listener.local_addr().unwrap().port());
    let ssh = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").unwrap();
        let _ = client.read(&mut [0; 4096]);
    });
    let to = RunServer::Server { host: "127.0.0.1".to_owned(), port };
    let runs = carry_out(test_bed([&a]), &group(vec![FlowJob { to, ..flow(0, 0, 100) }])).unwrap();
    ssh.join().unwrap();
    let (end, record) = &runs[0];
    assert_eq!((end.outcome, record.outcome), (Outcome::Failed, Some(Outcome::Failed)));
    assert!(end.reason.as_ref().unwrap().contains("an SSH server"), "{end:?}");
}
