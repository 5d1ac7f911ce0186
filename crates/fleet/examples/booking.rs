//! Measures how fast a calendar books: `booking sqlite|postgres [HOSTS [SINGLE]]`. `cargo xtask bench --only booking`
//! calls it.
//!
//! First a day of tests between many hosts at once, then tests that users add, one after the other. Prints one JSON
//! object.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails has no result")]

#[path = "../../archive/tests/it/postgres_server.rs"]
mod postgres_server;

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{FleetAction, FleetCoordinator, Inventory, RunEnd, fleet_file};
use linerate_model::calendar::{CalendarRunState, Recurrence, Schedule, UnixTime};
use linerate_plan::Source;
use linerate_sock::clock;
use linerate_units::Span;
use postgres_server::PostgresServer;

/// When the simulated day begins.
const DAY: UnixTime = UnixTime::from_ms(1_800_000_000_000);
const HOSTS_OF_A_SITE: usize = 100;

/// What `booking` is given.
struct BookingOptions {
    database: String,
    /// Hosts, each of which measures hourly.
    hosts: usize,
    /// Tests that are added afterwards.
    single: usize,
}

impl BookingOptions {
    fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let database = words.next().filter(|word| ["sqlite", "postgres"].contains(&word.as_str()))?;
        let mut number = |default: usize| words.next().map_or(Some(default), |word| word.parse().ok());
        Some(Self { database, hosts: number(10_000)?, single: number(2_000)? })
    }
}

fn main() {
    let Some(options) = BookingOptions::read(std::env::args().skip(1)) else {
        panic!("usage: booking sqlite|postgres [HOSTS [SINGLE]]");
    };
    if options.database == "sqlite" {
        let folder = tempfile::tempdir().unwrap();
        measure(&folder.path().join("calendar.sqlite").display().to_string(), &options);
    } else {
        let (server, process) = PostgresServer::start();
        measure(&server.url("postgres"), &options);
        PostgresServer::stop(process);
    }
}

fn measure(location: &str, options: &BookingOptions) {
    let mut next = 0_u64;
    let new_id = Box::new(move || {
        next += 1;
        Ok(format!("{next:016x}"))
    });
    let inventory = fleet(options.hosts);
    let calendar = Calendar::open(location).unwrap();
    let mut coordinator = FleetCoordinator::new(calendar, "bench".to_owned(), inventory.clone(), new_id)
        .with_horizon(Span::from_secs(24 * 3600));
    // With the schedules of the mesh, and what is due at once.
    let day_seconds = seconds(|| coordinator.tick(DAY, &mut Vec::new()).unwrap());
    let counts = coordinator.calendar().read(|calendar| calendar.run_counts(DAY)).unwrap();
    let booked =
        |(state, count): &(CalendarRunState, u64)| (*state == CalendarRunState::Booked).then_some(*count);
    let day_runs: u64 = counts.iter().filter_map(booked).sum();
    let end = RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: None };
    let mut single_ms = Vec::with_capacity(options.single);
    for at in 0..options.single {
        let mut actions = Vec::new();
        let schedule = once(at, options.hosts, &inventory);
        let took = seconds(|| {
            coordinator.calendar().write(|calendar| calendar.put_schedule(&schedule, Some(DAY))).unwrap();
            coordinator.tick(DAY, &mut actions).unwrap();
        });
        single_ms.push(took * 1e3);
        // Few tests are active at the same time.
        for action in actions {
            if let FleetAction::Start(run) = action {
                coordinator.ended(&run.id, &end, DAY).unwrap();
            }
        }
    }
    for at in 0..options.single {
        let filter = RunFilter { schedule: Some(format!("single-{at}")), ..RunFilter::default() };
        let runs = coordinator.calendar().read(|calendar| calendar.runs(&filter)).unwrap();
        let state = runs.first().map(|run| run.state);
        let has_time = matches!(
            state,
            Some(CalendarRunState::Booked | CalendarRunState::Running | CalendarRunState::Finished)
        );
        assert!(has_time, "the test {at} is {state:?}");
    }
    println!(
        "{}",
        serde_json::json!({
            "database": options.database,
            "hosts": options.hosts,
            "day_runs": day_runs,
            "day_seconds": day_seconds,
            "single_ms": single_ms,
        })
    );
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = clock::now();
    work();
    clock::now().since(begun).as_secs_f64()
}

/// Each host measures hourly to its neighbour, and so is an end of 48 tests a day. Half of a site measures at a time.
fn fleet(hosts: usize) -> Inventory {
    let mut text = String::from("name = \"bench\"\n");
    for host in 0..hosts {
        text += &format!("[host.h{host}]\naddress = \"h{host}\"\n");
    }
    for site in 0..hosts.div_ceil(HOSTS_OF_A_SITE) {
        let first = site * HOSTS_OF_A_SITE;
        let names: Vec<String> =
            (first..(first + HOSTS_OF_A_SITE).min(hosts)).map(|host| format!("\"h{host}\"")).collect();
        text += &format!(
            "[group.site{site}]\nhosts = [{}]\ncapacity = {}\n",
            names.join(", "),
            HOSTS_OF_A_SITE / 2
        );
    }
    let pairs: Vec<String> =
        (0..hosts).map(|host| format!("[\"h{host}\", \"h{}\"]", (host + 1) % hosts)).collect();
    text += &format!("[mesh.ring]\nevery = \"1h\"\ntemplate = \"pairs\"\npairs = [{}]\n", pairs.join(", "));
    let source = Source { name: "bench.toml".to_owned(), text };
    fleet_file::read(&source, &|_| Ok(Vec::new())).unwrap()
}

fn once(at: usize, hosts: usize, inventory: &Inventory) -> Schedule {
    let from = at * 7 % hosts;
    Schedule {
        name: format!("single-{at}").into(),
        mesh: None,
        from: format!("h{from}").into(),
        to: format!("h{}", (from + hosts / 2) % hosts).into(),
        spec: inventory.meshes.first().map(|mesh| mesh.spec.clone()).unwrap_or_default(),
        recurrence: Recurrence::Once(DAY),
        zone: "UTC".into(),
        slip: Span::from_secs(12 * 3600),
        quiet: Vec::new(),
        priority: 0,
        shared: false,
        until: None,
        alarm: Default::default(),
    }
}
