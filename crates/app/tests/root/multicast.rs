//! One sender, and several receivers of a multicast group behind the switch of a lab.

use linerate_control::{FlowEnd, RunEvent};
use linerate_model::{Body, CaveatKind, Outcome, Rule, RunRecord, Tally, TestSpec, UdpTally};
use linerate_units::{Bitrate, Bytes, Span};

use crate::support::{LabBed, LinkSide, Net, ServeProcess, flow, retried_when_busy, test_json};

/// From the first of these to the others.
const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

fn spec() -> TestSpec {
    let mut spec = TestSpec::default();
    spec.traffic.udp = true;
    spec.traffic.multicast = "239.1.2.3".parse().ok();
    spec.traffic.duration = Some(Span::from_secs(2));
    spec.traffic.rate = Bitrate::from_bps(20e6);
    spec
}

fn to_all(
    hosts: &LabBed,
    spec: &TestSpec,
    on: &mut (dyn FnMut(&RunEvent<'_>) + Send),
) -> Vec<(FlowEnd, RunRecord)> {
    hosts.run((1..HOSTS.len()).map(|to| LabBed::flow(0, to, spec)).collect(), on)
}

/// Drops datagrams to the group that arrive at a host, with these expressions.
fn drop_at(hosts: &LabBed, host: &str, which: &[&str]) {
    let table = ["add", "table", "ip", "t"];
    let chain = ["add", "chain", "ip", "t", "c", "{ type filter hook prerouting priority -300; }"];
    let rule = [&["add", "rule", "ip", "t", "c", "ip", "daddr", "239.1.2.3"][..], which, &["drop"]].concat();
    for command in [&table[..], &chain, &rule] {
        let done = hosts.lab.done(host, "nft", command);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

fn sender(record: &RunRecord) -> &Tally {
    record.flows[0].sender.as_ref().unwrap()
}

fn datagrams(tally: &Tally) -> &UdpTally {
    tally.udp.as_ref().unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn datagrams_leave_once_and_each_receiver_counts_its_own_loss() {
    retried_when_busy(|| {
        let hosts = LabBed::up("gigabit-switch-4", &HOSTS);
        drop_at(&hosts, "c", &["numgen", "inc", "mod", "20", "==", "0"]);
        drop_at(&hosts, "d", &[]);
        let runs = to_all(&hosts, &spec(), &mut |_| ());
        for (end, record) in &runs {
            assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
            assert_eq!(record.flows[0].plan.name, "multicast");
            assert_eq!(sender(record).bytes, sender(&runs[0].1).bytes, "it is one flow");
        }
        let (sent, payload) = (datagrams(sender(&runs[0].1)).packets, sender(&runs[0].1).total_bytes);
        // 20 Mb/s of 1448 bytes for 2 s. A sender that does not run at the end sends less.
        assert!((2500..=3460).contains(&sent), "{sent} datagrams");
        let receiver = |at: usize| runs[at].1.flows[0].receiver.as_ref().unwrap();
        assert_eq!((datagrams(receiver(0)).packets, datagrams(receiver(0)).lost), (sent, 0), "at b");
        assert_eq!(datagrams(receiver(1)).lost, sent.div_ceil(20), "at c, every twentieth from the first");
        assert_eq!((receiver(2).total_bytes, datagrams(receiver(2)).lost), (Bytes::new(0), sent), "at d");
        // Three copies would be three times the payload; headers, probes and the dialogues are a few percent.
        let port = hosts.lab.port("a>s");
        let left = port["bytes"].as_u64().unwrap();
        assert!(
            left > payload.get() && left < payload.get() * 13 / 10,
            "{left} bytes left a, payload {payload:?}"
        );

        let caveats = |at: usize| -> Vec<CaveatKind> {
            runs[at].1.flows[0].caveats.iter().map(|caveat| caveat.kind).collect()
        };
        assert!(caveats(2).contains(&CaveatKind::MulticastBlocked), "{:?}", caveats(2));
        assert!(
            !caveats(0).contains(&CaveatKind::MulticastBlocked)
                && !caveats(1).contains(&CaveatKind::MulticastBlocked)
        );
        let verdict = runs[2].1.flows[0].verdict.as_ref().unwrap();
        assert_eq!(verdict.rule, Rule::Unexplained, "{}", verdict.text);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_receiver_that_fails_ends_its_own_run_only() {
    retried_when_busy(|| {
        let hosts = LabBed::up("gigabit-switch-4", &HOSTS);
        let mut spec = spec();
        spec.traffic.duration = Some(Span::from_secs(3));
        // The first run, which created the sender.
        let mut killed = false;
        let runs = to_all(&hosts, &spec, &mut |event| {
            if event.flow == 0
                && matches!(event.body, Body::Progress { .. })
                && !std::mem::replace(&mut killed, true)
            {
                hosts.servers[1].signal("KILL");
            }
        });
        let outcomes: Vec<Outcome> = runs.iter().map(|(end, _)| end.outcome).collect();
        assert_eq!(outcomes, [Outcome::Failed, Outcome::Completed, Outcome::Completed]);
        for (_, record) in &runs[1..] {
            let receiver = record.flows[0].receiver.as_ref().unwrap();
            assert_eq!(datagrams(receiver).lost, 0);
            assert_eq!(receiver.total_bytes, sender(record).total_bytes);
            assert!(receiver.elapsed > Span::from_secs(2), "{:?}", receiver.elapsed);
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn groups_of_both_versions_of_ip_are_reached_through_the_interface_of_the_server() {
    retried_when_busy(|| {
        let net = Net::pair();
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        for (address, group) in [
            (LinkSide::B.address(), "239.1.2.3"),
            (LinkSide::B.address6(), "ff15::1234"),
            (LinkSide::B.address6(), "ff12::1234"),
        ] {
            let mut client = net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &["test", address, "-u"]);
            client.args(["-p", &server.port.to_string(), "--multicast", group, "-P", "2"]);
            client.args(["-t", "1", "-b", "2M", "--json"]);
            let result = test_json(client);
            let flow = flow(&result, "multicast");
            let sent = flow["sender"]["packets"].as_u64().unwrap();
            assert!(sent > 300, "{group}: {sent} datagrams");
            assert_eq!((&flow["udp"]["packets"], &flow["udp"]["lost"]), (&sent.into(), &0.into()), "{group}");
            // Counts of the interfaces at both ends: nothing was sent twice, nothing arrived twice.
            let steps = flow["byte_accounting"]["steps"].as_array().unwrap();
            assert!(steps.iter().all(|step| step["unaccounted"] == false), "{group}: {steps:?}");
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_receiver_at_a_link_local_address_is_reached_through_the_interface_of_that_address() {
    let net = Net::pair();
    for (side, address) in [(LinkSide::A, "fe80::a/64"), (LinkSide::B, "fe80::b/64")] {
        let add = ["-n", net.name(side), "addr", "add", address, "dev", "veth0", "nodad"];
        assert!(std::process::Command::new("ip").args(add).status().unwrap().success());
    }
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let port = server.port.to_string();
    for group in ["ff12::1234", "ff3e::8000:1"] {
        let options = ["test", "fe80::b%veth0", "-u", "-p", &port, "--multicast", group];
        let mut client = net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &options);
        client.args(["-t", "0.5", "-b", "2M", "--no-latency", "--json"]);
        let result = test_json(client);
        let flow = flow(&result, "multicast");
        let sent = flow["sender"]["packets"].as_u64().unwrap();
        assert_eq!((&flow["udp"]["packets"], &flow["udp"]["lost"]), (&sent.into(), &0.into()), "{group}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn receivers_of_one_group_cannot_start_one_after_the_other() {
    let hosts = LabBed::up("gigabit-switch-4", &HOSTS[..3]);
    let mut flows = vec![LabBed::flow(0, 1, &spec()), LabBed::flow(0, 2, &spec())];
    flows[1].start_after = Span::from_ms(700);
    let runs = hosts.run(flows, &mut |_| ());
    assert_eq!(runs[0].0.outcome, Outcome::Completed, "{:?}", runs[0].0);
    let (late, reason) = (&runs[1].0, runs[1].0.reason.clone().unwrap_or_default());
    assert_eq!(late.outcome, Outcome::Failed, "{late:?}");
    assert!(reason.contains("share one sender, so they must start at the same time"), "{reason}");
}
