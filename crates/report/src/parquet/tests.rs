use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use linerate_model::flow::FlowId;
use linerate_model::metrics::{Metric, flow, host, tcp};
use linerate_model::{Body, Event, GroupPlace, PlanRecord, Readings, Sample, TestSpec};
use linerate_units::{Bytes, Span};
use proptest::prelude::*;

use super::*;
use crate::samples_of_runs::{self as runs, opening, planned, sample};
use crate::{TextLayout, samples_of_plans};

/// A cell by the name of its column.
type Row = BTreeMap<String, Field>;

fn write(log: &[Event]) -> Result<Vec<u8>, FormatError> {
    let record = RunRecord::fold(log);
    of_run(&RunSource { record: &record, events: log, view: &TextLayout::default(), assets: None })
}

fn reader(bytes: &[u8]) -> SerializedFileReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    SerializedFileReader::new(file).unwrap()
}

fn rows(file: &[u8]) -> Vec<Row> {
    let reader = reader(file);
    let row = |row: Result<::parquet::record::Row, ParquetError>| {
        row.unwrap().into_columns().into_iter().collect::<Row>()
    };
    reader.get_row_iter(None).unwrap().map(row).collect()
}

fn notes(metadata: &ParquetMetaData) -> BTreeMap<String, String> {
    let notes = metadata.file_metadata().key_value_metadata().unwrap();
    notes.iter().map(|note| (note.key.clone(), note.value.clone().unwrap())).collect()
}

fn string(text: &str) -> Field {
    Field::Str(text.to_owned())
}

/// The readings of a record, counted without this module.
fn readings(record: &RunRecord) -> usize {
    let flows = record.flows.iter().flat_map(|flow| &flow.samples).map(|sample| &sample.readings);
    let ports = record.ports.iter().flat_map(|port| &port.samples).map(|sample| &sample.readings);
    flows.chain(ports).map(|readings| readings.iter().count()).sum()
}

#[test]
fn a_row_for_each_reading_of_each_sample() {
    let log = runs::tcp_run();
    let rows = rows(&write(&log).unwrap());
    // Two flows of three samples, each of three readings.
    assert_eq!(rows.len(), 18);
    let expected = [
        ("run", string("7f3a9c21")),
        ("point", Field::Null),
        ("trial", Field::Null),
        ("plan_flow", Field::Null),
        ("flow", Field::Long(0)),
        ("flow_name", string("download")),
        ("side", string("receiver")),
        ("port", Field::Null),
        ("t_ns", Field::Long(500_000_000)),
        ("t_end_ns", Field::Long(1_000_000_000)),
        ("outside", Field::Bool(false)),
        ("metric", string("flow.bitrate")),
        ("value", Field::Double(941_400_000.0)),
        ("unit", string("bit/s")),
    ];
    assert_eq!(rows[1], expected.map(|(name, cell)| (name.to_owned(), cell)).into());
    // Series after series, and in each the order of time.
    let keys = |row: &Row| {
        let cell = |name: &str| format!("{:?}", row[name]);
        let Field::Long(start) = row["t_ns"] else { panic!("{row:?}") };
        (cell("flow"), cell("side"), cell("metric"), start)
    };
    assert!(rows.iter().map(keys).is_sorted());
}

#[test]
fn a_row_for_each_reading_of_a_port() {
    let log = runs::lab_run();
    let rows = rows(&write(&log).unwrap());
    let busy = |row: &&Row| row["metric"] == string("port.busy") && row["port"] == string("s>b");
    let busy: Vec<&Row> = rows.iter().filter(busy).collect();
    assert_eq!(busy.len(), 21);
    assert_eq!((&busy[0]["outside"], &busy[1]["outside"]), (&Field::Bool(true), &Field::Bool(false)));
    assert_eq!((&busy[1]["flow"], &busy[1]["side"]), (&Field::Long(0), &string("port")));
    assert_eq!((&busy[1]["t_ns"], &busy[1]["value"]), (&Field::Long(2_000_000_000), &Field::Double(1.0)));
}

#[test]
fn the_file_says_what_it_is_and_how_it_is_packed() {
    let log = runs::tcp_run();
    let reader = reader(&write(&log).unwrap());
    let notes = notes(reader.metadata());
    let expected = [
        ("schema", "linerate.samples/1"),
        ("run", "7f3a9c21"),
        ("version", "0.1.0"),
        ("started_at", "2026-11-21T10:00:00Z"),
        ("target", "server:5201"),
    ];
    for (key, value) in expected {
        assert_eq!(notes[&format!("linerate.{key}")], value);
    }
    let known = columns::METADATA.map(|(key, _)| format!("linerate.{key}"));
    assert!(notes.keys().all(|key| known.contains(key)), "the reference has every key: {notes:?}");
    let mut text = Vec::new();
    log.iter().for_each(|event| ndjson::write(event, &mut text).unwrap());
    let digest: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(notes["linerate.log_sha256"], digest);

    let group = reader.metadata().row_group(0);
    for column in group.columns() {
        assert!(matches!(column.compression(), Compression::ZSTD(_)), "{column:?}");
        let wanted = match column.column_path().string().as_str() {
            "t_ns" | "t_end_ns" => Encoding::PLAIN,
            "trial" | "flow" => Encoding::DELTA_BINARY_PACKED,
            "outside" => Encoding::RLE,
            "value" => Encoding::BYTE_STREAM_SPLIT,
            _ => Encoding::RLE_DICTIONARY,
        };
        assert!(column.encodings().any(|encoding| encoding == wanted), "{column:?}");
    }
}

#[test]
fn a_run_of_a_plan_has_its_place() {
    let mut log = runs::tcp_run();
    let plan = PlanPlace { run: "p".into(), point: "00ff".into(), repeat: 7, flow: "bulk".into() };
    let place =
        GroupPlace { group: "g".into(), start_after: Span::ZERO, cross_traffic: false, plan: Some(plan) };
    log[1].body = Body::Grouped(place);
    let rows = rows(&write(&log).unwrap());
    let place = [("point", string("00ff")), ("trial", Field::Long(7)), ("plan_flow", string("bulk"))];
    for (name, cell) in place {
        assert!(rows.iter().all(|row| row[name] == cell), "{name}");
    }
}

#[test]
fn a_plan_has_the_samples_of_its_runs_and_names_those_that_are_gone() {
    let (log, _) = samples_of_plans::two_axes();
    let record = PlanRecord::fold(&log);
    let trials: Vec<_> = record.trials.iter().filter(|trial| !trial.runs.is_empty()).collect();
    let gone = trials[0].runs[0].run.as_str();
    let load = |run: &str| {
        let renamed = |event: Event| Event { run: run.into(), ..event };
        Ok((run != gone).then(|| runs::tcp_run().into_iter().map(renamed).collect()))
    };
    let file = of_plan(&PlanSource { record: &record, events: &log, runs: &load }).unwrap();
    let notes = notes(reader(&file).metadata());
    assert_eq!((&*notes["linerate.missing_runs"], &*notes["linerate.run"]), (gone, &*record.run));
    assert!(notes.contains_key("linerate.plan") && !notes.contains_key("linerate.target"));
    let rows = rows(&file);
    let there = || {
        let runs = record.trials.iter().flat_map(|trial| trial.runs.iter().map(move |run| (trial, run)));
        runs.filter(|(_, run)| run.run != gone)
    };
    assert_eq!(rows.len(), there().count() * 18);
    for (rows, (trial, run)) in rows.chunks(18).zip(there()) {
        assert_eq!(rows[0]["run"], string(&run.run));
        assert_eq!((&rows[0]["point"], &rows[0]["plan_flow"]), (&string(&trial.point), &string(&run.flow)));
        assert_eq!(rows[0]["trial"], Field::Long(trial.repeat.into()));
    }
    let fails = |_: &str| Err("the archive is damaged".into());
    let failed = of_plan(&PlanSource { record: &record, events: &log, runs: &fails }).unwrap_err();
    assert!(failed.to_string().contains("damaged") && !failed.is_of_format(), "{failed}");
}

#[test]
fn a_sweep_has_no_samples_and_a_run_without_any_has_an_empty_table() {
    assert!(matches!(write(&runs::sweep_run()), Err(FormatError::NoSamples)));
    assert_eq!(rows(&write(&runs::killed_run()).unwrap()), []);
    assert_eq!(rows(&write(&[]).unwrap()), []);
}

#[test]
fn a_long_series_is_in_blocks_in_the_order_of_time() {
    let record = RunRecord::fold(&noisy_run(2_500, 1));
    let mut table = SampleTable::new(GROUP_ROWS).unwrap();
    table.add_run(&record, None).unwrap();
    let rows = rows(&table.finish(Vec::new()).unwrap());
    assert_eq!(rows.len(), readings(&record));
    for (side, name) in [(Side::Sender, "sender"), (Side::Receiver, "receiver")] {
        let found =
            rows.iter().filter(|row| row["side"] == string(name) && row["metric"] == string("flow.calls"));
        let found: Vec<_> = found.map(|row| (row["t_ns"].clone(), row["value"].clone())).collect();
        let cell = |sample: &Sample| {
            let value = sample.readings.named("flow.calls").unwrap().real();
            (Field::Long(sample.start_ns.as_ns() as i64), Field::Double(value))
        };
        assert_eq!(found, record.flows[0].samples_of(side).map(cell).collect::<Vec<_>>());
    }
}

#[test]
fn a_series_goes_on_in_the_next_row_group() {
    let record = RunRecord::fold(&runs::tcp_run());
    let written = |group_rows| {
        let mut table = SampleTable::new(group_rows).unwrap();
        table.add_run(&record, None).unwrap();
        table.finish(Vec::new()).unwrap()
    };
    let parts = written(5);
    assert_eq!(reader(&parts).metadata().num_row_groups(), 4);
    assert_eq!(rows(&parts), rows(&written(GROUP_ROWS)));
}

#[test]
fn names_of_others_stay_what_they_are() {
    for name in ["=1+1", "a\"b,c", "\u{202e}", "", "Zürich 東京", &"x".repeat(70_000)] {
        let mut bodies = opening(TestSpec::default());
        let (host, mut plan) = planned(0, linerate_model::Direction::Upload, linerate_model::Transport::Tcp);
        if let Body::FlowPlanned(plan) = &mut plan {
            plan.name = name.into();
        }
        bodies.push((host, plan));
        bodies.push(sample(0, Side::Sender, 0, 100, 1));
        let log = runs::log(bodies);
        let shown = RunRecord::fold(&log).flows[0].plan.name.to_string();
        let rows = rows(&write(&log).unwrap());
        assert!(!rows.is_empty() && rows.iter().all(|row| row["flow_name"] == string(&shown)), "{name:?}");
    }
}

#[test]
fn large_counts_are_rounded_late_times_saturate_and_unknown_metrics_have_no_unit() {
    let mut readings = Readings::default();
    readings.put(flow::BYTES, Bytes::new((1 << 53) + 1));
    readings.put(Metric::<u64>::new("new.metric"), 3);
    readings.put(tcp::RETRANSMITS, (1 << 53) - 1);
    let (start_ns, end_ns) = (Timestamp::from_ns(7), Timestamp::from_ns(u64::MAX));
    let sample = Sample { side: Side::Receiver, start_ns, end_ns, outside: true, readings };
    let mut bodies = opening(TestSpec::default());
    bodies.push(planned(0, linerate_model::Direction::Upload, linerate_model::Transport::Tcp));
    bodies.push((0, Body::Sample { flow: FlowId(0), sample }));
    let rows = rows(&write(&runs::log(bodies)).unwrap());
    let cells: Vec<[&Field; 3]> =
        rows.iter().map(|row| ["metric", "value", "unit"].map(|name| &row[name])).collect();
    let expected = [
        [&string("flow.bytes"), &Field::Double(9_007_199_254_740_992.0), &string("bytes")],
        [&string("new.metric"), &Field::Double(3.0), &Field::Null],
        [&string("tcp.retransmits"), &Field::Double(9_007_199_254_740_991.0), &string("1")],
    ];
    assert_eq!(cells, expected);
    assert!(
        rows.iter()
            .all(|row| row["t_end_ns"] == Field::Long(i64::MAX) && row["outside"] == Field::Bool(true))
    );
}

#[test]
fn the_reference_has_every_column() {
    let page = reference();
    for column in &columns::COLUMNS {
        assert_eq!(page.matches(&format!("| `{}` |", column.name)).count(), 1, "{}", column.name);
    }
}

/// Ten samples a second with the noise of a real path: ticks are some microseconds late, segments are whole, times
/// are smoothed, windows move, and most counts are 0.
fn noisy_run(samples: u64, seed: u64) -> Vec<Event> {
    let mut bodies = opening(TestSpec::default());
    bodies.push(planned(0, linerate_model::Direction::Download, linerate_model::Transport::Tcp));
    let mut state = seed;
    let mut noise = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for side in [Side::Sender, Side::Receiver] {
        let mut start_ns = Timestamp::START;
        for number in 1..=samples {
            let end_ns = Timestamp::from_ns(number * 100_000_000 + noise(60_000));
            let mut readings = Readings::default();
            let bytes = Bytes::new(1448 * (7_900 + noise(300)));
            readings.put(flow::BYTES, bytes);
            readings.put_some(flow::BITRATE, linerate_units::Bitrate::of(bytes, end_ns - start_ns));
            readings.put(flow::CALLS, 90 + noise(20));
            readings.put_some(host::BUSY, linerate_units::Ratio::new(noise(1_000) as f64 / 7_919.0));
            readings.put(host::SOFTNET_DROPPED, 0);
            readings.put(host::INTERRUPTS, 4_000 + noise(900));
            readings.put(host::TICK_LATENESS, Span::from_ns(noise(60_000)));
            readings.put(tcp::SRTT, Span::from_ns(1000 * (20_000 + noise(2_000))));
            readings.put(tcp::MIN_RTT, Span::from_ns(19_873_000));
            readings.put(tcp::CWND, Bytes::new(1448 * (300 + noise(40))));
            readings.put(tcp::RETRANSMITS, noise(50) / 48);
            let sample = Sample { side, start_ns, end_ns, outside: number < 4, readings };
            bodies.push((0, Body::Sample { flow: FlowId(0), sample }));
            start_ns = end_ns;
        }
    }
    runs::log(bodies)
}

/// Bytes of the table per row, for this number of runs with this number of samples.
fn bytes_per_row(runs: u64, samples: u64) -> f64 {
    let records: Vec<RunRecord> = (1..=runs).map(|seed| RunRecord::fold(&noisy_run(samples, seed))).collect();
    let mut table = SampleTable::new(GROUP_ROWS).unwrap();
    for record in &records {
        table.add_run(record, None).unwrap();
    }
    let size = table.finish(Vec::new()).unwrap().len();
    size as f64 / records.iter().map(readings).sum::<usize>() as f64
}

#[test]
fn a_row_takes_less_than_six_bytes() {
    for (runs, samples) in [(1, 100), (60, 100), (1, 20_000)] {
        let bytes = bytes_per_row(runs, samples);
        assert!(bytes < 6.0, "{runs} runs of {samples} samples: {bytes:.2} bytes a row");
    }
}

proptest! {
    #[test]
    fn there_is_a_row_for_each_reading(
        samples in proptest::collection::vec((0..3_u16, any::<bool>(), any::<u64>(), "[a-c]{1,2}", any::<f64>()), 0..40),
        group_rows in 1..50_usize,
    ) {
        let mut bodies = opening(TestSpec::default());
        for flow in 0..2 {
            bodies.push(planned(flow, linerate_model::Direction::Upload, linerate_model::Transport::Udp));
        }
        for (number, port, start, metric, value) in samples {
            let mut readings = Readings::default();
            readings.put(flow::BYTES, Bytes::new(start));
            let value = linerate_units::Ratio::new(value);
            readings.put_some(Metric::new(Box::leak(metric.into_boxed_str())), value);
            let (start_ns, end_ns) = (Timestamp::from_ns(start), Timestamp::from_ns(start));
            let flow = FlowId(number);
            bodies.push((0, if port {
                let sample = linerate_model::PortSample { start_ns, end_ns, outside: false, readings };
                Body::Port { flows: vec![flow; usize::from(number)], port: "a>b".into(), sample }
            } else {
                Body::Sample { flow, sample: Sample { side: Side::Sender, start_ns, end_ns, outside: false, readings } }
            }));
        }
        let record = RunRecord::fold(&runs::log(bodies));
        let mut table = SampleTable::new(group_rows).unwrap();
        table.add_run(&record, None).unwrap();
        let rows = rows(&table.finish(Vec::new()).unwrap());
        prop_assert_eq!(rows.len(), readings(&record));
        let sum = |metric: &str| {
            let flows = record.flows.iter().flat_map(|flow| &flow.samples).map(|sample| &sample.readings);
            let ports = record.ports.iter().flat_map(|port| &port.samples).map(|sample| &sample.readings);
            let values = flows.chain(ports).filter_map(|readings| readings.named(metric));
            let mut values: Vec<f64> = values.map(MetricValue::real).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        for metric in ["flow.bytes", "a", "bb"] {
            let mut values: Vec<f64> = rows.iter().filter(|row| row["metric"] == string(metric)).map(|row| {
                let Field::Double(value) = row["value"] else { panic!("{row:?}") };
                value
            }).collect();
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(values, sum(metric), "{}", metric);
        }
    }
}
