//! Measures how fast a long run becomes a Parquet table, and its size: `samples_table ROWS TIMES`. `cargo xtask bench`
//! calls it.
//!
//! The run has the flow of a real one, sampled every 100 ms for as long as needed, with other readings each time. Prints
//! one JSON object: the rows, the bytes of the file, and the seconds of each repetition.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails has no result")]

use std::time::Instant;

use linerate_model::{Body, Event, Readings, RunRecord, Sample, Side};
use linerate_report::format::RunSource;
use linerate_report::{Format, TextLayout};
use linerate_units::Span;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Time between two samples of a flow.
const INTERVAL: Span = Span::from_ms(100);
/// How late a sample may be.
const MAX_LATE_NS: u64 = 200_000;

/// Readings like these, as those of two real samples are never the same. Small counts, such as those of losses, stay.
fn varied(readings: &Readings, random: &mut StdRng) -> Readings {
    let mut varied = serde_json::to_value(readings).unwrap();
    for (_, value) in varied.as_object_mut().unwrap() {
        if let Some(count) = value.as_u64().filter(|count| *count > 9) {
            *value = (count + random.random_range(0..count / 8 + 1)).into();
        } else if let Some(real) = value.as_f64().filter(|real| real.fract() != 0.0) {
            *value = (real * random.random_range(0.9..1.1)).into();
        }
    }
    serde_json::from_value(varied).unwrap()
}

/// The log, with samples until there are this many readings.
fn lengthened(log: &[Event], rows: u64) -> (Vec<Event>, u64) {
    let mut random = StdRng::seed_from_u64(1);
    let is_sample = |event: &&Event| matches!(event.body, Body::Sample { .. });
    let real: Vec<Event> = log.iter().filter(is_sample).cloned().collect();
    // Sender and receiver are sampled at the same time.
    let of_sender = |event: &&Event| matches!(&event.body, Body::Sample { sample, flow } if sample.side == Side::Sender && flow.0 == 0);
    let of_one_side = real.iter().filter(of_sender).count() as u64;
    let first = log.iter().position(|event| is_sample(&event)).unwrap();
    let mut events = log[..first].to_vec();
    let (mut written, mut turn) = (0, 0);
    while written < rows {
        for event in &real {
            let Body::Sample { flow, sample } = &event.body else { unreachable!() };
            let readings = varied(&sample.readings, &mut random);
            written += readings.iter().count() as u64;
            let start_ns = sample.start_ns + Span::from_ns(turn * of_one_side * INTERVAL.as_ns());
            let late = Span::from_ns(random.random_range(0..MAX_LATE_NS));
            let sample = Sample { start_ns, end_ns: start_ns + INTERVAL + late, readings, ..sample.clone() };
            events.push(Event { body: Body::Sample { flow: *flow, sample }, ..event.clone() });
        }
        turn += 1;
    }
    events.extend(log[first..].iter().filter(|event| !is_sample(event)).cloned());
    for (seq, event) in events.iter_mut().enumerate() {
        event.seq = seq as u64;
    }
    (events, written)
}

#[expect(clippy::disallowed_methods, reason = "this crate has no clock")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, rows, times] = arguments.as_slice() else { panic!("samples_table ROWS TIMES") };
    let log = include_str!("../../../fixtures/results/linerate/loopback.jsonl");
    let log: Vec<Event> = log.lines().map(|line| Event::read(line).unwrap()).collect();
    let (events, rows) = lengthened(&log, rows.parse().unwrap());
    let record = RunRecord::fold(&events);
    let view = TextLayout { width: 80, colour: false, kept: None, explain: false, all_streams: false };
    let source = || RunSource { record: &record, events: &events, view: &view, assets: None };
    let (mut seconds, mut file) = (Vec::new(), Vec::new());
    for _ in 0..times.parse::<u32>().unwrap() {
        file.clear();
        let begun = Instant::now();
        Format::named("parquet").unwrap().write_run(source(), &mut file).unwrap();
        seconds.push(begun.elapsed().as_secs_f64());
    }
    println!("{}", serde_json::json!({ "rows": rows, "bytes": file.len(), "seconds": seconds }));
}
