//! Accuracy of a browser: tests of a page in Chromium and of the native client through the same token bucket, in turn.

use std::time::Duration;

use serde_json::Value;

use super::bench_network::{BenchLocation, BenchNetwork};
use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::tools::TIMEOUT;
use super::{BenchContext, BenchOutcome, report};
use crate::netns::output;
use crate::process::ChildProcess;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 8] = [
    "browser-100-download",
    "browser-100-upload",
    "browser-1000-download",
    "browser-1000-upload",
    "browser-2000-download",
    "browser-2000-upload",
    "browser-tls-1000-download",
    "browser-tls-1000-upload",
];

/// Rates of the bucket, Mb/s, and whether the pages are encrypted; with two figures each.
const PATHS: [(u32, bool); 4] = [(100, false), (1000, false), (2000, false), (1000, true)];
/// Number of pairs in a full run.
const PAIRS: usize = 5;
/// Connections of a test.
const CONNECTIONS: &str = "4";
const PAGES_PORT: u16 = 8080;
const TLS_PORT: u16 = 8443;

/// All figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let script = crate::tree::root()?.join("ui/e2e/measure.mjs");
    if !script.with_file_name("../node_modules/playwright-core").exists() {
        return Ok(BenchOutcome::Skipped("it needs the packages of the front end; `make ui` installs them"));
    }
    let Some(place) = BenchNetwork::make(BenchLocation::Veth)? else {
        return Ok(BenchOutcome::Skipped("it needs root"));
    };
    let start = |is_encrypted| BrowserBench::start(bed, &place, script.display().to_string(), is_encrypted);
    let (plain, encrypted) = (start(false)?, start(true)?);
    let mut figures = Vec::new();
    for ((rate, is_encrypted), names) in PATHS.into_iter().zip(NAMES.chunks(2)) {
        let bench = if is_encrypted { &encrypted } else { &plain };
        bench.shape(rate)?;
        let pairs = if bed.quick { 1 } else { PAIRS };
        let mut below = [Vec::new(), Vec::new()];
        for number in 1..=pairs {
            report::progress(&format!("browser at {rate} Mb/s: pair {number} of {pairs}"));
            let (native, browser) = (bench.native()?, bench.browser()?);
            for (direction, readings) in below.iter_mut().enumerate() {
                readings.push((1.0 - browser[direction] / native[direction]) * 100.0);
            }
        }
        for (name, readings) in names.iter().zip(below) {
            figures.push(figure(name, rate, is_encrypted, readings)?);
        }
    }
    Ok(BenchOutcome::Measured(figures))
}

fn figure(name: &'static str, rate: u32, is_encrypted: bool, all: Vec<f64>) -> Result<BenchFigure, String> {
    let encryption = if is_encrypted { " with TLS" } else { "" };
    let note = format!(
        "below linerate test; {CONNECTIONS} connections{encryption}, token bucket of {rate} Mb/s, Chromium"
    );
    FigureReadings { all, note: Some(note) }.figure(name, "% of the rate", BenchGoal::Below(5.0))
}

/// A server with pages, and a browser in another namespace.
struct BrowserBench<'a> {
    bed: &'a BenchContext,
    place: &'a BenchNetwork,
    server: ChildProcess,
    port: u16,
    script: String,
    archive: String,
    /// Address of its pages.
    pages: String,
}

impl<'a> BrowserBench<'a> {
    fn start(
        bed: &'a BenchContext,
        place: &'a BenchNetwork,
        script: String,
        is_encrypted: bool,
    ) -> Result<Self, String> {
        let name = if is_encrypted { "browser-tls.sqlite" } else { "browser.sqlite" };
        let archive = bed.folder.join(name).display().to_string();
        // For the certificate.
        let data = format!("XDG_DATA_HOME={}", bed.folder.display());
        let (scheme, port) = if is_encrypted { ("https", TLS_PORT) } else { ("http", PAGES_PORT) };
        let program = bed.linerate.display().to_string();
        let pages = format!("{}:{port}", place.address);
        let mut words = vec![
            "env",
            &data,
            &program,
            "serve",
            "--port",
            "0",
            "--json",
            "--web",
            &pages,
            "--insecure",
            "--archive",
            &archive,
        ];
        if is_encrypted {
            words.push("--tls-self-signed");
        }
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let mut server = ChildProcess::start(bed, &[&place.for_server[..], &words].concat())?;
        let port = server.find_line(TIMEOUT, super::listening_port)?;
        let pages = format!("{scheme}://{pages}");
        Ok(Self { bed, place, server, port, script, archive, pages })
    }

    /// Sets the rate of both directions.
    fn shape(&self, rate: u32) -> Result<(), String> {
        for side in [&self.place.for_server, &self.place.for_client] {
            let namespace = side.get(3).ok_or("a side has no namespace")?;
            let words = format!(
                "-n {namespace} qdisc replace dev veth0 root tbf rate {rate}mbit burst 256kb latency 20ms"
            );
            output("tc", &words.split(' ').collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn seconds(&self) -> u64 {
        self.bed.transfer.as_secs().max(2)
    }

    /// Rates of download and upload of `linerate test`.
    fn native(&self) -> Result<[f64; 2], String> {
        let (port, seconds) = (self.port.to_string(), self.seconds().to_string());
        let program = self.bed.linerate.display().to_string();
        let words = [
            &program,
            "test",
            &self.place.address,
            "-p",
            &port,
            "-P",
            CONNECTIONS,
            "-t",
            &seconds,
            "-q",
            "--json",
            "--archive",
            &self.archive,
        ];
        rates(&self.of_client(&words.map(str::to_owned))?)
    }

    /// Rates of download and upload of a page's test, as the server has counted them.
    fn browser(&self) -> Result<[f64; 2], String> {
        let seconds = self.seconds().to_string();
        let words = ["node", &self.script, &self.pages, CONNECTIONS, &seconds];
        let id = self.of_client(&words.map(str::to_owned))?;
        let program = self.bed.linerate.display().to_string();
        rates(&output(&program, &["show", id.trim(), "--json", "--archive", &self.archive])?)
    }

    /// Output of a command in the client's namespace.
    fn of_client(&self, words: &[String]) -> Result<String, String> {
        let timeout = TIMEOUT + Duration::from_secs(4 * self.seconds());
        let done = ChildProcess::start(self.bed, &[&self.place.for_client[..], words].concat())?;
        let ended = done.finish(timeout, |_| ())?;
        if self.server.memory().is_none() {
            return Err("the server has ended".to_owned());
        }
        String::from_utf8(ended).map_err(|e| e.to_string())
    }
}

/// Rates of download and upload in a result document.
fn rates(document: &str) -> Result<[f64; 2], String> {
    let document: Value = serde_json::from_str(document).map_err(|e| format!("{e}: {document}"))?;
    let rate = |name: &str| {
        let flows = document["flows"].as_array().map(Vec::as_slice).unwrap_or_default();
        let flow = flows.iter().find(|flow| flow["name"] == name);
        flow.and_then(|flow| flow["receiver"]["bitrate_bps"].as_f64())
            .ok_or(format!("no {name} in {document}"))
    };
    Ok([rate("download")?, rate("upload")?])
}
