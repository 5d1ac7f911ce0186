//! What must hold whatever happened, by what was on the wire and what the calendar says.

use std::collections::BTreeMap;
use std::fs;

use linerate_archive::{Archive, RunFilter};
use linerate_fleet::{FleetError, ResultDocument};
use linerate_model::calendar::{CalendarRun, CalendarRunState};
use linerate_runner::archive_at;

use crate::chaos_fleet::{ChaosFleet, files, persist};
use crate::processes::WIRE_FOLDER;

/// What the clocks of an agent and a coordinator may be off together: half of the time for settling.
const MAX_SKEW_MS: i64 = 500;
/// How long a process may take to begin what it has decided to begin, and to stop.
const SLACK_MS: i64 = 300;

/// A test on the wire.
#[derive(Debug)]
struct WireUse {
    run: String,
    schedule: String,
    from: String,
    to: String,
    begins_ms: i64,
    ends_ms: i64,
}

/// A summary, or what is wrong.
pub(crate) fn check(fleet: &mut ChaosFleet) -> Result<String, String> {
    let wire = read_wire(fleet);
    let runs = persist(|| fleet.users.runs(&RunFilter::default()));
    let checked = check_overlaps(fleet, &wire)
        .and_then(|()| check_windows(&wire, &runs))
        .and_then(|()| check_ends(fleet, &wire, &runs))
        .and_then(|()| check_results(fleet));
    checked.map_err(|what| fleet.failure(&what))?;
    let count = |state| runs.iter().filter(|run| run.state == state).count();
    let (finished, failed) = (count(CalendarRunState::Finished), count(CalendarRunState::Failed));
    let missed = count(CalendarRunState::Missed);
    if finished == 0 {
        return Err(fleet.failure("nothing was measured"));
    }
    Ok(format!(
        "{} tests on the wire, {} runs: {finished} finished, {failed} failed, {missed} missed; {} things happened",
        wire.len(),
        runs.len(),
        fleet.events.len()
    ))
}

fn read_wire(fleet: &ChaosFleet) -> Vec<WireUse> {
    let mut wire = Vec::new();
    for file in fs::read_dir(fleet.folder.join(WIRE_FOLDER)).unwrap().flatten() {
        let process: u32 = file.file_name().to_str().unwrap().parse().unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        let mut own: Vec<WireUse> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["begin", run, schedule, from, to, at, lasts] => {
                    let begins_ms: i64 = at.parse().unwrap();
                    // What a process has begun ends by itself, also if the process is stopped.
                    let ends_ms = begins_ms + lasts.parse::<i64>().unwrap();
                    let killed = fleet.killed.get(&process).copied().unwrap_or(i64::MAX);
                    own.push(WireUse {
                        run: run.to_owned(),
                        schedule: schedule.to_owned(),
                        from: from.to_owned(),
                        to: to.to_owned(),
                        begins_ms,
                        ends_ms: ends_ms.min(killed),
                    });
                }
                ["end", run, at] => {
                    let ends_ms: i64 = at.parse().unwrap();
                    let begun = own.iter_mut().rev().find(|one| one.run == run).unwrap();
                    begun.ends_ms = begun.ends_ms.min(ends_ms);
                }
                _ => panic!("{line}"),
            }
        }
        wire.extend(own);
    }
    wire.sort_by_key(|one| one.begins_ms);
    wire
}

/// I1: what is exclusive does not overlap, and no capacity is exceeded.
fn check_overlaps(fleet: &ChaosFleet, wire: &[WireUse]) -> Result<(), String> {
    let inventory = &fleet.inventory;
    let uses = |one: &WireUse| {
        let mesh = one.schedule.split('.').next().and_then(|name| inventory.mesh(name).ok());
        let shared = mesh.map_or_else(|| fleet.added.get(&one.schedule).copied(), |mesh| Some(mesh.shared));
        inventory.uses(&one.from, &one.to, shared.unwrap_or(false)).unwrap()
    };
    for one in wire {
        let together = wire.iter().filter(|other| {
            // A copy of an agent does what it does, and its peer would refuse one of them.
            other.run != one.run && other.begins_ms < one.ends_ms && one.begins_ms < other.ends_ms
        });
        let together: Vec<&WireUse> = together.collect();
        for needed in uses(one) {
            let is_used = |other: &&&WireUse| uses(other).iter().any(|used| used.resource == needed.resource);
            let others: Vec<&&WireUse> = together.iter().filter(is_used).collect();
            if needed.exclusive && !others.is_empty() {
                return Err(format!("I1: {} is used by {one:?}\nand {:?}", needed.resource, others[0]));
            }
            let at_start = others
                .iter()
                .filter(|other| other.begins_ms <= one.begins_ms && one.begins_ms < other.ends_ms);
            if at_start.count() as u32 + 1 > needed.capacity {
                return Err(format!("I1: the capacity of {} is exceeded by {one:?}", needed.resource));
            }
        }
    }
    Ok(())
}

/// I4: nothing begins outside its window. I5: nothing is on the wire after its time.
fn check_windows(wire: &[WireUse], runs: &[CalendarRun]) -> Result<(), String> {
    for one in wire {
        let Some(run) = runs.iter().find(|run| run.id == one.run) else { continue };
        let first = run.starts.as_ms() - MAX_SKEW_MS;
        let last = run.starts.after(run.set_up).as_ms() + MAX_SKEW_MS + SLACK_MS;
        if one.begins_ms < first || one.begins_ms > last {
            let late = one.begins_ms - run.starts.as_ms();
            return Err(format!("I4: {one:?} begins {late} ms after its time"));
        }
        let over = one.ends_ms - run.ends.as_ms();
        if over > MAX_SKEW_MS + SLACK_MS {
            return Err(format!("I5: {one:?} is on the wire {over} ms after its end"));
        }
    }
    Ok(())
}

/// I2: every run has ended, with a reason unless it finished, and what finished was on the wire once.
fn check_ends(fleet: &ChaosFleet, wire: &[WireUse], runs: &[CalendarRun]) -> Result<(), String> {
    let mut begun: BTreeMap<&str, u32> = BTreeMap::new();
    for one in wire {
        *begun.entry(&one.run).or_default() += 1;
    }
    for run in runs {
        if !run.state.is_end() {
            return Err(format!("I2: {run:?} is still {}", run.state.name()));
        }
        if run.reason.is_empty() != (run.state == CalendarRunState::Finished) {
            return Err(format!("I2: {run:?} is {} without a reason", run.state.name()));
        }
        let times = begun.get(run.id.as_str()).copied().unwrap_or(0);
        if run.state == CalendarRunState::Finished && times == 0 {
            return Err(format!("{run:?} has a result and was never on the wire"));
        }
        let may_repeat = fleet.losses > 0 || fleet.copied.contains(&run.from);
        if times > 1 && !may_repeat {
            return Err(format!("{run:?} was on the wire {times} times"));
        }
    }
    Ok(())
}

/// I3: what an agent was told to be stored is in the archive, and nothing waits to be stored any more.
fn check_results(fleet: &ChaosFleet) -> Result<(), String> {
    let url = fleet.postgres.as_ref().unwrap().url();
    let archive = archive_at(Some(&url)).map_err(|error| error.to_string())?;
    for agent in fleet.agents.iter().filter(|agent| !agent.is_copy) {
        if let Some(run) = files(&agent.folder, "result-").first() {
            return Err(format!("the result of {run} of {} is never stored", agent.host));
        }
        // After a loss, a copy may say for both that it has sent everything, and is gone with what it had.
        if fleet.losses > 0 && fleet.copied.contains(&agent.host) {
            continue;
        }
        for run in files(&agent.folder, "kept-") {
            let content = fs::read(agent.folder.join(format!("kept-{run}"))).unwrap();
            let document: ResultDocument = serde_json::from_slice(&content).unwrap();
            if !document.log.as_str().is_empty() && !has(&archive, &run).map_err(|error| error.to_string())? {
                return Err(format!("I3: the result of {run} of {} is gone", agent.host));
            }
        }
    }
    Ok(())
}

fn has(archive: &Archive, run: &str) -> Result<bool, FleetError> {
    Ok(archive.contains(run)?)
}
