//! One measurement over the path, and the counts of its bottleneck.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::path::{Bottleneck, SERVER_ADDRESS};
use super::truth::{BucketWatch, Truth, truth};
use crate::bench::listening_port;
use crate::netns::enter;
use crate::process::{ChildProcess, Processes};

/// Timeout for a program to start, and for a client in addition to its test.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Width of an interval that is always acceptable, as a share of the rate.
const NARROW_SHARE: f64 = 0.002;
/// Acceptable ratio of the interval's width to that of batch means of the bottleneck's counter.
const MAX_WIDTH_RATIO: f64 = 2.0;

/// Common state of all runs.
pub(super) struct IntervalsContext {
    pub(super) linerate: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) processes: Processes,
    /// Folder for the results and the bottleneck's counts, if they are kept.
    pub(super) keep: Option<PathBuf>,
}

/// Result of a run, and the true rate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IntervalsResult {
    /// Number of busy loops during the run.
    pub(super) load: usize,
    /// Rate of the bucket, bit/s.
    pub(super) rate_bps: f64,
    /// Payload rate according to the bucket, bit/s.
    pub(super) truth_bps: f64,
    /// Half-width of the batch-means interval of the bucket's counter.
    pub(super) counted_half_bps: Option<f64>,
    /// The printed rate.
    pub(super) measured_bps: f64,
    /// Half-width of the printed interval; absent if none is stated.
    pub(super) half_width_bps: Option<f64>,
    /// Additional extent of the interval upwards, for other traffic of the run on the path.
    pub(super) above_bps: f64,
    /// Printed share of the ceiling.
    pub(super) share: Option<f64>,
    /// The main contribution to the interval's width.
    pub(super) main: String,
}

impl IntervalsContext {
    /// Measures an upload of this number of seconds.
    pub(super) fn run(
        &self,
        path: &Bottleneck,
        load: usize,
        repeat: usize,
        length_s: u64,
    ) -> Result<IntervalsResult, String> {
        let mut server = self.start(path.server(), &["serve", "-p", "0", "--json", "--one-off"])?;
        let port = server.find_line(CLIENT_TIMEOUT, listening_port)?.to_string();
        let watch = BucketWatch::start(path.router())?;
        let length = length_s.to_string();
        let words = ["test", SERVER_ADDRESS, "-p", &port, "--upload", "-C", "cubic", "-t", &length, "--json"];
        let output = self.start(path.client(), &words)?.finish(CLIENT_TIMEOUT, |_| ());
        let looks = watch.finish()?;
        drop(server);
        let document: Value =
            serde_json::from_slice(&output?).map_err(|e| format!("the client printed no JSON: {e}"))?;
        if let Some(keep) = &self.keep {
            let name = format!("{load}-{:.1}-{repeat}.json", path.rate_bps / 1e6);
            let kept = serde_json::json!({ "result": document, "looks": looks });
            let file = keep.join(name);
            fs::write(&file, kept.to_string())
                .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
        let flow = &document["flows"][0];
        let number = |pointer: &str| flow.pointer(pointer).and_then(Value::as_f64);
        let measured_bps = number("/receiver/bitrate_bps").ok_or("the result has no rate")?;
        let seconds = number("/receiver/seconds").ok_or("the result has no time")?;
        let Truth { rate_bps, half_bps } =
            truth(&looks, path.rate_bps, seconds).ok_or("the bottleneck saw no load")?;
        Ok(IntervalsResult {
            load,
            rate_bps: path.rate_bps,
            truth_bps: rate_bps,
            counted_half_bps: half_bps,
            measured_bps,
            half_width_bps: number("/uncertainty/expanded_bps"),
            above_bps: number("/uncertainty/overhead_bps").unwrap_or(0.0),
            share: number("/ceiling/share"),
            main: flow.pointer("/uncertainty/main").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }

    fn start(&self, namespace: &str, words: &[&str]) -> Result<ChildProcess, String> {
        let own = |key: &str, file: &str| format!("{key}={}", self.folder.join(file).display());
        let mut command = enter(namespace);
        command.extend([
            "env".to_owned(),
            own("LINERATE_RUN", "run"),
            own("LINERATE_ARCHIVE", "archive.sqlite"),
        ]);
        command.push("LINERATE_CALIBRATION=".to_owned());
        command.push(self.linerate.display().to_string());
        command.extend(words.iter().map(|word| (*word).to_owned()));
        ChildProcess::start(&self.processes, &command)
    }
}

impl IntervalsResult {
    /// Relative error of the measured rate.
    pub(super) fn error(&self) -> f64 {
        self.measured_bps / self.truth_bps - 1.0
    }

    /// Whether the interval contains the true rate.
    pub(super) fn holds(&self) -> bool {
        let missing = self.truth_bps - self.measured_bps;
        self.half_width_bps.is_some_and(|half| (-half..=half + self.above_bps).contains(&missing))
    }

    /// The acceptable half-width of the interval.
    pub(super) fn allowed_bps(&self) -> f64 {
        (MAX_WIDTH_RATIO * self.counted_half_bps.unwrap_or(0.0)).max(NARROW_SHARE / 2.0 * self.measured_bps)
    }

    /// Half the width of the printed interval.
    fn half_printed_bps(&self) -> Option<f64> {
        self.half_width_bps.map(|half| half + self.above_bps / 2.0)
    }

    /// Whether the interval is narrow enough.
    pub(super) fn is_narrow(&self) -> bool {
        // Nothing can be compared if the bottleneck's own counts give no interval.
        self.counted_half_bps.is_none()
            || self.half_printed_bps().is_some_and(|half| half <= self.allowed_bps())
    }

    /// A line for the output.
    pub(super) fn line(&self) -> String {
        let mega = |bps: f64| format!("{:.4}", bps / 1e6);
        let percent = |bps: f64| format!("{:.3} %", bps / self.truth_bps * 100.0);
        let share = self.share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let marks = [(self.half_width_bps.is_some() && !self.holds(), "misses"), (!self.is_narrow(), "wide")];
        let marks: Vec<&str> = std::iter::once((true, self.main.as_str()))
            .chain(marks)
            .filter(|(on, _)| *on)
            .map(|(_, mark)| mark)
            .collect();
        format!(
            "{:>7} {:>11} {:>11} {:>11} {:>12} {:>8} {:>8}  {}",
            self.load,
            mega(self.rate_bps),
            mega(self.truth_bps),
            mega(self.measured_bps),
            self.half_printed_bps().map_or_else(|| "-".to_owned(), percent),
            percent(self.allowed_bps()),
            share,
            marks.join(" ")
        )
        .trim_end()
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_may_be_twice_that_of_the_counter_or_two_thousandths() {
        let one = |half: f64, counted: Option<f64>| IntervalsResult {
            load: 0,
            rate_bps: 1e8,
            truth_bps: 95e6,
            counted_half_bps: counted,
            measured_bps: 95e6,
            half_width_bps: Some(half),
            above_bps: 0.0,
            share: None,
            main: String::new(),
        };
        assert!(one(95e3, Some(0.0)).is_narrow() && !one(96e3, Some(0.0)).is_narrow());
        assert!(one(2e6, Some(1e6)).is_narrow() && !one(2.1e6, Some(1e6)).is_narrow());
        assert!(one(9e6, None).is_narrow());
        let above = |truth_bps| IntervalsResult { truth_bps, above_bps: 2e5, ..one(9e4, Some(0.0)) };
        assert!(above(95e6 + 2.8e5).holds() && !above(95e6 + 3e5).holds() && !above(95e6 - 1e5).holds());
        assert!(!above(95e6).is_narrow(), "half of what is above counts");
        assert!(one(1e3, None).holds() && one(9.4e4, None).line().contains("0.099 %"));
    }
}
