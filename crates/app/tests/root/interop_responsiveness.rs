//! Clients that measure responsiveness: the requests of curl to our server, and ours to it and to nginx.

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Done, Folder, LinkSide, Net, Process, RunningLab, ServeProcess, eventually, flow, is_busy, linerate,
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

    fn result(&self) -> Value {
        archived(&self.folder.file("runs.db"))
    }
}

/// The only run of an archive, once it has ended.
fn archived(archive: &str) -> Value {
    let ask = |args: &[&str]| {
        let mut command = linerate();
        command.args(args).args(["--json", "--archive", archive]);
        Process::start(command).finish(TIMEOUT).json()
    };
    let run = eventually("the run is archived", || {
        let found = ask(&["history"])["runs"].as_array().unwrap().clone();
        assert!(found.len() <= 1, "{found:?}");
        found.into_iter().find(|run| run["outcome"] == "completed")
    });
    ask(&["show", run["id"].as_str().unwrap()])
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

/// A user of the other side, who measures.
fn measured(bed: &Net, folder: &Folder, args: &[&str]) -> Value {
    let all = [&["responsiveness"], args, &["--json", "--archive", ":memory:"]].concat();
    let mut command = bed.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &all);
    command.env("XDG_DATA_HOME", folder.path());
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()
}

fn rpm(report: &Value, of: &str) -> f64 {
    report[of].as_f64().unwrap_or_else(|| panic!("{of}: {report}"))
}

/// The responsiveness of a line between two routers with these changes, and the server's result.
fn over_the_line(set: &[&str]) -> (Value, Value) {
    let lab = RunningLab::up("access-line", set);
    let owner = Folder::new();
    let archive = owner.file("runs.db");
    let args = ["serve", "-p", "0", "--json", "--archive", &archive, "--tls", "--responsiveness-port", PORT];
    let mut command = lab.linerate("b", &args);
    command.env("XDG_DATA_HOME", owner.path());
    let server = ServeProcess::from(command);
    let args = ["responsiveness", "b", "--sequential", "-t", "10", "--json", "--archive", ":memory:"];
    let mut command = lab.linerate("a", &args);
    command.env("XDG_DATA_HOME", lab.folder.path());
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let served = archived(&archive);
    drop(server);
    (done.json(), served)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn our_client_finds_the_queues_of_routers_and_that_another_discipline_keeps_them_short() {
    let (long, served) = over_the_line(&[]);
    let (short, _) = over_the_line(&["link.line.discipline=codel"]);
    for (at, direction) in [(0, "download"), (1, "upload")] {
        let (slow, fast) = (&long["responsiveness"][at], &short["responsiveness"][at]);
        assert_eq!((&slow["loaded"][0], &fast["loaded"][0]), (&direction.into(), &direction.into()));
        // 20 ms of path and up to 200 ms of queue: 60 s / 220 ms are 273, and queues are not always full.
        let rpm = |report: &Value| report["foreign_rpm"].as_f64().unwrap_or_else(|| panic!("{report}"));
        assert!((180.0..600.0).contains(&rpm(slow)), "{slow}");
        assert!(rpm(fast) > 1.5 * rpm(slow), "{fast} {slow}");
        for report in [slow, fast] {
            let idle = report["idle_rpm"].as_f64().unwrap();
            assert!((1_000.0..3_001.0).contains(&idle), "a round trip takes 20 ms: {report}");
        }
        let counted = &flow(&long, direction)["receiver"];
        let share = counted["bitrate_bps"].as_f64().unwrap() / (20e6 * 1448.0 / 1514.0);
        assert!((0.5..1.02).contains(&share), "{direction}: {share}");
        // The server's own run has the same bytes, but for what was on the path at the end.
        let bytes = |of: &Value| flow(of, direction)["receiver"]["total_bytes"].as_f64().unwrap();
        let difference = bytes(&long) / bytes(&served) - 1.0;
        assert!(difference.abs() < 0.1, "{direction}: {difference}");
    }
}

/// Answers as nginx does, within TLS and without.
const NGINX: &str = r#"
daemon off;
# One process, which goes with the test.
master_process off;
pid FOLDER/pid;
error_log stderr warn;
events { worker_connections 512; }
http {
    access_log off;
    default_type application/octet-stream;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    client_max_body_size 0;
    server {
        listen 5302 ssl http2;
        listen 5303 http2;
        ssl_certificate FOLDER/cert.pem;
        ssl_certificate_key FOLDER/key.pem;
        ssl_protocols TLSv1.3;
        root FOLDER;
        location = /.well-known/nq {
            default_type application/json;
            return 200 '{"version": 1, "urls": {
                "small_https_download_url": "$scheme://$http_host/small",
                "large_https_download_url": "$scheme://$http_host/large",
                "https_upload_url": "$scheme://$http_host/upload"}}';
        }
        location = /upload {
            proxy_pass http://127.0.0.1:5304;
            proxy_request_buffering off;
            proxy_http_version 1.1;
        }
    }
}
"#;

/// Reads what nginx passes on, and answers nothing.
const SINK: &str = r#"
import socket, threading
def read(connection):
    while connection.recv(1 << 18): pass
server = socket.create_server(("127.0.0.1", 5304), backlog=64)
while True:
    threading.Thread(target=read, args=(server.accept()[0],), daemon=True).start()
"#;

#[test]
#[ignore = "needs root, network namespaces, nginx, openssl and python3"]
fn our_client_measures_with_nginx() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "20mbit", "16kb", "50ms");
    net.tbf(LinkSide::B, "20mbit", "16kb", "50ms");
    let (user, folder) = (Folder::new(), Folder::new());
    let name = format!("subjectAltName=IP:{}", LinkSide::B.address());
    let leaf = "basicConstraints=critical,CA:FALSE";
    let (key, certificate) = (folder.file("key.pem"), folder.file("cert.pem"));
    let args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(args).args(["-keyout", &key, "-out", &certificate, "-days", "2", "-subj", "/CN=nq"]);
    assert_eq!(
        Process::start({
            openssl.args(["-addext", &name, "-addext", leaf]);
            openssl
        })
        .finish(TIMEOUT)
        .code,
        Some(0)
    );
    std::fs::write(folder.file("small"), "x").unwrap();
    // Its blocks are not there.
    std::fs::File::create(folder.file("large")).unwrap().set_len(8_000_000_000).unwrap();
    let config = folder.file("nginx.conf");
    std::fs::write(&config, NGINX.replace("FOLDER", &folder.path().display().to_string())).unwrap();
    let _sink = Process::start(net.exec(LinkSide::B, "python3", &["-c", SINK]));
    net.await_port(LinkSide::B, 5304, false);
    let _nginx = Process::start(net.exec(LinkSide::B, "nginx", &["-c", &config]));
    eventually("nginx listens", || {
        let url = format!("http://{}:5303/small", LinkSide::B.address());
        let args = ["-s", "--http2-prior-knowledge", &url];
        let done = Process::start(net.exec(LinkSide::A, "curl", &args)).finish(TIMEOUT);
        (done.stdout == "x").then_some(())
    });
    let url = |scheme: &str, port: u16| format!("{scheme}://{}:{port}/", LinkSide::B.address());
    let (encrypted, plain) = (url("https", 5302), url("http", 5303));
    for (args, is_encrypted) in [
        (vec![encrypted.as_str(), "-t", "6", "--tls-ca", &certificate], true),
        (vec![plain.as_str(), "-t", "6"], false),
    ] {
        let result = measured(&net, &user, &args);
        let [report] = &result["responsiveness"].as_array().unwrap()[..] else { panic!("{result}") };
        assert_eq!(report["encrypted"], is_encrypted, "{report}");
        assert_eq!(report["tls_ns"].is_u64(), is_encrypted, "{report}");
        assert!(rpm(report, "foreign_rpm") > 100.0 && rpm(report, "loaded_rpm") > 10.0, "{report}");
        for direction in ["download", "upload"] {
            let counted = &flow(&result, direction)["receiver"];
            let share = counted["bitrate_bps"].as_f64().unwrap() / (20e6 * 1448.0 / 1514.0);
            assert!((0.4..1.02).contains(&share), "{direction}: {share}: {report}");
        }
    }
}
