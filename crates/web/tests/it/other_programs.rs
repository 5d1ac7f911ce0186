//! An archive that other programs write too: schedules of a fleet, tests from the command line, imports.

use linerate_archive::EventStore;
use linerate_model::{Body, Event, Outcome, RunLabels, RunStart, TestSpec, World};
use linerate_units::Timestamp;

use crate::client::TestSite;

/// A run with a name that started at a time, as another program archives it.
fn log(run: &str, name: &str, started_at: &str, outcome: Option<Outcome>) -> Vec<Event> {
    let start = RunStart {
        schema: "linerate.event/2".into(),
        started_at: started_at.into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: "oslo".into(),
        spec: TestSpec::default(),
    };
    let mut bodies = vec![
        Body::RunStarted(Box::new(start)),
        Body::Labelled(RunLabels { name: Some(name.into()), ..RunLabels::default() }),
    ];
    bodies.extend(outcome.map(|outcome| Body::RunEnded { outcome, reason: None }));
    let event = |(seq, body)| Event { run: run.into(), host: 0, seq, at: Timestamp::START, body };
    (0..).zip(bodies).map(event).collect()
}

fn archive(site: &TestSite, events: &[Event]) {
    linerate_archive::open(&TestSite::archive_in(&site.folder)).unwrap().append(events).unwrap();
}

#[test]
fn all_runs_of_a_schedule_are_not_read_for_one_request() {
    let site = TestSite::open();
    let of = |number: usize| {
        log(&format!("{number:016x}"), "hourly", "2026-11-25T20:00:00Z", Some(Outcome::Completed))
    };
    archive(&site, &(0..201).flat_map(of).collect::<Vec<_>>());
    archive(&site, &log("aa", "once", "2026-11-25T20:00:00Z", Some(Outcome::Completed)));
    for query in ["before=hourly&after=once", "before=once&after=hourly"] {
        let problem = site.get(&format!("/api/v1/compare/view?{query}")).problem(422);
        assert_eq!(problem["limit"], 200, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("'hourly'"), "{problem}");
    }
    site.get("/api/v1/runs/hourly/view").problem(409);
    assert_eq!(site.get("/api/v1/runs/once/view").status, 200);
}

#[test]
fn a_run_that_another_program_may_still_measure_is_not_deleted() {
    let site = TestSite::open();
    let now = linerate_runner::now();
    archive(&site, &log("aa", "measured", &now, None));
    archive(&site, &log("bb", "ended", &now, Some(Outcome::Interrupted)));
    archive(&site, &log("cc", "killed", "2026-01-01T00:00:00Z", None));
    let delete = |id: &str| site.write("DELETE", &format!("/api/v1/runs/{id}"), "", "");
    let refused = delete("aa").problem(409);
    assert_eq!(refused["type"], "/problems/in-progress", "{refused}");
    assert_eq!(site.get("/api/v1/runs/aa").json()["state"], "unfinished");
    assert_eq!((delete("bb").status, delete("cc").status), (204, 204));
    delete("bb").problem(404);
}
