//! What a server of responsiveness has left for load: downloads of curl over HTTP/2 within TLS from ours and from nginx,
//! in turn, over loopback.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;

use super::figure::{BenchFigure, BenchGoal};
use super::spread::Spread;
use super::tools::{TIMEOUT, await_listener, busy_seconds, free_port};
use super::{BenchContext, BenchOutcome, report};
use crate::netns::output;
use crate::process::ChildProcess;

/// Names of the figures.
pub(super) const NAMES: [&str; 1] = ["responsiveness-server"];

/// Size of what nginx has: more than is downloaded in the time.
const LARGE_BYTES: u64 = 200_000_000_000;

/// One process: a connection is the matter of one thread in both servers.
const NGINX: &str = r#"
daemon off;
master_process off;
pid FOLDER/pid;
error_log stderr warn;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    server {
        listen 127.0.0.1:PORT ssl http2;
        ssl_certificate FOLDER/certificate.pem;
        ssl_certificate_key FOLDER/key.pem;
        ssl_protocols TLSv1.3;
        root FOLDER;
    }
}
"#;

/// What a download brought.
struct Downloaded {
    bits_per_second: f64,
    cpu_seconds_per_gb: f64,
}

/// The figure.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    if [("nginx", "-v"), ("curl", "-V"), ("openssl", "version")]
        .iter()
        .any(|(program, option)| output(program, &[option]).is_err())
    {
        return Ok(BenchOutcome::Skipped("it needs nginx, curl and openssl"));
    }
    let folder = bed.folder.join("nginx");
    let found = compared(bed, &folder);
    // The file of nginx looks like much, and is nothing.
    let _ = fs::remove_dir_all(&folder);
    found
}

fn compared(bed: &BenchContext, folder: &Path) -> Result<BenchOutcome, String> {
    let (_ours, own_port) = serve_own(bed)?;
    let (_nginx, peer_port) = serve_nginx(bed, folder)?;
    let ours = format!("https://127.0.0.1:{own_port}/linerate/responsiveness/large");
    let theirs = format!("https://127.0.0.1:{peer_port}/large");
    let (mut own, mut peer) = (Vec::new(), Vec::new());
    for number in 1..=bed.pairs {
        report::progress(&format!("responsiveness: pair {number} of {}", bed.pairs));
        let (first, second) = (download(bed, &ours)?, download(bed, &theirs)?);
        own.push(first);
        peer.push(second);
    }
    let spread = |all: &[Downloaded], of: fn(&Downloaded) -> f64| {
        Spread::of(all.iter().map(of).collect()).ok_or("nothing was read")
    };
    let rate = |one: &Downloaded| one.bits_per_second / 1e9;
    let cpu = |one: &Downloaded| one.cpu_seconds_per_gb;
    Ok(BenchOutcome::Measured(vec![BenchFigure {
        name: NAMES[0],
        unit: "Gb/s",
        ours: spread(&own, rate)?,
        peer: Some(spread(&peer, rate)?),
        peer_name: "nginx",
        cpu_seconds_per_gb: Some((spread(&own, cpu)?, spread(&peer, cpu)?)),
        cpu_goal: None,
        class: None,
        goal: BenchGoal::RatioAtLeast(1.0),
        note: Some("one download of curl over HTTP/2 within TLS 1.3, loopback".to_owned()),
    }]))
}

fn serve_own(bed: &BenchContext) -> Result<(ChildProcess, u64), String> {
    let data = format!("XDG_DATA_HOME={}", bed.folder.display());
    let program = bed.linerate.display().to_string();
    let words = ["env", &data, &program, "serve", "-p", "0", "-B", "127.0.0.1", "--json", "--tls"];
    let more = ["--responsiveness-port", "0", "--archive", ":memory:"];
    let words: Vec<String> = words.iter().chain(&more).map(|word| (*word).to_owned()).collect();
    let mut server = ChildProcess::start(bed, &words)?;
    let port = server.find_line(TIMEOUT, |line| {
        let event: Value = serde_json::from_str(line).ok()?;
        (event["event"] == "listening_for_responsiveness").then(|| event["port"].as_u64())?
    })?;
    Ok((server, port))
}

fn serve_nginx(bed: &BenchContext, folder: &Path) -> Result<(ChildProcess, u64), String> {
    prepare(folder).map_err(|error| format!("cannot prepare {}: {error}", folder.display()))?;
    let path = |name: &str| folder.join(name).display().to_string();
    let (key, certificate) = (path("key.pem"), path("certificate.pem"));
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench";
    let files = ["-keyout", &key, "-out", &certificate];
    output("openssl", &request.split(' ').chain(files).collect::<Vec<_>>())?;
    let port = free_port()?;
    let config = NGINX.replace("FOLDER", &folder.display().to_string()).replace("PORT", &port.to_string());
    fs::write(path("nginx.conf"), config).map_err(|error| error.to_string())?;
    let words = ["nginx", "-c", &path("nginx.conf")].map(str::to_owned);
    let nginx = ChildProcess::start(bed, &words)?;
    await_listener(bed, port)?;
    Ok((nginx, port.into()))
}

/// A folder with a large file, whose blocks are not there.
fn prepare(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    File::create(folder.join("large"))?.set_len(LARGE_BYTES)
}

fn download(bed: &BenchContext, url: &str) -> Result<Downloaded, String> {
    let seconds = bed.transfer.as_secs().to_string();
    let counts = "%{http_version} %{size_download} %{time_total}";
    // At its end curl says that its time is over, which is no success.
    let script = format!("curl -sk --http2 -m {seconds} -o /dev/null -w '{counts}' {url} || true");
    let before = busy_seconds()?;
    let words = ["sh", "-c", &script].map(str::to_owned);
    let done = ChildProcess::start(bed, &words)?.finish(TIMEOUT + bed.transfer, |_| ())?;
    let busy = busy_seconds()? - before;
    let text = String::from_utf8_lossy(&done);
    let words: Vec<&str> = text.split(' ').collect();
    let ["2", bytes, time] = words[..] else { return Err(format!("curl printed: {text}")) };
    let number = |text: &str| text.trim().parse::<f64>().map_err(|error| format!("{text}: {error}"));
    let (bytes, time) = (number(bytes)?, number(time)?);
    if time < 0.99 * bed.transfer.as_secs_f64() {
        return Err(format!("the download ended early: {text}"));
    }
    Ok(Downloaded { bits_per_second: 8.0 * bytes / time, cpu_seconds_per_gb: busy / (bytes / 1e9) })
}
