//! Measures how fast a calendar books: a day of tests between many hosts at once, and single tests one after the other.
//!
//! ```sh
//! cargo run --release -p linerate-fleet --example booking -- LOCATION [HOSTS [SINGLE]]
//! ```
//!
//! LOCATION is a new SQLite file or an empty PostgreSQL database. Prints JSON.

use std::process::ExitCode;

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{FleetCoordinator, Inventory, fleet_file};
use linerate_model::calendar::{CalendarRunState, Recurrence, Schedule, UnixTime};
use linerate_plan::Source;
use linerate_sock::clock;
use linerate_units::Span;

/// When the simulated day begins.
const DAY: UnixTime = UnixTime::from_ms(1_800_000_000_000);
const HOSTS_OF_A_SITE: usize = 100;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let location = arguments.next().ok_or("usage: booking LOCATION [HOSTS [SINGLE]]")?;
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (hosts, single) = (number(10_000)?, number(2_000)?);
    let mut next = 0_u64;
    let new_id = Box::new(move || {
        next += 1;
        Ok(format!("{next:016x}"))
    });
    let inventory = fleet(hosts)?;
    let mut coordinator =
        FleetCoordinator::new(Calendar::open(&location)?, "bench".to_owned(), inventory.clone(), new_id)
            .with_horizon(Span::from_secs(24 * 3600));
    let (applied, ()) = timed(|| coordinator.apply(inventory.clone(), DAY))?;
    let (planned, _) = timed(|| coordinator.tick(DAY))?;
    let runs = coordinator.calendar().read(|calendar| calendar.run_counts(DAY))?;
    let booked: u64 =
        runs.iter().filter(|(state, _)| *state == CalendarRunState::Booked).map(|(_, count)| count).sum();
    let mut each = Vec::with_capacity(single);
    for at in 0..single {
        let schedule = once(at, hosts, &inventory);
        coordinator.calendar().write(|calendar| calendar.put_schedule(&schedule, Some(DAY)))?;
        let (took, _) = timed(|| coordinator.tick(DAY))?;
        each.push(took);
    }
    let filter = RunFilter { schedule: Some("single-0".to_owned()), ..RunFilter::default() };
    let first = coordinator.calendar().read(|calendar| calendar.runs(&filter))?;
    if first.first().is_none_or(|run| run.state != CalendarRunState::Booked) {
        return Err("a single test was not booked".into());
    }
    each.sort_by(f64::total_cmp);
    let quantile =
        |share: f64| each.get(((each.len() - 1) as f64 * share) as usize).copied().unwrap_or_default();
    let total: f64 = each.iter().sum();
    println!(
        "{}",
        serde_json::json!({
            "hosts": hosts,
            "apply_seconds": applied,
            "day_runs": booked,
            "day_seconds": planned,
            "single_runs": single,
            "single_per_second": single as f64 / total,
            "single_p50_ms": quantile(0.5) * 1e3,
            "single_p99_ms": quantile(0.99) * 1e3,
        })
    );
    Ok(())
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(f64, T), E> {
    let begun = clock::now();
    let value = work()?;
    Ok((clock::now().since(begun).as_secs_f64(), value))
}

/// Each host measures hourly to its neighbour, and so is an end of 48 tests a day. Half of a site measures at a time.
fn fleet(hosts: usize) -> Result<Inventory, Box<dyn std::error::Error>> {
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
    Ok(fleet_file::read(&source, &|_| Ok(Vec::new()))?)
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
