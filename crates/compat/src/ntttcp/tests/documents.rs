//! XML and JSON of the real program, reproduced from its own figures.

use linerate_units::Span;

use super::options;
use crate::ntttcp::meter::NtttcpResult;
use crate::ntttcp::report::{self, NtttcpFigures, rate};
use crate::stand_in::HostCounts;

const RECEIVER_XML: &str = include_str!("../../../../../fixtures/transcripts/ntttcp/r.xml");
const SENDER_XML: &str = include_str!("../../../../../fixtures/transcripts/ntttcp/s.xml");
const RECEIVER_JSON: &str = include_str!("../../../../../fixtures/transcripts/ntttcp/r.json");
const SENDER_JSON: &str = include_str!("../../../../../fixtures/transcripts/ntttcp/s.json");
const CONSOLE: &str = include_str!("../../../../../fixtures/transcripts/ntttcp/files-xml-json.txt");

const FLAGS: &str = "-t 2 -V -Q --show-tcp-retrans --show-nic-packets lo --show-dev-interrupts LOC";

/// The host counters of both ends, which ran on the same host.
fn outcome(seconds: f64, threads: Vec<u64>, packets: u64, interrupts: u64, busy: f64) -> NtttcpResult {
    let before = HostCounts {
        cpu: Some([0; 8]),
        retransmits: Some(7),
        retransmits_by_kind: Some([1; 6]),
        interrupts: Some(0),
        packets: Some((0, 0)),
        ..HostCounts::default()
    };
    let after = HostCounts {
        // 397 ticks: 2.02 % user, 3.27 % system, 90.93 % idle, 0.25 % iowait, 3.53 % softirq
        cpu: Some([8, 0, 13, 361, 1, 0, 14, 0]),
        cores: Some(2),
        mhz: Some(2000.0),
        interrupts: Some(interrupts),
        packets: Some((packets, packets)),
        name: "HOSTNAME".to_owned(),
        system: "Linux ... (output of uname -a)".to_owned(),
        ..before.clone()
    };
    NtttcpResult {
        seconds,
        connections: 2,
        threads,
        process: Span::from_secs_f64(seconds * busy / 100.0).unwrap(),
        before,
        after,
        rtt: Some(Span::from_ns(10_798_000)),
    }
}

fn sender() -> NtttcpResult {
    // 49807360 bytes in total, 12972.820 KB/s of them by the first thread.
    outcome(49_807_360.0 / 24_897_331.463, vec![25_952_256, 23_855_104], 14_568, 17_666, 1.8163)
}

fn receiver() -> NtttcpResult {
    outcome(47_562_456.0 / 23_770_448.764, vec![47_562_456], 14_573, 17_672, 4.9446)
}

/// The lines that differ: ours and theirs.
fn differing(ours: &str, theirs: &str) -> Vec<(String, String)> {
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{ours}");
    let pairs = ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs);
    pairs.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned())).collect()
}

#[test]
fn xml_is_that_of_the_real_program() {
    let options_of = |role: &str| options(&format!("{role} 127.0.0.1 -P 1 -n 2 {FLAGS}"));
    let ours = report::xml(&NtttcpFigures::new(&options_of("-s"), &sender()));
    assert_eq!(differing(&ours, SENDER_XML), []);
    let ours = report::xml(&NtttcpFigures::new(&options_of("-r"), &receiver()));
    assert_eq!(differing(&ours, RECEIVER_XML), []);
}

#[test]
fn json_is_that_of_the_real_program() {
    let options_of = |role: &str| options(&format!("{role} 127.0.0.1 -P 1 -n 2 {FLAGS}"));
    let ours = report::json(&NtttcpFigures::new(&options_of("-s"), &sender()));
    assert_eq!(differing(&ours, SENDER_JSON), []);
    let ours = report::json(&NtttcpFigures::new(&options_of("-r"), &receiver()));
    assert_eq!(differing(&ours, RECEIVER_JSON), []);
    assert!(serde_json::from_str::<serde_json::Value>(&ours).is_ok());
}

/// 1.4.3 writes retransmissions with --show-tcp-retrans only, and a round-trip time with -V.
#[test]
fn what_was_not_asked_for_is_in_no_document() {
    let (quiet, sender) = (options("-s 127.0.0.1 -P 1 -n 2 -t 2"), sender());
    let quiet = NtttcpFigures::new(&quiet, &sender);
    for document in [report::xml(&quiet), report::json(&quiet)] {
        for key in ["tcp_retransmits", "tcp_average_rtt", "tcpAverageRtt"] {
            assert!(!document.contains(key), "{key} in {document}");
        }
    }
    assert!(serde_json::from_str::<serde_json::Value>(&report::json(&quiet)).is_ok());
}

#[test]
fn the_totals_of_the_console_are_those_of_the_real_program() {
    for (role, outcome) in [("-r", receiver()), ("-s", sender())] {
        let options = options(&format!("{role} 127.0.0.1 -P 1 -n 2 {FLAGS}"));
        let figures = NtttcpFigures::new(&options, &outcome);
        for line in report::totals(&figures).into_iter().chain(report::threads(&figures)) {
            assert!(CONSOLE.contains(&format!("INFO: {line}\n")), "{line}");
        }
    }
}

#[test]
fn what_the_system_does_not_tell_is_not_shown() {
    let options = options("-r -t 2");
    let blind = NtttcpResult { seconds: 2.0, threads: vec![1_000_000], ..NtttcpResult::default() };
    let text = report::totals(&NtttcpFigures::new(&options, &blind)).join("\n");
    assert!(text.contains("total bytes\t:1000000") && text.contains("throughput\t:4.00Mbps"), "{text}");
    for missing in ["cores", "speed", "idle", "cycles", "retrans", "interrupts", "packets"] {
        assert!(!text.contains(missing), "{missing}: {text}");
    }
}

#[test]
fn units_step_up_above_a_thousand() {
    assert_eq!(rate(0.0), "0.00bps");
    assert_eq!(rate(1000.0), "1000.00bps");
    assert_eq!(rate(1001.0), "1.00Kbps");
    assert_eq!(rate(190_270_000.0), "190.27Mbps");
    assert_eq!(rate(1.5e12), "1500.00Gbps");
}
