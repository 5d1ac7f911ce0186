//! Two pairs of hosts of a lab, driven by one coordinator.

use std::sync::atomic::AtomicBool;

use linerate_control::{FlowJob, HostRef, Log, RunGroup, RunServer, TestBed, run_group};
use linerate_model::{Outcome, TestSpec};
use linerate_proto::agent::Token;
use linerate_sock::netns;
use linerate_units::{Bitrate, Span};

use crate::support::{AgentPair, RunningLab, ServeProcess, token_file};

/// The address of a host of a lab.
fn address(lab: &RunningLab, host: &str) -> String {
    let status = lab.status();
    let found = status["hosts"].as_array().unwrap().iter().find(|found| found["name"] == host).unwrap();
    found["address"].as_str().unwrap().split('/').next().unwrap().to_owned()
}

fn namespace(lab: &RunningLab, host: &str) -> std::fs::File {
    let status = lab.status();
    let found = status["hosts"].as_array().unwrap().iter().find(|found| found["name"] == host).unwrap();
    std::fs::File::open(format!("/run/netns/{}", found["netns"].as_str().unwrap())).unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_pairs_of_four_hosts_start_together() {
    let (_folder, token) = token_file();
    let lab = RunningLab::up("gigabit-switch-4", &[]);
    let names = ["a", "b", "c", "d"];
    let serve = ["serve", "-p", "0", "--json", "--agent-token-file", &token];
    let servers = names.map(|name| ServeProcess::from(lab.linerate(name, &serve)));
    let host = |(name, server): (&str, &ServeProcess)| HostRef {
        name: name.to_owned(),
        address: address(&lab, name),
        port: Some(server.port),
        test_address: None,
        token: Token::new(AgentPair::SECRET).unwrap(),
        tls: None,
        netns: None,
    };
    let bed =
        TestBed { name: "the test".to_owned(), hosts: names.into_iter().zip(&servers).map(host).collect() };
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_secs(2));
    spec.traffic.upload = true;
    spec.traffic.rate = Bitrate::from_bps(50e6);
    let flow = |from, to| FlowJob {
        from,
        to: RunServer::Host(to),
        spec: spec.clone(),
        start_after: Span::ZERO,
        after: None,
        cross_traffic: false,
        plan: None,
    };
    let flows = vec![flow(0, 1), flow(2, 3)];
    let group =
        RunGroup { name: Some("both pairs".to_owned()), started_at: String::new(), start_by: None, flows };
    let stop = AtomicBool::new(false);
    let inside = namespace(&lab, "a");
    let (ends, records) = netns::with_netns_fd(&inside, || {
        let mut logs = [Log::new("1".to_owned(), Vec::new()), Log::new("2".to_owned(), Vec::new())];
        let ends = run_group(bed, &group, &mut logs, &stop, &mut |_| ()).unwrap();
        (ends, logs.map(Log::into_record))
    })
    .unwrap();
    for ((end, record), (from, to)) in ends.iter().zip(&records).zip([("a", "b"), ("c", "d")]) {
        assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
        let addresses: Vec<_> = record.hosts.iter().filter_map(|host| host.address.clone()).collect();
        assert_eq!(addresses, [address(&lab, from), address(&lab, to)], "the real ends");
        let rate = record.flows[0].bitrate().unwrap().bps();
        assert!((40e6..60e6).contains(&rate), "{rate}: the pairs do not share a link");
        assert!(!record.ports.is_empty(), "the switch was asked by the agent");
        let start = end.start.unwrap();
        let first = record.flows[0].first_read.unwrap().since(record.group_start.unwrap().planned);
        eprintln!(
            "start error {}, clock error {}, first byte after {first}",
            start.start_error, start.clock_error
        );
        assert!(start.start_error < Span::from_secs(1) && first < Span::from_secs(1));
    }
    // The coordinator's connection at every server, and the run at servers that were measured against.
    for (server, ended) in servers.iter().zip([1, 2, 1, 2]) {
        server.await_events("ended", ended);
    }
}
