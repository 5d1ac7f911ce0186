//! The real clients of LibreSpeed and Cloudflare against our server: the command-line client, and the engine in
//! Chromium.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Folder, LinkSide, Net, Process, ServeProcess, eventually, is_busy, linerate, retried_when_busy, skipped,
};

/// Time for Chromium and all requests.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Payload of a full segment with timestamps through a token bucket of 100 Mb/s, which counts 1514 bytes for it.
const GOODPUT_BPS: f64 = 100e6 * 1448.0 / 1514.0;

const LIBRESPEED_CLI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/librespeed-cli");

/// A server behind 100 Mb/s, and its archive.
struct SpeedServer {
    net: Net,
    server: ServeProcess,
    folder: Folder,
}

impl SpeedServer {
    fn start() -> Self {
        let net = Net::pair();
        for side in [LinkSide::A, LinkSide::B] {
            net.tbf(side, "100mbit", "32kb", "50ms");
        }
        let folder = Folder::new();
        let server = ServeProcess::start_in(&net, LinkSide::B, &["--archive", &folder.file("runs.db")]);
        Self { net, server, folder }
    }

    fn address(&self) -> String {
        format!("{}:{}", LinkSide::B.address(), self.server.port)
    }

    /// The archived runs, when there are this many.
    fn runs(&self, count: usize) -> Vec<Value> {
        let archive = self.folder.file("runs.db");
        let list = || {
            let mut history = linerate();
            history.args(["history", "--json", "--archive", &archive]);
            Process::start(history).finish(TIMEOUT).json()["runs"].as_array().cloned().unwrap_or_default()
        };
        // A run is over some seconds after its last request.
        let finished =
            |runs: &[Value]| runs.len() >= count && runs.iter().all(|run| !run["outcome"].is_null());
        eventually("the runs are archived", || Some(list()).filter(|runs| finished(runs)))
    }
}

/// Of a flow of a run, bit/s.
fn rate_bps(run: &Value, direction: &str) -> f64 {
    let flows = run["flows"].as_array().unwrap();
    flows.iter().find(|flow| flow["direction"] == direction).unwrap()["bitrate_bps"].as_f64().unwrap()
}

#[test]
#[ignore = "needs root, network namespaces and a browser"]
fn the_engine_of_cloudflare_and_our_server_count_the_same() {
    // A browser that gets too little of the processors is slow or stalls.
    retried_when_busy(|| {
        let served = SpeedServer::start();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/e2e/cloudflare.mjs");
        let client = served.net.exec(LinkSide::A, "node", &[script, &served.address()]);
        let busy = is_busy();
        let done = Process::start(client).finish(TIMEOUT);
        let busy = busy || is_busy();
        // Short requests, and what the browser does between them, belong to the mean.
        let least = if busy { 0.1 } else { 0.7 };
        assert_eq!(done.code, Some(0), "{done:?}");
        let found = done.json();
        assert_eq!(found["errors"], json!([]), "{found:#}");
        // Nothing was asked of any other host.
        assert!(found["hosts"].as_array().unwrap().iter().all(|host| {
            let host = host.as_str().unwrap();
            host == served.address() || host.starts_with("127.0.0.1:")
        }));

        let runs = served.runs(1);
        let [run] = runs.as_slice() else { panic!("{runs:#?}") };
        assert_eq!(run["outcome"], "completed", "{run:#}");
        assert!(run["target"].as_str().unwrap().ends_with("(cloudflare)"), "{run:#}");
        for direction in ["download", "upload"] {
            // The engine takes a high percentile of its requests, we the mean.
            let theirs = found["summary"][direction].as_f64().unwrap();
            let ours = rate_bps(run, direction);
            assert!((least..1.02).contains(&(ours / GOODPUT_BPS)), "{direction}: {ours}: {found:#}");
            let alike = if busy { 0.3..5.0 } else { 0.9..1.5 };
            assert!(alike.contains(&(theirs / ours)), "{direction}: {theirs} and {ours}: {found:#}");
        }
        let latency_ms = found["summary"]["latency"].as_f64().unwrap();
        assert!(busy || (0.0..50.0).contains(&latency_ms), "{found:#}");
    });
}

#[test]
#[ignore = "needs root, network namespaces and the client of LibreSpeed"]
fn the_client_of_librespeed_and_our_server_count_the_same() {
    if !Path::new(LIBRESPEED_CLI).exists() {
        skipped(
            "the_client_of_librespeed_and_our_server_count_the_same",
            "there is no target/peers/librespeed-cli",
        );
        return;
    }
    retried_when_busy(|| {
        let served = SpeedServer::start();
        let list = json!([{
            "id": 1,
            "name": "linerate",
            "server": format!("http://{}/", served.address()),
            "dlURL": "backend/garbage.php",
            "ulURL": "backend/empty.php",
            "pingURL": "backend/empty.php",
            "getIpURL": "backend/getIP.php",
        }]);
        let servers = served.folder.file("servers.json");
        std::fs::write(&servers, list.to_string()).unwrap();
        let args = ["--local-json", &servers, "--server", "1", "--json", "--duration", "5", "--no-icmp"];
        let client = served.net.exec(LinkSide::A, LIBRESPEED_CLI, &args);
        let busy = is_busy();
        let done = Process::start(client).finish(TIMEOUT);
        let busy = busy || is_busy();
        let (least, alike) = if busy { (0.1, 0.5..2.0) } else { (0.85, 0.8..1.25) };
        assert_eq!(done.code, Some(0), "{done:?}");
        let found = done.json();
        let found = found.as_array().map_or(&found, |found| &found[0]);

        let runs = served.runs(1);
        let [run] = runs.as_slice() else { panic!("{runs:#?}") };
        assert!(run["target"].as_str().unwrap().ends_with("(librespeed)"), "{run:#}");
        for direction in ["download", "upload"] {
            let theirs = found[direction].as_f64().unwrap() * 1e6;
            let ours = rate_bps(run, direction);
            assert!((least..1.02).contains(&(ours / GOODPUT_BPS)), "{direction}: {ours}: {found:#}");
            // The client counts what it passes to its kernel, over the time it was told.
            assert!(alike.contains(&(theirs / ours)), "{direction}: {theirs} and {ours}: {found:#}");
        }
    });
}
