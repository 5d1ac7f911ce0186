//! The requests of clients that measure responsiveness, by curl over HTTP/2.

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Done, Folder, LinkSide, Net, Process, ServeProcess, eventually, flow, is_busy, linerate,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const PORT: &str = "5202";

/// Payload of a full segment with timestamps through a token bucket of 100 Mb/s, which counts 1514 bytes for it.
const GOODPUT_BPS: f64 = 100e6 * 1448.0 / 1514.0;

struct ResponsivenessBed {
    net: Net,
    folder: Folder,
    server: ServeProcess,
}

impl ResponsivenessBed {
    fn start() -> Self {
        let net = Net::pair();
        for side in [LinkSide::A, LinkSide::B] {
            net.tbf(side, "100mbit", "32kb", "50ms");
        }
        let folder = Folder::new();
        let archive = folder.file("runs.db");
        let args =
            ["serve", "-p", "0", "--json", "--archive", &archive, "--tls", "--responsiveness-port", PORT];
        let mut command = net.exec(LinkSide::B, env!("CARGO_BIN_EXE_linerate"), &args);
        // For the certificate.
        command.env("XDG_DATA_HOME", folder.path());
        Self { server: ServeProcess::from(command), net, folder }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}:{PORT}{path}", LinkSide::B.address())
    }

    fn curl(&self, url: &str, args: &[&str]) -> Done {
        let all = [&["-sk", "-A", "networkQuality/1"], args, &[url]].concat();
        Process::start(self.net.exec(LinkSide::A, "curl", &all)).finish(TIMEOUT)
    }

    /// The result of the only run.
    fn result(&self) -> Value {
        let archive = self.folder.file("runs.db");
        let ask = |args: &[&str]| {
            let mut command = linerate();
            command.args(args).args(["--json", "--archive", &archive]);
            Process::start(command).finish(TIMEOUT).json()
        };
        let run = eventually("the run is archived", || {
            let found = ask(&["history"])["runs"].as_array().unwrap().clone();
            assert!(found.len() <= 1, "{found:?}");
            found.into_iter().find(|run| run["outcome"] == "completed")
        });
        ask(&["show", run["id"].as_str().unwrap()])
    }
}

#[test]
#[ignore = "needs root, network namespaces and curl"]
fn curl_and_our_server_count_the_same() {
    let bed = ResponsivenessBed::start();
    let config = bed.curl(&bed.url("https", "/.well-known/nq"), &["--http2"]);
    assert_eq!(config.code, Some(0), "{config:?}");
    let urls = config.json()["urls"].clone();
    let url = |name: &str| urls[name].as_str().unwrap().to_owned();
    assert_eq!(bed.curl(&url("small_download_url"), &["--http2"]).stdout.len(), 1);

    // Three connections at once, which end in the midst of their bodies.
    let (large, busy) = (url("large_download_url"), is_busy());
    let counts = "%{size_download}\n";
    let args = ["--http2", "-m", "4", "-o", "/dev/null", "-w", counts];
    let done: Vec<Done> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..3).map(|_| scope.spawn(|| bed.curl(&large, &args))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(done.iter().all(|one| one.code == Some(28)), "ended by their time: {done:?}");
    let received: f64 = done.iter().map(|one| one.stdout.trim().parse::<f64>().unwrap()).sum();

    // A whole upload.
    let file = bed.folder.file("upload");
    std::fs::write(&file, vec![0x5a; 20_000_000]).unwrap();
    let counts = "%{http_code} %{http_version} %{size_upload}";
    let done = bed.curl(&url("upload_url"), &["--http2", "-X", "POST", "-T", &file, "-w", counts]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "200 2 20000000"), "{done:?}");

    let result = bed.result();
    let of = |direction: &str| &flow(&result, direction)["receiver"];
    let bytes = |direction: &str| of(direction)["total_bytes"].as_f64().unwrap();
    assert_eq!(bytes("upload"), 20_000_000.0);
    // What a client throws away is not known after the last reading of the counters, at most a tenth of a second before
    // its end, and what was on its way to it was acknowledged by its kernel.
    let difference = bytes("download") / received - 1.0;
    let least = if busy || is_busy() { -0.3 } else { -0.04 };
    assert!((least..0.01).contains(&difference), "{difference} of {received}");
    for direction in ["download", "upload"] {
        let share = of(direction)["bitrate_bps"].as_f64().unwrap() / GOODPUT_BPS;
        let least = if busy || is_busy() { 0.1 } else { 0.85 };
        assert!((least..1.02).contains(&share), "{direction}: {share}");
    }
}

#[test]
#[ignore = "needs root, network namespaces and curl"]
fn what_is_no_http2_within_tls_is_turned_away_and_the_next_client_served() {
    let bed = ResponsivenessBed::start();
    let plain = bed.curl(&bed.url("http", "/.well-known/nq"), &[]);
    assert!(plain.stdout.contains("HTTPS only"), "{plain:?}");
    let old = bed.curl(&bed.url("https", "/.well-known/nq"), &["--http1.1"]);
    assert_eq!(old.code, Some(35), "no common protocol: {old:?}");
    let done = bed.curl(&bed.url("https", "/elsewhere"), &["--http2", "-w", "%{http_code}"]);
    assert!(done.stdout.ends_with("404"), "{done:?}");
    let event = bed.server.await_events("listening_for_responsiveness", 1);
    assert_eq!(event["port"], 5202, "{event}");
}
