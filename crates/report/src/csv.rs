//! Tables for other programs: one row per sample, or one row per flow.
//!
//! Column heads contain the unit. A value that was not measured is an empty cell.

use std::io::Write;

use linerate_model::metrics::{CATALOGUE, MetricEntry};
use linerate_model::{
    CeilingShare, FlowRecord, MetricValue, PortRecord, PortSample, Readings, RunRecord, Sample, Side,
};
use linerate_units::Timestamp;
use thiserror::Error;

use crate::figure::FlowFigure;
use crate::intervals;
use crate::ports::during;

/// A table that could not be written.
#[derive(Debug, Error)]
#[error(
    "cannot write the table; check that the reading program is still running and that the disk has space"
)]
pub struct CsvError(#[from] csv::Error);

impl From<std::io::Error> for CsvError {
    fn from(error: std::io::Error) -> Self {
        Self(error.into())
    }
}

/// Writes one row per sample, merged to the requested interval, with a column for every metric of the
/// catalogue.
///
/// Rows of a flow name its side and count time from that side's first byte. Rows of a port of an emulated
/// network name the port and count time from the start of the run.
///
/// # Units
/// Seconds for the interval, and for each metric the unit in its head.
///
/// # Errors
/// If writing to `out` fails.
pub fn samples(record: &RunRecord, out: impl Write) -> Result<(), CsvError> {
    let mut table = csv::Writer::from_writer(out);
    let heads = ["run", "flow", "side", "port", "start_s", "end_s", "outside"].map(str::to_owned);
    table.write_record(heads.into_iter().chain(entries().map(head)))?;
    for flow in &record.flows {
        for sample in intervals::merged(&flow.samples, intervals::asked(record)) {
            table.write_record(sample_row(record, flow, &sample))?;
        }
    }
    for ports in &record.ports {
        for sample in intervals::merged_port(&ports.samples, intervals::asked(record)) {
            table.write_record(port_row(record, ports, &sample))?;
        }
    }
    Ok(table.flush()?)
}

/// Foreign text as a cell that no spreadsheet takes for a formula.
pub(crate) fn text_cell(text: &str) -> String {
    let formula = text.trim_start().starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text.to_owned() }
}

/// Column heads of [`sizes`].
const SIZES: [&str; 12] = [
    "run",
    "flow",
    "message_bytes",
    "trials",
    "repeats",
    "best_one_way_ns",
    "median_one_way_ns",
    "low_ns",
    "high_ns",
    "coverage",
    "bitrate_bps",
    "buffered",
];

/// Writes one row per size of a series over message sizes.
///
/// # Units
/// As in the heads: bytes, nanoseconds, bit/s; the coverage of the interval from low to high is 0 to 1.
///
/// # Errors
/// If writing to `out` fails.
pub fn sizes(record: &RunRecord, out: impl Write) -> Result<(), CsvError> {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let mut table = csv::Writer::from_writer(out);
    table.write_record(SIZES)?;
    for flow in &record.flows {
        for point in &flow.sizes {
            table.write_record([
                text_cell(&record.run),
                text_cell(&flow.plan.name),
                point.message_bytes.get().to_string(),
                cell(point.trials),
                cell(point.repeats),
                point.best.as_ns().to_string(),
                cell(point.median.map(linerate_units::Span::as_ns)),
                cell(point.interval.map(|interval| interval.low.as_ns())),
                cell(point.interval.map(|interval| interval.high.as_ns())),
                cell(point.interval.map(|interval| interval.coverage.get())),
                cell(point.bitrate.map(linerate_units::Bitrate::bps)),
                point.buffered.to_string(),
            ])?;
        }
    }
    Ok(table.flush()?)
}

fn entries() -> impl Iterator<Item = &'static MetricEntry> {
    CATALOGUE.iter().flat_map(|entries| entries.iter())
}

fn head(entry: &MetricEntry) -> String {
    if entry.unit == "1" { entry.name.to_owned() } else { format!("{} [{}]", entry.name, entry.unit) }
}

fn sample_row(record: &RunRecord, flow: &FlowRecord, sample: &Sample) -> Vec<String> {
    let side = match sample.side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
    };
    let mut row = vec![text_cell(&record.run), text_cell(&flow.plan.name), side.to_owned(), String::new()];
    row.extend(bounds(sample.start_ns, sample.end_ns, sample.outside));
    row.extend(values(&sample.readings));
    row
}

fn port_row(record: &RunRecord, ports: &PortRecord, sample: &PortSample) -> Vec<String> {
    let mut row = vec![
        text_cell(&record.run),
        text_cell(&during(record, &ports.flows)),
        String::new(),
        text_cell(&ports.port),
    ];
    row.extend(bounds(sample.start_ns, sample.end_ns, sample.outside));
    row.extend(values(&sample.readings));
    row
}

fn bounds(start: Timestamp, end: Timestamp, outside: bool) -> [String; 3] {
    let seconds = |at: Timestamp| format!("{}.{:09}", at.as_ns() / 1_000_000_000, at.as_ns() % 1_000_000_000);
    [seconds(start), seconds(end), outside.to_string()]
}

/// The cells of every metric of the catalogue.
fn values(readings: &Readings) -> impl Iterator<Item = String> {
    entries().map(|entry| match readings.named(entry.name) {
        Some(MetricValue::Count(count)) => count.to_string(),
        Some(MetricValue::Real(real)) => real.to_string(),
        None => String::new(),
    })
}

/// Column heads of [`summary`].
const SUMMARY: [&str; 24] = [
    "run",
    "started_at",
    "flow",
    "from",
    "to",
    "transport",
    "streams",
    "bitrate_bps",
    "received_bytes",
    "seconds",
    "impossible",
    "ceiling_bps",
    "share",
    "retransmits",
    "packets",
    "lost",
    "loss_ratio",
    "jitter_ns",
    "idle_p50_ns",
    "loaded_p50_ns",
    "cause",
    "rule",
    "uncertainty_bps",
    "name",
];

/// Writes one row per flow.
///
/// # Units
/// As in the heads: bit/s, bytes, seconds, nanoseconds; shares and ratios are 1 for the whole.
///
/// # Errors
/// If writing to `out` fails.
pub fn summary(record: &RunRecord, out: impl Write) -> Result<(), CsvError> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(SUMMARY)?;
    for flow in &record.flows {
        table.write_record(summary_row(record, flow))?;
    }
    Ok(table.flush()?)
}

fn summary_row(record: &RunRecord, flow: &FlowRecord) -> [String; 24] {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let figure = FlowFigure::of(flow);
    let udp = flow.receiver.as_ref().and_then(|tally| tally.udp.as_ref());
    let (packets, loss_ratio) = flow.datagrams().unzip();
    let verdict = flow.verdict.as_ref();
    let plan = &flow.plan;
    let transport = serde_json::to_value(plan.transport).ok();
    [
        text_cell(&record.run),
        record.start.as_ref().map(|start| text_cell(&start.started_at)).unwrap_or_default(),
        text_cell(&plan.name),
        text_cell(&plan.from),
        text_cell(&plan.to),
        cell(transport.as_ref().and_then(|name| name.as_str())),
        plan.streams.to_string(),
        cell(figure.and_then(|f| f.bitrate).map(linerate_units::Bitrate::bps)),
        cell(figure.map(|f| f.bytes.get())),
        cell(figure.map(|f| f.elapsed.as_secs_f64())),
        cell(figure.map(|f| f.impossible)),
        cell(flow.ceiling.as_ref().map(|ceiling| ceiling.bitrate_bps)),
        cell(figure.and_then(|f| f.share).map(CeilingShare::get)),
        cell(flow.sender.as_ref().and_then(|tally| tally.retransmits)),
        cell(packets),
        cell(udp.map(|udp| udp.lost)),
        cell(loss_ratio.flatten().map(linerate_units::Ratio::get)),
        cell(udp.and_then(|udp| udp.jitter).map(linerate_units::Span::as_ns)),
        cell(record.idle.as_ref().filter(|idle| idle.rtt.count > 0).map(|idle| idle.rtt.p50_ns)),
        cell(flow.loaded.as_ref().filter(|loaded| loaded.rtt.count > 0).map(|loaded| loaded.rtt.p50_ns)),
        cell(verdict.map(|verdict| verdict.cause)),
        verdict.map(|verdict| text_cell(verdict.rule.name())).unwrap_or_default(),
        cell(flow.uncertainty.as_ref().map(|known| known.expanded_bps.bps())),
        record.labels.name.as_deref().map(text_cell).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use linerate_model::Event;

    /// Reads the table as rows of cells by column name.
    fn read(text: &[u8]) -> Vec<std::collections::BTreeMap<String, String>> {
        let mut reader = csv::Reader::from_reader(text);
        reader.deserialize().map(Result::unwrap).collect()
    }

    fn samples_of(log: &[Event]) -> Vec<std::collections::BTreeMap<String, String>> {
        let mut out = Vec::new();
        samples(&RunRecord::fold(log), &mut out).unwrap();
        read(&out)
    }

    #[test]
    fn a_row_for_each_sample_with_units_in_the_heads() {
        let rows = samples_of(&runs::tcp_run());
        // Two flows, each 1.5 s at an interval of 1 s.
        assert_eq!(rows.len(), 4);
        let row = &rows[1];
        assert_eq!(
            (row["run"].as_str(), row["flow"].as_str(), row["side"].as_str()),
            ("7f3a9c21", "download", "receiver")
        );
        assert_eq!((row["start_s"].as_str(), row["end_s"].as_str()), ("1.000000000", "1.500000000"));
        assert_eq!(row["flow.bytes [bytes]"], "58837500");
        assert_eq!(row["flow.bitrate [bit/s]"], "941400000");
        assert_eq!(row["tcp.srtt [ns]"], "");
        assert_eq!(row["udp.lost"], "");
        assert_eq!(row["port"], "");
        assert_eq!(row.len(), 7 + entries().count());
    }

    #[test]
    fn a_row_for_each_interval_of_a_port() {
        let rows = samples_of(&runs::lab_run());
        // One interval before the measured part, then one per second.
        let row = rows.iter().filter(|row| row["port"] == "s>b").nth(1).unwrap();
        assert_eq!((row["flow"].as_str(), row["side"].as_str()), ("upload", ""));
        assert_eq!((row["start_s"].as_str(), row["end_s"].as_str()), ("2.000000000", "3.000000000"));
        assert_eq!((row["outside"].as_str(), row["port.busy [ratio]"].as_str()), ("false", "1"));
        assert_eq!(
            (row["port.rate [bit/s]"].as_str(), row["flow.bytes [bytes]"].as_str()),
            ("1000000000", "")
        );
    }

    #[test]
    fn a_row_for_each_flow() {
        let mut out = Vec::new();
        summary(&RunRecord::fold(&runs::udp_run()), &mut out).unwrap();
        let row = &read(&out)[0];
        assert_eq!(row["packets"], "10000");
        assert_eq!(row["loss_ratio"], "0.0025");
        assert_eq!(row["jitter_ns"], "54688");
        assert_eq!((row["transport"].as_str(), row["ceiling_bps"].as_str()), ("udp", ""));
        let mut out = Vec::new();
        summary(&RunRecord::fold(&runs::impossible_run()), &mut out).unwrap();
        assert_eq!(read(&out)[0]["impossible"], "true");
    }

    #[test]
    fn no_cell_of_others_is_a_formula() {
        for (name, cell) in [
            ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
            ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(1)", "'@SUM(1)"),
            ("\t=1+1", "' =1+1"),
            ("\r=1+1", "' =1+1"),
            ("a=1", "a=1"),
            ("-3", "-3"),
        ] {
            assert_eq!(text_cell(&linerate_model::ForeignText::new(name)), cell);
        }
    }

    #[test]
    fn a_row_for_each_size() {
        let mut out = Vec::new();
        let record = RunRecord::fold(&runs::sweep_run());
        sizes(&record, &mut out).unwrap();
        let rows = read(&out);
        assert_eq!(rows.len(), record.flows[0].sizes.len());
        let row = &rows[0];
        assert_eq!((row["flow"].as_str(), row["message_bytes"].as_str()), ("ping-pong", "1"));
        // 20 us and 1 ns per byte.
        assert_eq!((row["median_one_way_ns"].as_str(), row["best_one_way_ns"].as_str()), ("20001", "19001"));
        assert_eq!((row["low_ns"].as_str(), row["high_ns"].as_str()), ("19001", "22001"));
        assert_eq!(rows.last().unwrap()["low_ns"], "");
    }

    #[test]
    fn a_name_with_a_comma_stays_one_cell() {
        let mut log = runs::tcp_run();
        for event in &mut log {
            if let linerate_model::Body::FlowPlanned(plan) = &mut event.body {
                plan.name = "a,\"b\"".into();
            }
        }
        assert_eq!(samples_of(&log)[0]["flow"], "a,\"b\"");
    }

    #[test]
    fn later_columns_come_last_and_may_be_empty() {
        let mut record = RunRecord::fold(&runs::tcp_run());
        record.labels.name = Some("=before".into());
        record.flows[0].uncertainty = Some(runs::uncertainty());
        let mut out = Vec::new();
        summary(&record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let last: Vec<Vec<&str>> = text.lines().map(|line| line.rsplit(',').take(2).collect()).collect();
        assert_eq!(last, [["name", "uncertainty_bps"], ["'=before", "380000"], ["'=before", ""]]);
    }
}
