//! Cost of viewers of the web pages: pairs of tests through a gigabit token bucket with and without them, in turn.
//!
//! The viewers are sockets of this program in the namespace of the web service, as those of a proxy would be, so they
//! take processor time from it but none of the link.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_sock::{clock, netns, thread};
use serde_json::Value;

use super::bench_network::{BenchLocation, BenchNetwork};
use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::spread::shift;
use super::tools::{BenchTool, TIMEOUT};
use super::{BenchContext, BenchOutcome, report};
use crate::netns::output;
use crate::process::ChildProcess;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 3] = ["viewers-cost-20", "viewers-cost-200", "viewers-memory-200"];

/// Number of pairs in a full run.
const PAIRS: usize = 12;
/// Where the pages are, in a namespace of their own.
const PAGES: &str = "127.0.0.1:8080";
/// The path; one rate for all tests.
const BUCKET: &str = "rate 1gbit burst 512kb latency 20ms";
/// How often a viewer reads.
const READ_INTERVAL: Duration = Duration::from_millis(50);

/// The service, with a server on the other side of the bucket.
struct ViewedService {
    process: ChildProcess,
    /// The namespace of the service.
    namespace: std::os::fd::OwnedFd,
    target: String,
    seconds: u64,
}

/// All figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let Some(place) = BenchNetwork::make(BenchLocation::Veth)? else {
        return Ok(BenchOutcome::Skipped("it needs root"));
    };
    let server = BenchTool::Linerate.serve(bed, &place)?;
    let service = ViewedService::start(bed, &place, server.port)?;
    let mut figures = Vec::new();
    for (name, viewers) in NAMES.into_iter().zip([20, 200]) {
        let pairs = if bed.quick { 1 } else { PAIRS };
        let lost = (1..=pairs).map(|number| {
            report::progress(&format!("{name}: pair {number} of {pairs}"));
            // Alternate the order, so that a trend affects both.
            let (first, second) = if number % 2 == 0 { (viewers, 0) } else { (0, viewers) };
            let rates = [service.rate(first)?, service.rate(second)?];
            let [with, without] = if first > 0 { rates } else { [rates[1], rates[0]] };
            Ok((1.0 - with / without) * 100.0)
        });
        figures.push(figure(name, viewers, lost.collect::<Result<_, String>>()?)?);
    }
    let memory = service.process.memory().ok_or("the service has ended")?;
    let note = "peak of the whole process, server included".to_owned();
    let memory = FigureReadings::once(memory.high_water as f64 / 1048576.0, note);
    figures.push(memory.figure(NAMES[2], "MiB", BenchGoal::Below(100.0))?);
    Ok(BenchOutcome::Measured(figures))
}

fn figure(name: &'static str, viewers: usize, all: Vec<f64>) -> Result<BenchFigure, String> {
    let found = shift(&all).ok_or("the readings are not numbers")?;
    let interval = match found.interval {
        Some((low, high)) => format!(", 95 % interval {low:.3} to {high:.3}"),
        None => ", too few pairs for an interval".to_owned(),
    };
    let middle = found.middle;
    let note = format!("{viewers} viewers: Hodges-Lehmann {middle:.3} %{interval}; upload, {BUCKET}");
    FigureReadings { all, note: Some(note) }.figure(name, "% of the rate", BenchGoal::Below(1.0))
}

impl ViewedService {
    fn start(bed: &BenchContext, place: &BenchNetwork, port: u16) -> Result<Self, String> {
        let namespace = place.for_client.get(3).ok_or("the client has no namespace")?;
        let qdisc = format!("-n {namespace} qdisc add dev veth0 root tbf {BUCKET}");
        output("tc", &qdisc.split(' ').collect::<Vec<_>>())?;
        let archive = bed.folder.join("viewers.sqlite").display().to_string();
        let program = bed.linerate.display().to_string();
        // The tokens of whoever runs the benchmark are not for its viewers.
        let words =
            [&program, "serve", "--port", "0", "--json", "--web", PAGES, "--insecure", "--archive", &archive];
        let words = words.map(str::to_owned);
        let mut process = ChildProcess::start(bed, &[&place.for_client[..], &words].concat())?;
        process.find_line(TIMEOUT, super::listening_port)?;
        let namespace = netns::of_process(process.id()).map_err(|e| e.to_string())?;
        let target = format!("{}:{port}", place.address);
        Ok(Self { process, namespace, target, seconds: bed.transfer.as_secs().max(2) })
    }

    /// Rate of a test that this number of viewers watches.
    fn rate(&self, viewers: usize) -> Result<f64, String> {
        netns::with_netns_fd(&self.namespace, || self.watched_rate(viewers)).map_err(|e| e.to_string())?
    }

    fn watched_rate(&self, viewers: usize) -> Result<f64, String> {
        let test = serde_json::json!({
            "to": self.target,
            "test": {
                "traffic": { "upload": true, "duration_ns": self.seconds * 1_000_000_000 },
                "socket": { "congestion": "cubic" },
            },
        });
        let started = request("POST", "/api/v1/runs", &test.to_string())?;
        let id = started["id"].as_str().ok_or_else(|| format!("the test was refused: {started}"))?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = thread::spawn_scoped(scope, "viewers", || watch(id, viewers, &over));
            let watching = watching.map_err(|e| e.to_string())?;
            let ended = await_end(id, Duration::from_secs(self.seconds) + TIMEOUT);
            over.store(true, Ordering::Relaxed);
            let watched = watching.join().map_err(|_| "a viewer has failed")??;
            // A viewer that saw nothing costs nothing.
            if watched < viewers {
                return Err(format!("only {watched} of {viewers} viewers saw the test"));
            }
            let status = ended?;
            let rate = &status["result"]["flows"][0]["receiver"]["bitrate_bps"];
            rate.as_f64().ok_or_else(|| format!("no rate in {status}"))
        })
    }
}

/// Waits for the end of a run; its status.
fn await_end(id: &str, timeout: Duration) -> Result<Value, String> {
    let deadline = clock::now() + timeout;
    while !deadline.has_passed() {
        let status = request("GET", &format!("/api/v1/runs/{id}"), "")?;
        if status["state"] == "ended" {
            return Ok(status);
        }
        clock::sleep_until(clock::now() + Duration::from_millis(200));
    }
    Err(format!("the run {id} has no end"))
}

/// Watches a run with many viewers until it is over; how many of them received more than the beginning.
fn watch(id: &str, viewers: usize, over: &AtomicBool) -> Result<usize, String> {
    let fail = |e: std::io::Error| format!("a viewer cannot connect: {e}");
    let head = format!("GET /api/v1/runs/{id}/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..viewers {
        let mut stream = TcpStream::connect(PAGES).map_err(fail)?;
        stream.write_all(head.as_bytes()).map_err(fail)?;
        stream.set_nonblocking(true).map_err(fail)?;
        streams.push((stream, 0_usize));
    }
    let mut bytes = vec![0; 64 << 10];
    while !over.load(Ordering::Relaxed) {
        for (stream, received) in &mut streams {
            match stream.read(&mut bytes) {
                Ok(count) => *received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(format!("a viewer was disconnected: {error}")),
            }
        }
        clock::sleep_until(clock::now() + READ_INTERVAL);
    }
    // The head and the snapshot are less.
    Ok(streams.iter().filter(|(_, received)| *received > 2000).count())
}

/// A request to the service, and the JSON of its response.
fn request(method: &str, path: &str, body: &str) -> Result<Value, String> {
    let fail = |e: std::io::Error| format!("{method} {path}: {e}");
    let mut stream = TcpStream::connect(PAGES).map_err(fail)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(fail)?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Linerate: 1\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(fail)?;
    let mut response = String::new();
    stream.read_to_string(&mut response).map_err(fail)?;
    let (_, body) = response.split_once("\r\n\r\n").ok_or_else(|| format!("{method} {path}: no response"))?;
    serde_json::from_str(body).map_err(|e| format!("{method} {path}: {e}: {body:.200}"))
}
