//! The report of a long run: the time to create it, and to open it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_sock::clock;

use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::{BenchContext, BenchOutcome, report};
use crate::cargo;
use crate::process::ChildProcess;

/// Number of samples of the run, half of them from each end.
const SAMPLES: u64 = 1_000_000;

/// Timeout for a million samples on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Timeout for storing them, with a compile before.
const STORE_TIMEOUT: Duration = Duration::from_secs(900);

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 2] = ["report-make-time", "report-open-time"];

/// Both figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    report::progress(NAMES[0]);
    let (log, archive) = (bed.folder.join("long.jsonl"), bed.folder.join("long.sqlite"));
    let page = bed.folder.join("long.html");
    let result = measure(bed, &log, &archive, &page);
    for path in [log, archive, page] {
        let _ = fs::remove_file(path);
    }
    result
}

fn measure(bed: &BenchContext, log: &Path, archive: &Path, page: &Path) -> Result<BenchOutcome, String> {
    write_log(log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
    let words = |words: &[&str]| -> Vec<String> {
        let program = bed.linerate.display().to_string();
        let archive = ["--archive".to_owned(), archive.display().to_string()];
        std::iter::once(program).chain(words.iter().map(|word| (*word).to_owned())).chain(archive).collect()
    };
    let page_name = page.display().to_string();
    store(bed, log, archive)?;
    let make = words(&["report", "long", "--output", &page_name]);
    let times = if bed.pairs > 1 { 3 } else { 1 };
    let all = (0..times).map(|_| seconds(bed, &make)).collect::<Result<Vec<f64>, _>>()?;
    let size = fs::metadata(page).map_err(|e| format!("there is no page ({e}); type: make ui"))?.len();
    let note = format!("{SAMPLES} samples out of the archive, a page of {} MiB", size >> 20);
    let mut figures =
        vec![FigureReadings { all, note: Some(note) }.figure(NAMES[0], "s", BenchGoal::Below(5.0))?];
    if let Some(opened) = open(bed, page, times)? {
        figures.push(opened);
    }
    Ok(BenchOutcome::Measured(figures))
}

/// Stores the log, which is longer than what `linerate import` takes.
fn store(bed: &BenchContext, log: &Path, archive: &Path) -> Result<(), String> {
    let [log, archive] = [log, archive].map(|path| path.display().to_string());
    let command = cargo::release_example("linerate-archive", "store", &[&log, &archive]);
    ChildProcess::start(bed, &command)?.finish(STORE_TIMEOUT, |_| ()).map(drop)
}

/// Run time of a program.
fn seconds(bed: &BenchContext, command: &[String]) -> Result<f64, String> {
    let start = clock::now();
    ChildProcess::start(bed, command)?.finish(TIMEOUT, |_| ())?;
    Ok(clock::now().since(start).as_secs_f64())
}

/// Time until the page is loaded and its first chart drawn; absent if no browser is available.
fn open(bed: &BenchContext, page: &Path, times: usize) -> Result<Option<BenchFigure>, String> {
    let script = crate::tree::root()?.join("ui/e2e/open.mjs");
    if !script.with_file_name("../node_modules").is_dir() || !chromium() {
        println!("{:<22} skipped: it needs Chromium and make ui", NAMES[1]);
        return Ok(None);
    }
    let command = ["node".to_owned(), script.display().to_string(), page.display().to_string()];
    let opened = |_| {
        let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
        let times: serde_json::Value =
            serde_json::from_slice(&output).map_err(|e| format!("open.mjs printed no JSON: {e}"))?;
        let ends = ["load_ms", "drawn_ms"].map(|name| times[name].as_f64());
        let [Some(load), Some(drawn)] = ends else { return Err(format!("no times in {times}")) };
        Ok(load.max(drawn) / 1e3)
    };
    let all = (0..times).map(opened).collect::<Result<Vec<f64>, String>>()?;
    let note = "Chromium, from the disk, until all is loaded and the first chart drawn".to_owned();
    FigureReadings { all, note: Some(note) }.figure(NAMES[1], "s", BenchGoal::Below(2.0)).map(Some)
}

fn chromium() -> bool {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let known =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    named.into_iter().chain(known).any(|path| path.is_file())
}

/// A log with the events of a run, containing only what the fold needs.
fn write_log(path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut seq = 0_u64;
    let mut write_event = |body: std::fmt::Arguments<'_>| {
        seq += 1;
        writeln!(out, "{{\"run\":\"long\",\"host\":0,\"seq\":{},\"at_ns\":{seq},\"body\":{body}}}", seq - 1)
    };
    write_event(format_args!(
        "{{\"kind\":\"run_started\",\"schema\":\"linerate.event/2\",\"started_at\":\"2026-11-22T00:00:00Z\",\
         \"world\":\"hosts\",\"linerate\":\"0.1.0\",\"target\":\"long\",\"spec\":{{}}}}"
    ))?;
    write_event(format_args!(
        "{{\"kind\":\"flow_planned\",\"flow\":0,\"name\":\"upload\",\"from\":\"a\",\"to\":\"b\",\
         \"transport\":\"tcp\",\"direction\":\"upload\",\"streams\":1}}"
    ))?;
    for tick in 0..SAMPLES / 2 {
        let (start, end) = (tick * 10_000_000, (tick + 1) * 10_000_000);
        // Values that differ in every interval, like measured ones, so that they are as hard to compress.
        let noise =
            tick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 44;
        let (bytes, rtt) = (1_000_000 + noise, 20_000_000 + noise * 7);
        let rate = bytes * 800;
        let (cwnd, busy) = (bytes * 3, (noise % 10_000) as f64 / 1e4);
        let sample = "\"kind\":\"sample\",\"flow\":0,\"sample\"";
        write_event(format_args!(
            "{{{sample}:{{\"side\":\"sender\",\"start_ns\":{start},\"end_ns\":{end},\"readings\":{{\"flow.bytes\":{bytes},\
             \"flow.bitrate\":{rate},\"host.busy\":{busy},\"tcp.cwnd\":{cwnd},\"tcp.retransmits\":{},\"tcp.srtt\":{rtt}}}}}}}",
            noise % 5
        ))?;
        write_event(format_args!(
            "{{{sample}:{{\"side\":\"receiver\",\"start_ns\":{start},\"end_ns\":{end},\"readings\":{{\"flow.bytes\":{bytes},\
             \"flow.bitrate\":{rate},\"host.busy\":{busy}}}}}}}"
        ))?;
    }
    write_event(format_args!(
        "{{\"kind\":\"flow_ended\",\"flow\":0,\"side\":\"receiver\",\"tally\":{{\"bytes\":750000000000,\
         \"elapsed_ns\":5000000000000,\"bitrate_bps\":1200000000,\"readings\":{{}},\"complete\":true}}}}"
    ))?;
    write_event(format_args!("{{\"kind\":\"run_ended\",\"outcome\":\"completed\"}}"))?;
    out.flush()
}
