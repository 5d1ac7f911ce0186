//! Measures an archive with many runs: `measure sqlite|postgres RUNS`. `cargo xtask bench --only archive` calls it.
//!
//! Each run has the log of a real one, with other times and readings. Prints one JSON object: sizes, the rate of
//! ingest, and for each question the milliseconds of every repetition.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails has no result")]

#[path = "../tests/it/postgres_server.rs"]
mod postgres_server;

use std::collections::BTreeMap;
use std::time::Instant;

use linerate_archive::{Archive, EventStore, Filter, Store, open};
use linerate_model::{Body, Event, RunLabels, RunRecord};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use postgres_server::PostgresServer;

/// Times that each question is asked.
const REPEATS: usize = 15;
/// Runs on each side of a comparison.
const COMPARED: u32 = 5;

/// The run number `number`, like `log`.
fn variant(log: &[Event], number: u32, random: &mut StdRng) -> Vec<Event> {
    let id = format!("{:016x}", u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut events = log.to_vec();
    for event in &mut events {
        event.run = id.as_str().into();
        match &mut event.body {
            Body::RunStarted(start) => {
                let (day, minute) = (number / 1440, number % 1440);
                let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
                start.started_at =
                    format!("2026-{month:02}-{day:02}T{:02}:{:02}:00Z", minute / 60, minute % 60).into();
                start.target = format!("host-{}", number % 50).into();
            }
            // The readings of two runs are never the same.
            Body::Sample { sample, .. } => {
                let names: Vec<String> = sample.readings.iter().map(|(name, _)| name.to_owned()).collect();
                let mut text = serde_json::to_value(&sample.readings).unwrap();
                for name in names {
                    let value = &mut text[&name];
                    if let Some(count) = value.as_u64().filter(|count| *count > 9) {
                        *value = (count + random.random_range(0..count / 8 + 1)).into();
                    } else if let Some(real) = value.as_f64().filter(|real| real.fract() != 0.0) {
                        *value = (real * random.random_range(0.9..1.1)).into();
                    }
                }
                sample.readings = serde_json::from_value(text).unwrap();
            }
            _ => {}
        }
    }
    if number.is_multiple_of(1000) {
        let labels = RunLabels { name: Some(format!("name-{number}").into()), ..RunLabels::default() };
        let last = events.last().unwrap().clone();
        events.push(Event { seq: last.seq + 1, body: Body::Labelled(labels), ..last });
    }
    events
}

/// The clock of this measurement, from its start.
struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this crate has no clock")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Milliseconds of each repetition of a question.
fn milliseconds<T>(mut ask: impl FnMut() -> T) -> Vec<f64> {
    let mut all = Vec::new();
    for _ in 0..REPEATS {
        let watch = Stopwatch::start();
        std::hint::black_box(ask());
        all.push(watch.seconds() * 1e3);
    }
    all
}

/// The questions of the list of runs.
fn questions(runs: u32) -> BTreeMap<&'static str, Filter> {
    let whole = Filter { whole: true, ..Filter::default() };
    let text = |text: &str| Some(text.to_owned());
    BTreeMap::from([
        ("newest", whole.clone()),
        ("server", Filter { name_or_target: text("host-7"), ..whole.clone() }),
        ("nobody", Filter { name_or_target: text("nowhere"), ..whole.clone() }),
        ("name", Filter { name: Some(format!("name-{}", runs / 2000 * 1000)), ..whole.clone() }),
        ("cause", Filter { cause: text("link"), ..whole.clone() }),
        ("no-such-cause", Filter { cause: text("duplex"), ..whole.clone() }),
        ("tag", Filter { tag: text("keep"), ..whole.clone() }),
        ("since", Filter { since: text("2026-02-01"), ..whole.clone() }),
        ("until", Filter { until: text("2026-01-02"), ..whole }),
    ])
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, database, runs] = arguments.as_slice() else { panic!("measure sqlite|postgres RUNS") };
    let runs: u32 = runs.parse().unwrap();
    let log = include_str!("../../../fixtures/results/linerate/loopback.jsonl");
    let log: Vec<Event> = log.lines().map(|line| Event::read(line).unwrap()).collect();
    let folder = std::env::temp_dir().join(format!("linerate-archive-measure-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = (database == "postgres").then(PostgresServer::start);
    let location = match &server {
        Some((server, _)) => server.url("postgres"),
        None => folder.join("archive.sqlite").display().to_string(),
    };
    let mut archive = open(&location).unwrap();
    let document = measure(&mut archive, &log, runs);
    drop(archive);
    if let Some((_, process)) = server {
        PostgresServer::stop(process);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{document}");
}

fn measure(archive: &mut Archive, log: &[Event], runs: u32) -> serde_json::Value {
    let mut random = StdRng::seed_from_u64(1);
    let (mut samples, mut readings, mut text_bytes, mut seconds) = (0_u64, 0_u64, 0_u64, 0.0);
    for number in 0..runs {
        let events = variant(log, number, &mut random);
        for event in &events {
            text_bytes += serde_json::to_string(&event.body).unwrap().len() as u64;
            if let Body::Sample { sample, .. } = &event.body {
                (samples, readings) = (samples + 1, readings + sample.readings.iter().count() as u64);
            }
        }
        let watch = Stopwatch::start();
        archive.append(&events).unwrap();
        seconds += watch.seconds();
        if number.is_multiple_of(997) {
            archive.tag(&events[0].run, "keep").unwrap();
        }
    }
    // As a server does from time to time by itself.
    archive.vacuum().unwrap();
    let lists: BTreeMap<&str, Vec<f64>> = questions(runs)
        .into_iter()
        .map(|(name, filter)| (name, milliseconds(|| archive.page(&filter, None, 50).unwrap())))
        .collect();
    let newest = archive.page(&Filter::default(), None, 2 * COMPARED).unwrap().runs;
    let compare = milliseconds(|| {
        newest.iter().map(|run| RunRecord::fold(&archive.events(&run.id).unwrap())).collect::<Vec<_>>()
    });
    let find = milliseconds(|| archive.find("latest").unwrap());
    serde_json::json!({
        "runs": runs, "samples": samples, "readings": readings, "text_bytes": text_bytes,
        "archive_bytes": archive.size_bytes().unwrap(), "ingest_seconds": seconds,
        "list_ms": lists, "compare_ms": compare, "find_ms": find,
    })
}
