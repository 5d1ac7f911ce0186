//! What a result says about bytes and its own end is exact.

use serde_json::Value;

use crate::support::{self, ServeProcess, flow, is_busy, test_json};

#[test]
fn a_test_by_bytes_counts_every_byte_in_every_shape() {
    let server = ServeProcess::start(&[]);
    for args in
        [&["-n", "10M"][..], &["-k", "80", "-l", "128K"], &["-n", "10M", "-P", "7"], &["-n", "10M", "-Z"]]
    {
        let all = [&["--json", "--no-latency"], args].concat();
        let document = test_json(support::test("127.0.0.1", server.port, &all));
        for name in ["upload", "download"] {
            let receiver = &flow(&document, name)["receiver"];
            assert_eq!(receiver["total_bytes"].as_u64(), Some(10 << 20), "{args:?} {name}");
            assert_eq!(receiver["bytes"].as_u64(), Some(10 << 20), "{args:?} {name}");
        }
    }
}

/// Whichever end receives: a test that reaches its target ends early, and one that does not reports it.
#[test]
fn until_stops_uploads_and_both_ways_or_says_that_it_was_not_reached() {
    let server = ServeProcess::start(&[]);
    let ends = |args: &[&str]| {
        let all = [&["--json", "--no-latency"], args].concat();
        let document = test_json(support::test("127.0.0.1", server.port, &all));
        let flows = document["flows"].as_array().unwrap().clone();
        let end = |flow: &Value| {
            let missed = flow["caveats"]
                .as_array()
                .is_some_and(|all| all.iter().any(|caveat| caveat["kind"] == "until_missed"));
            (flow["receiver"]["seconds"].as_f64().unwrap(), missed)
        };
        flows.iter().map(end).collect::<Vec<_>>()
    };
    // A steady rate that any machine supports.
    let even = ["-b", "10M", "-l", "8K", "--until", "20%", "-t", "30"];
    for direction in ["--upload", "--download", "--bidir"] {
        let ends = ends(&[&even[..], &[direction]].concat());
        // Both directions continue until the later one has reached its target.
        let whole = ends.iter().any(|(seconds, _)| *seconds > 29.0);
        let missed = ends.iter().any(|(_, missed)| *missed);
        // On a busy machine, what arrives after the decision to stop can make the mean less certain again.
        assert!(whole == missed || (missed && is_busy()), "{direction}: {ends:?}");
    }
    for (_, missed) in ends(&["--upload", "--until", "0.01%", "-t", "1"]) {
        assert!(missed, "nobody knows a rate so well after a second");
    }
}
