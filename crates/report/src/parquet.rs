//! The samples as one long table for analysts: a row for each reading of each sample, in a Parquet file.
//!
//! Rows are in the order of the runs, then of flow, side, and of the time of a block of samples; in a block, in that of
//! metric and time. Many rows of a series are next to each other, and their texts and values hardly change. The
//! metrics of a block have the same times, which compression finds, as they are near.

mod columns;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use linerate_model::metrics::find;
use linerate_model::{Event, MetricValue, PlanPlace, Readings, RunRecord, Side};
use linerate_units::Timestamp;
use sha2::{Digest, Sha256};

use crate::format::{FormatError, PlanSource, RunSource, is_sweep};
use crate::ndjson;
use crate::ports::during;
pub use columns::reference;

/// Version of the table. Columns may be added to it; one that is removed, or changes its meaning, makes a new one.
pub const SAMPLES_SCHEMA: &str = "linerate.samples/1";

/// Rows of a row group: what readers load, skip, and give to a thread of their own.
const GROUP_ROWS: usize = 1 << 20;

/// Samples whose readings are sorted by metric: few enough that a page of a column has the times of a block many times.
const BLOCK_SAMPLES: usize = 1 << 10;

/// What the rows of a series have in common.
#[derive(Debug, Clone)]
struct SampleSeries {
    run: ByteArray,
    point: Option<ByteArray>,
    trial: Option<i64>,
    plan_flow: Option<ByteArray>,
    flow: Option<i64>,
    flow_name: ByteArray,
    side: ByteArray,
    port: Option<ByteArray>,
    metric: ByteArray,
    unit: Option<ByteArray>,
}

/// A reading of a sample.
#[derive(Debug, Clone, Copy)]
struct SampleRow {
    /// Its series, as an index into those of the row group.
    series: usize,
    t_ns: i64,
    t_end_ns: i64,
    outside: bool,
    value: f64,
}

/// A sample of a flow or a port.
struct SampledInterval<'r> {
    start: Timestamp,
    end: Timestamp,
    outside: bool,
    readings: &'r Readings,
}

/// Writes the samples of a run.
pub(crate) fn of_run(run: &RunSource<'_>) -> Result<Vec<u8>, FormatError> {
    let record = run.record;
    let mut table = SampleTable::new(GROUP_ROWS)?;
    table.add_run(record, record.group.as_ref().and_then(|group| group.plan.as_ref()))?;
    if table.is_empty() && is_sweep(record) {
        return Err(FormatError::NoSamples);
    }
    let mut notes = vec![("run", record.run.to_string())];
    if let Some(start) = &record.start {
        notes.push(("version", start.linerate.to_string()));
        notes.push(("started_at", start.started_at.to_string()));
        notes.push(("target", start.target.to_string()));
    }
    notes.extend(log_digest(run.events).map(|digest| ("log_sha256", digest)));
    Ok(table.finish(notes)?)
}

/// Writes the samples of all runs of a plan that can be loaded, one run at a time.
pub(crate) fn of_plan(plan: &PlanSource<'_>) -> Result<Vec<u8>, FormatError> {
    let mut table = SampleTable::new(GROUP_ROWS)?;
    let (mut missing, mut sweeps) = (Vec::new(), false);
    for trial in &plan.record.trials {
        for run in &trial.runs {
            let Some(log) = (plan.runs)(&run.run).map_err(FormatError::RunOfPlan)? else {
                missing.push(run.run.as_str());
                continue;
            };
            let record = RunRecord::fold(&log);
            sweeps |= is_sweep(&record);
            let place = PlanPlace {
                run: plan.record.run.clone(),
                point: trial.point.clone(),
                repeat: trial.repeat,
                flow: run.flow.clone(),
            };
            table.add_run(&record, Some(&place))?;
        }
    }
    if table.is_empty() && sweeps {
        return Err(FormatError::NoSamples);
    }
    let mut notes = vec![("run", plan.record.run.to_string())];
    if let Some(start) = &plan.record.start {
        notes.push(("version", start.linerate.to_string()));
        notes.push(("started_at", start.started_at.to_string()));
        notes.push(("plan", start.name.to_string()));
    }
    if !missing.is_empty() {
        notes.push(("missing_runs", missing.join(",")));
    }
    notes.extend(log_digest(plan.events).map(|digest| ("log_sha256", digest)));
    Ok(table.finish(notes)?)
}

/// SHA-256 of the log as the format jsonl writes it; absent without a log.
fn log_digest(events: &[Event]) -> Option<String> {
    let mut digest = Sha256::new();
    // A digest takes everything; an event that cannot be written leaves the log without one.
    events.iter().try_for_each(|event| ndjson::write(event, &mut digest)).ok()?;
    (!events.is_empty()).then(|| digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The table while it is written.
struct SampleTable {
    file: SerializedFileWriter<Vec<u8>>,
    /// Rows per row group.
    group_rows: usize,
    /// The series and rows of the next row group.
    series: Vec<SampleSeries>,
    rows: Vec<SampleRow>,
    empty: bool,
}

impl SampleTable {
    fn new(group_rows: usize) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_created_by(format!("linerate version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Readers skip row groups by them; an index of pages would be larger than the texts.
            .set_statistics_enabled(EnabledStatistics::Chunk);
        let properties = columns::encodings(properties).build();
        let file = SerializedFileWriter::new(Vec::new(), Arc::new(columns::schema()?), Arc::new(properties))?;
        Ok(Self { file, group_rows, series: Vec::new(), rows: Vec::new(), empty: true })
    }

    fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds the samples of a run, with its place in a plan.
    fn add_run(&mut self, record: &RunRecord, place: Option<&PlanPlace>) -> Result<(), ParquetError> {
        let of_run = SampleSeries {
            run: text(&record.run),
            point: place.map(|place| text(&place.point)),
            trial: place.map(|place| place.repeat.into()),
            plan_flow: place.map(|place| text(&place.flow)),
            flow: None,
            flow_name: text(""),
            side: text(""),
            port: None,
            metric: text(""),
            unit: None,
        };
        for flow in &record.flows {
            for (side, name) in [(Side::Sender, "sender"), (Side::Receiver, "receiver")] {
                let intervals = flow.samples_of(side).map(|sample| SampledInterval {
                    start: sample.start_ns,
                    end: sample.end_ns,
                    outside: sample.outside,
                    readings: &sample.readings,
                });
                let (flow, flow_name) = (Some(flow.plan.flow.0.into()), text(&flow.plan.name));
                let series = SampleSeries { flow, flow_name, side: text(name), ..of_run.clone() };
                self.add_intervals(&series, &intervals.collect::<Vec<_>>())?;
            }
        }
        for ports in &record.ports {
            let intervals = ports.samples.iter().map(|sample| SampledInterval {
                start: sample.start_ns,
                end: sample.end_ns,
                outside: sample.outside,
                readings: &sample.readings,
            });
            let series = SampleSeries {
                flow: if let [flow] = ports.flows[..] { Some(flow.0.into()) } else { None },
                flow_name: text(&during(record, &ports.flows)),
                side: text("port"),
                port: Some(text(&ports.port)),
                ..of_run.clone()
            };
            self.add_intervals(&series, &intervals.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Adds the readings of consecutive samples.
    fn add_intervals(
        &mut self,
        common: &SampleSeries,
        intervals: &[SampledInterval<'_>],
    ) -> Result<(), ParquetError> {
        intervals.chunks(BLOCK_SAMPLES).try_for_each(|block| self.add_block(common, block))
    }

    /// Adds the readings of a block of samples, one metric after the other.
    fn add_block(
        &mut self,
        common: &SampleSeries,
        intervals: &[SampledInterval<'_>],
    ) -> Result<(), ParquetError> {
        let names: BTreeSet<&str> =
            intervals.iter().flat_map(|interval| interval.readings.iter().map(|(name, _)| name)).collect();
        // The readings of a sample are in the order of their names, so each is visited once.
        let mut readings: Vec<_> =
            intervals.iter().map(|interval| interval.readings.iter().peekable()).collect();
        for name in names {
            let unit = find(name).map(|entry| text(entry.unit));
            let series = SampleSeries { metric: text(name), unit, ..common.clone() };
            let mut index = None;
            for (interval, readings) in intervals.iter().zip(&mut readings) {
                let Some((_, value)) = readings.next_if(|(next, _)| *next == name) else { continue };
                if self.rows.len() >= self.group_rows {
                    self.write_group()?;
                    index = None;
                }
                let series = *index.get_or_insert_with(|| {
                    self.series.push(series.clone());
                    self.series.len() - 1
                });
                self.rows.push(SampleRow {
                    series,
                    t_ns: nanoseconds(interval.start),
                    t_end_ns: nanoseconds(interval.end),
                    outside: interval.outside,
                    value: MetricValue::real(value),
                });
                self.empty = false;
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        columns::write(&self.series, &self.rows, &mut group)?;
        group.close()?;
        self.series.clear();
        self.rows.clear();
        Ok(())
    }

    /// The file, with notes about its origin.
    fn finish(mut self, notes: Vec<(&str, String)>) -> Result<Vec<u8>, ParquetError> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        let schema = ("schema", SAMPLES_SCHEMA.to_owned());
        for (key, value) in std::iter::once(schema).chain(notes) {
            self.file.append_key_value_metadata(KeyValue::new(format!("linerate.{key}"), value));
        }
        self.file.into_inner()
    }
}

fn text(text: &str) -> ByteArray {
    text.as_bytes().to_vec().into()
}

/// A time as the signed number that Parquet has; the last one for times after 292 years.
fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_ns()).unwrap_or(i64::MAX)
}
