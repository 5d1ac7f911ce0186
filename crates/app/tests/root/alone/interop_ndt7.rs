//! The real browser client of ndt7, in Chromium, against our server.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, LinkSide, Net, Process, ServeProcess, is_busy, linerate, retried_when_busy};

/// Time for Chromium and two phases of ten seconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Payload of a full segment with timestamps through a token bucket of 100 Mb/s, which counts 1514 bytes for it.
const GOODPUT_BPS: f64 = 100e6 * 1448.0 / 1514.0;

#[test]
#[ignore = "needs root, network namespaces and a browser"]
fn the_real_client_and_our_server_count_the_same() {
    check_client("ws", &[]);
}

#[test]
#[ignore = "needs root, network namespaces and a browser"]
fn they_count_the_same_within_tls() {
    check_client("wss", &["--tls"]);
}

fn check_client(protocol: &str, options: &[&str]) {
    // A browser that gets too little of the processors is slow or stalls.
    retried_when_busy(|| {
        let net = Net::pair();
        for side in [LinkSide::A, LinkSide::B] {
            net.tbf(side, "100mbit", "32kb", "50ms");
        }
        let folder = Folder::new();
        let archive = folder.file("runs.db");
        let serve = [&["serve", "-p", "0", "--json", "--archive", &archive], options].concat();
        let mut command = net.exec(LinkSide::B, env!("CARGO_BIN_EXE_linerate"), &serve);
        // For the certificate.
        command.env("XDG_DATA_HOME", folder.path());
        let server = ServeProcess::from(command);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/e2e/ndt7.mjs");
        let address = format!("{}:{}", LinkSide::B.address(), server.port);
        let client = net.exec(LinkSide::A, "node", &[script, &address, protocol]);
        let busy = is_busy();
        let done = Process::start(client).finish(TIMEOUT);
        // A browser does not fill the path while other programs use the processors. On an idle machine, the single
        // upload of ndt7 reaches 95 % of it.
        let busy = busy || is_busy();
        let least = if busy { 0.1 } else { 0.9 };
        assert_eq!(done.code, Some(0), "{done:?}");
        let found = done.json();
        assert_eq!((&found["code"], found.get("error")), (&0.into(), None), "{found:#}");

        // The client may be told the end before it is in the archive.
        server.await_events("ended", 2);
        let mut history = linerate();
        history.args(["history", "--json", "--archive", &archive]);
        let runs = Process::start(history).finish(TIMEOUT).json();
        let runs = runs["runs"].as_array().unwrap().clone();
        assert_eq!(runs.len(), 2, "{runs:#?}");
        for run in &runs {
            assert_eq!(run["outcome"], "completed", "{run:#}");
            assert!(run["target"].as_str().unwrap().ends_with("(ndt7)"), "{run:#}");
        }
        for direction in ["download", "upload"] {
            let of_server = &found[direction]["LastServerMeasurement"];
            let last = &of_server["AppInfo"];
            let rate = last["NumBytes"].as_f64().unwrap() * 8e6 / last["ElapsedTime"].as_f64().unwrap();
            assert!((least..1.03).contains(&(rate / GOODPUT_BPS)), "{direction}: {rate}: {found:#}");
            assert!(of_server["TCPInfo"]["MinRTT"].as_f64().unwrap() > 0.0, "{found:#}");
            // A measurement every 250 ms, when the browser has the time to read it.
            let messages = found["server_messages"][direction].as_u64().unwrap();
            let fewest = if busy { 5 } else { 20 };
            assert!((fewest..=60).contains(&messages), "{direction}: {messages}");
            let ours = runs.iter().find_map(|run| mean_bps(run, direction)).unwrap();
            assert!((least..1.02).contains(&(ours / GOODPUT_BPS)), "{direction}: {ours}");
            let client = found[direction]["LastClientMeasurement"]["MeanClientMbps"].as_f64().unwrap() * 1e6;
            // The client counts an upload when it hands it to the browser, which buffers some of it.
            let most = if direction == "upload" { 1.2 } else { 1.05 };
            let alike = if busy { 0.5..2.0 } else { 0.95..most };
            assert!(alike.contains(&(client / ours)), "{direction}: {client} and {ours}");
        }
    });
}

fn mean_bps(run: &Value, direction: &str) -> Option<f64> {
    let flow = run["flows"].as_array()?.iter().find(|flow| flow["direction"] == direction)?;
    flow["bitrate_bps"].as_f64()
}
