//! Byte accounting down to the wire: a test without other traffic is explained at every point, and other
//! traffic is detected where it passes.

use serde_json::Value;

use crate::support::{
    Process, RunningLab, ServeProcess, TIMEOUT, again_when_busy, caveats, eventually, flow,
    retried_when_busy, when_idle,
};

/// Two hosts at 100 Mb/s.
fn network() -> RunningLab {
    RunningLab::up("pair", &["link.a.rate=100M", "link.b.rate=100M"])
}

fn server(lab: &RunningLab) -> ServeProcess {
    ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json"]))
}

/// With `--investigate` it takes the time of several tests.
fn measure(lab: &RunningLab, server: &ServeProcess, args: &[&str]) -> Value {
    let port = server.port.to_string();
    let head = ["test", "b", "-p", &port, "--json", "-t", "3"];
    let done = Process::start(lab.linerate("a", &[&head[..], args].concat())).finish(3 * TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()
}

fn steps(flow: &Value) -> Vec<Value> {
    flow["byte_accounting"]["steps"].as_array().cloned().unwrap_or_default()
}

fn residual_share(flow: &Value, step: &Value) -> f64 {
    step["residual_bytes"].as_f64().unwrap() / flow["receiver"]["bytes"].as_f64().unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_test_alone_is_explained_to_a_thousandth_everywhere() {
    // A late switch counts frames in the interval after the one in which they passed.
    when_idle("a_test_alone_is_explained_to_a_thousandth_everywhere", || {
        let lab = network();
        let server = server(&lab);
        for (name, options) in [
            ("upload", &["--upload"][..]),
            ("download", &["--download"]),
            ("upload", &["--upload", "-u", "-b", "20M"]),
        ] {
            let document = measure(&lab, &server, options);
            let flow = flow(&document, name);
            let steps = steps(flow);
            let points: Vec<&str> = steps.iter().map(|step| step["point"].as_str().unwrap()).collect();
            for point in ["sender_interface", "receiver_interface", "port", "return_sent", "return_received"]
            {
                assert!(points.contains(&point), "{point} of {options:?}: {points:?}");
            }
            for step in &steps {
                assert!(residual_share(flow, step).abs() < 0.001, "{options:?}: {step:#}");
            }
            assert!(!caveats(&document).contains(&"bytes_unaccounted".to_owned()), "{options:?}");
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_second_sender_is_named_where_its_bytes_pass() {
    retried_when_busy(|| {
        let lab = network();
        let (server, other) = (server(&lab), server(&lab));
        let port = other.port.to_string();
        let cross_traffic =
            ["test", "b", "-p", &port, "--upload", "-u", "-b", "8M", "-t", "120", "--no-latency", "-q"];
        let cross_traffic = Process::start(lab.linerate("a", &cross_traffic));
        eventually("the second sender sends", || {
            (lab.port("s>b")["packets"].as_u64().unwrap_or_default() > 500).then_some(())
        });
        // Without an idle phase nothing is known about other traffic, so all of it is reported. On a busy machine there may be
        // one without latency probes too, before the flow is prepared.
        let known = |document: &Value| {
            steps(flow(document, "upload"))
                .iter()
                .any(|step| step["because"].to_string().contains("before the load"))
        };
        let document = again_when_busy(
            || measure(&lab, &server, &["--upload", "--no-latency"]),
            |document| !known(document),
        );
        let flow = flow(&document, "upload");
        let seconds = flow["receiver"]["seconds"].as_f64().unwrap();
        for point in ["sender_interface", "receiver_interface", "port"] {
            let step = steps(flow).into_iter().find(|step| step["point"] == point).unwrap();
            assert_eq!(step["unaccounted"], true, "{step:#}");
            let bps = step["residual_bytes"].as_f64().unwrap() * 8.0 / seconds;
            // The headers add to the 8 Mb/s of datagrams, and the phase lasts longer than its measured part. The
            // last interval of a port's counts may be missing: a tenth of a second at 100 Mb/s.
            let missing = if point == "port" { 100e6 * 0.1 / seconds } else { 0.0 };
            assert!((7e6 - missing..13e6).contains(&bps), "{bps} at {point}");
        }
        for point in ["sender_socket", "receiver_socket", "return_sent", "return_received"] {
            let step = steps(flow).into_iter().find(|step| step["point"] == point).unwrap();
            assert_eq!(step["unaccounted"], false, "{step:#}");
        }
        let caveat =
            flow["caveats"].as_array().unwrap().iter().find(|caveat| caveat["kind"] == "bytes_unaccounted");
        let text = caveat.unwrap()["text"].as_str().unwrap();
        assert!(text.contains("not this test's (receiver_interface)"), "{text}");
        // With an idle phase, the other traffic is accounted for.
        let document = measure(&lab, &server, &["--upload"]);
        assert!(!caveats(&document).contains(&"bytes_unaccounted".to_owned()), "{document:#}");
        drop(cross_traffic);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_goes_back_for_each_size_of_a_read_is_counted_on_an_asymmetric_link() {
    let lab = RunningLab::up("pair", &["link.a.rate=200M", "link.b.rate=200M", "link.b.from.b.rate=5M"]);
    let server = server(&lab);
    let document = measure(&lab, &server, &["--upload", "--investigate=reads"]);
    let follow_up = &flow(&document, "upload")["follow_ups"][0];
    assert_eq!(follow_up["question"], "reads");
    assert_eq!(follow_up["runs"].as_array().unwrap().len(), 6, "{follow_up:#}");
    for bytes in [1024, 4096, 16_384, 65_536, 262_144, 1_048_576] {
        let value =
            |what: &str| follow_up["evidence"][format!("read_{bytes}_return_{what}")].as_f64().unwrap();
        // An acknowledgement takes 90 bytes on a wire of 5 Mb/s.
        assert!((value("share_ratio") - value("bps") / 5e6).abs() < 1e-6, "{follow_up:#}");
        // At least one per two segments without GRO, fewer with it, and never more than one per segment.
        assert!((0.001..=1.1).contains(&value("per_segment_ratio")), "{follow_up:#}");
    }
}
