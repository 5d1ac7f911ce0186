//! Two pairs of hosts of a lab, driven by one coordinator.

use linerate_model::{Outcome, TestSpec};
use linerate_units::{Bitrate, Span};

use crate::support::LabBed;

#[test]
#[ignore = "needs root and network namespaces"]
fn two_pairs_of_four_hosts_start_together() {
    let hosts = LabBed::up("gigabit-switch-4", &["a", "b", "c", "d"]);
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_secs(2));
    spec.traffic.upload = true;
    spec.traffic.rate = Bitrate::from_bps(50e6);
    let runs = hosts.run(vec![LabBed::flow(0, 1, &spec), LabBed::flow(2, 3, &spec)], &mut |_| ());
    for ((end, record), (from, to)) in runs.iter().zip([("a", "b"), ("c", "d")]) {
        assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
        let addresses: Vec<_> = record.hosts.iter().filter_map(|host| host.address.clone()).collect();
        assert_eq!(addresses, [hosts.address(from), hosts.address(to)], "the real ends");
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
    for (server, ended) in hosts.servers.iter().zip([1, 2, 1, 2]) {
        server.await_events("ended", ended);
    }
}
