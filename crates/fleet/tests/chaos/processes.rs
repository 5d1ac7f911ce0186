//! The processes of a run: coordinators and agents of the real program, whose tests only note in a file when they are on
//! the wire.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use linerate_control::Token;
use linerate_fleet::{
    AgentServiceConfig, BrokerOptions, Enrollment, FleetAgentService, FleetBroker, FleetService,
    FleetServiceConfig, RunEnd, SubstituteRun, fleet_file, now,
};
use linerate_model::calendar::{CalendarRunState, CellResult};
use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, Outcome, RunStart, World};
use linerate_runner::CancelToken;
use linerate_sock::clock;
use linerate_sock::process::{Signal, end_with_parent};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Names of files in the folder of a run.
pub(crate) const FLEET_FILE: &str = "fleet.toml";
pub(crate) const KEY_FILE: &str = "fleet.key";
pub(crate) const ARCHIVE_FILE: &str = "archive.url";
pub(crate) const BROKER_FILE: &str = "broker.url";
pub(crate) const WIRE_FOLDER: &str = "wire";

const RETRY_INTERVAL: Duration = Duration::from_millis(300);
const TOKEN: &str = "the token of a fleet that never measures";
/// Events of a log that does not fit into one message.
const LONG_LOG: u64 = 20_000;

/// The file in which this process notes what it puts on the wire.
static WIRE: OnceLock<File> = OnceLock::new();

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn begin_process(folder: &Path) {
    end_with_parent(Signal::Kill).unwrap();
    let path = folder.join(WIRE_FOLDER).join(std::process::id().to_string());
    WIRE.set(OpenOptions::new().create(true).append(true).open(path).unwrap()).unwrap();
}

/// Is a coordinator until it is killed.
pub(crate) fn coordinator(folder: &Path) {
    begin_process(folder);
    let place = BrokerOptions { brokers: vec![text(folder, BROKER_FILE)], ..BrokerOptions::default() };
    let config = FleetServiceConfig {
        archive: Some(text(folder, ARCHIVE_FILE)),
        inventory: fleet_file::load(&folder.join(FLEET_FILE)).unwrap(),
        token: Token::new(TOKEN).unwrap(),
        tls: None,
        broker: Some(FleetBroker { key: text(folder, KEY_FILE), place }),
        notify: |notice| println!("{} {notice}", now().as_ms()),
    };
    let service = loop {
        match FleetService::open(config.clone()) {
            Ok(service) => break service,
            // As a service manager does it.
            Err(error) => println!("{} not started: {error}", now().as_ms()),
        }
        clock::sleep_until(clock::now() + RETRY_INTERVAL);
    };
    let ended = service.with_substitute(substitute).run(&CancelToken::new(), &mut |_| ());
    println!("{} ended: {ended:?}", now().as_ms());
}

/// Is an agent until it is killed.
pub(crate) fn agent(folder: &Path, enrollment: &Path, own: PathBuf) {
    begin_process(folder);
    let config = AgentServiceConfig {
        enrollment: Enrollment::read(enrollment).unwrap(),
        folder: own,
        archive: None,
        server: ("127.0.0.1".to_owned(), None),
        token: Token::new(TOKEN).unwrap(),
        tls: None,
        program: "1.2.3".to_owned(),
        notify: |notice| println!("{} {notice}", now().as_ms()),
    };
    let service = loop {
        match FleetAgentService::open(config.clone()) {
            Ok(service) => break service,
            Err(error) => println!("{} not started: {error}", now().as_ms()),
        }
        clock::sleep_until(clock::now() + RETRY_INTERVAL);
    };
    service.with_substitute(substitute).run(&CancelToken::new());
}

/// Other numbers for every process and moment.
fn random() -> StdRng {
    StdRng::seed_from_u64(clock::wall_ns() ^ (u64::from(std::process::id()) << 32))
}

fn note(line: &str) {
    // In one call, so that the line is whole whatever happens to the process.
    WIRE.get().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Connects, sends for the time of the test, and says how it went.
fn substitute(run: &SubstituteRun<'_>, cancel: &CancelToken) -> (RunEnd, String) {
    let mut rng = random();
    let failed =
        |reason: &str| RunEnd { state: CalendarRunState::Failed, reason: reason.to_owned(), result: None };
    clock::sleep_until(clock::now() + Duration::from_millis(rng.random_range(10..300)));
    // Before the check: this process may have to wait for the processor after it.
    let (begins, began) = (now(), clock::now());
    if run.start_by.has_passed() || cancel.is_cancelled() {
        return (failed("it could not begin in time"), log(run, false));
    }
    let lasts = run.spec.traffic.measured().as_duration();
    let until = clock::now() + lasts;
    let SubstituteRun { run: id, schedule, from, to, .. } = run;
    note(&format!("begin {id} {schedule} {from} {to} {} {}", begins.as_ms(), until.since(began).as_millis()));
    while !until.has_passed() && !cancel.is_cancelled() {
        clock::sleep_until(until.min(clock::now() + Duration::from_millis(10)));
    }
    note(&format!("end {id} {}", now().as_ms()));
    let log = log(run, rng.random_bool(0.02));
    if cancel.is_cancelled() || rng.random_bool(0.1) {
        return (failed("broken off"), log);
    }
    let goodput = Bitrate::from_bps(1e9);
    let result = Some(CellResult { goodput, ..CellResult::default() });
    (RunEnd { state: CalendarRunState::Finished, reason: String::new(), result }, log)
}

fn log(run: &SubstituteRun<'_>, is_long: bool) -> String {
    let mut rng = random();
    let start = RunStart {
        schema: linerate_model::EVENT_SCHEMA.into(),
        started_at: linerate_fleet::rfc3339(now()).as_str().into(),
        world: World::Hosts,
        linerate: "1.2.3".into(),
        target: run.to.into(),
        spec: run.spec.clone(),
    };
    let mut bodies = vec![Body::RunStarted(Box::new(start))];
    bodies.extend((0..if is_long { LONG_LOG } else { 0 }).map(|_| Body::Progress {
        flow: FlowId(0),
        bytes: Bytes::new(rng.random::<u64>() >> 2),
        elapsed: Span::from_ns(rng.random::<u64>() >> 2),
        srtt: None,
        retransmits: None,
    }));
    bodies.push(Body::RunEnded { outcome: Outcome::Completed, reason: None });
    let mut text = String::new();
    for (seq, body) in bodies.into_iter().enumerate() {
        let at = Timestamp::START + Span::from_us(seq as u64);
        let event = Event { run: run.run.into(), host: 0, seq: seq as u64, at, body };
        text += &serde_json::to_string(&event).unwrap();
        text.push('\n');
    }
    text
}
