//! What users do with agents and are told about them: why nothing is measured, and how an agent is removed.

use std::path::Path;

use linerate_archive::{Archive, Calendar, RunFilter};
use linerate_fleet::{CancelTarget, FleetAction, FleetCalendar, FleetKey, PairRequest};
use linerate_model::calendar::{CalendarRunState, ScheduleObstacle, UnixTime, WhyAnswer};
use linerate_units::Span;
use serde_json::Value;

use crate::played_fleet::{PlayedFleet, at, coordinator, inventory, text};

/// Why the schedule a-b does not measure at a time.
fn why(fleet: &mut PlayedFleet, seconds: i64) -> WhyAnswer {
    fleet.users.why("a-b", at(seconds), at(seconds)).unwrap()
}

/// What an agent or what it may have keeps the schedule a-b from.
fn by_agents(fleet: &mut PlayedFleet, seconds: i64) -> Vec<ScheduleObstacle> {
    let obstacles = why(fleet, seconds).obstacles;
    let general = |one: &ScheduleObstacle| {
        matches!(one, ScheduleObstacle::NotDue(_) | ScheduleObstacle::NoCoordinator(_))
    };
    obstacles.into_iter().filter(|one| !general(one)).collect()
}

/// When a test between two hosts could be made at the earliest.
fn earliest_of(fleet: &mut PlayedFleet, (from, to): (&str, &str), seconds: i64) -> UnixTime {
    let mut pair = PairRequest { from: from.to_owned(), to: to.to_owned(), ..PairRequest::default() };
    pair.spec.traffic.duration = Some(Span::from_secs(10));
    pair.spec.traffic.no_latency = true;
    fleet.users.next_free(&pair, 1, at(seconds)).unwrap()[0].starts
}

fn earliest(fleet: &mut PlayedFleet, seconds: i64) -> UnixTime {
    earliest_of(fleet, ("c", "d"), seconds)
}

/// A fleet whose agent a is heard at 0, with a schedule from it that is due once at `seconds`.
fn with_schedule(seconds: i64) -> PlayedFleet {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), seconds, |_| ());
    fleet
}

/// The same, and the agent has its run in a calendar.
fn with_handed_run(seconds: i64) -> PlayedFleet {
    let mut fleet = with_schedule(seconds);
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    fleet
}

#[test]
fn why_names_an_agent_that_takes_no_runs() {
    let mut fleet = with_schedule(1000);
    assert_eq!(by_agents(&mut fleet, 10), []);
    let words = |fleet: &mut PlayedFleet, seconds| match &by_agents(fleet, seconds)[..] {
        [ScheduleObstacle::Agent(why)] => why.to_string(),
        other => panic!("{other:?}"),
    };
    // It may be away for as long as calendars are made ahead.
    assert_eq!(by_agents(&mut fleet, 3600), []);
    assert!(words(&mut fleet, 3601).contains("a was not heard since 2027-01-15T08:00:00Z"));
    fleet.users.revoke("a", at(20)).unwrap();
    assert!(words(&mut fleet, 21).contains("a was revoked"));
}

#[test]
fn why_and_next_free_know_that_nothing_is_booked_after_a_loss() {
    let mut fleet = with_schedule(1000);
    assert_eq!(earliest(&mut fleet, 5), at(5));
    // What acquire_lease does when PostgreSQL shows another timeline.
    Calendar::open(&fleet.path).unwrap().write(|calendar| calendar.note_loss(at(10))).unwrap();
    let until = at(10 + 24 * 3600);
    assert_eq!(by_agents(&mut fleet, 11), [ScheduleObstacle::AfterLoss(until)]);
    assert_eq!(why(&mut fleet, 11).next_free, Some(until));
    assert_eq!(earliest(&mut fleet, 11), until);
    // As soon as the agent has confirmed another calendar, only what may still be on the wire is waited for.
    let actions = [fleet.tick(12), fleet.tick(13)].concat();
    fleet.confirm(&actions, "a", 14);
    let left = by_agents(&mut fleet, 15);
    assert!(left.iter().all(|one| matches!(one, ScheduleObstacle::Unsettled(_))), "{left:?}");
    assert!(earliest(&mut fleet, 15) < at(600));
}

#[test]
fn after_a_loss_nothing_new_is_measured_until_every_agent_has_another_calendar() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["b"]);
    fleet.report("b", &Value::Null, 0).unwrap();
    // These are a coordinator's, the last one until its host has an agent.
    fleet.add("c-d", ("c", "d"), 100, |one| one.slip = None);
    fleet.add("d-c", ("d", "c"), 500, |_| ());
    fleet.add("a-d", ("a", "d"), 2000, |_| ());
    let actions = [fleet.tick(1), fleet.tick(2), fleet.tick(3)].concat();
    fleet.confirm(&actions, "b", 4);
    assert_eq!(fleet.runs().len(), 3);
    let key = FleetKey::from_bytes([30; 32]).unwrap();
    fleet.users.enroll("a", key.public().as_str(), at(5)).unwrap();
    fleet.keys.insert("a".to_owned(), key);
    Calendar::open(&fleet.path).unwrap().write(|calendar| calendar.note_loss(at(6))).unwrap();
    fleet.report("a", &Value::Null, 7).unwrap();
    let runs_of_a = |actions: &[FleetAction]| {
        PlayedFleet::calendar_of(actions, "a").map(|one| one["runs"].as_array().unwrap().len())
    };
    let starts = |actions: &[FleetAction]| actions.iter().any(|one| matches!(one, FleetAction::Start(_)));
    let after_loss = [fleet.tick(8), fleet.tick(9)].concat();
    assert_eq!(runs_of_a(&after_loss), Some(0));
    assert!(!starts(&[fleet.tick(100), fleet.tick(101), fleet.tick(104)].concat()));
    let missed = fleet.runs().into_iter().find(|run| run.schedule == "c-d").unwrap();
    assert_eq!(
        (missed.state, missed.reason.as_str()),
        (CalendarRunState::Missed, "the database lost what was written last")
    );
    fleet.confirm(&after_loss, "a", 105);
    assert_eq!(runs_of_a(&[fleet.tick(106), fleet.tick(107)].concat()), None, "b may have anything");
    fleet.confirm(&after_loss, "b", 108);
    assert_eq!(runs_of_a(&[fleet.tick(109), fleet.tick(110)].concat()), Some(1));
    assert!(starts(&[fleet.tick(500), fleet.tick(501)].concat()));
}

#[test]
fn a_database_that_goes_back_is_noticed_by_whoever_saw_it_later() {
    let is_lost = |fleet: &mut PlayedFleet, seconds| {
        by_agents(fleet, seconds).iter().any(|one| matches!(one, ScheduleObstacle::AfterLoss(_)))
    };
    let earlier = |fleet: &PlayedFleet, name: &str| {
        let copy = format!("{}.{name}", fleet.path);
        Archive::open(Path::new(&fleet.path)).unwrap().backup(Path::new(&copy)).unwrap();
        copy
    };
    let mut fleet = with_handed_run(1000);
    let copies = ["one", "two", "three"].map(|name| earlier(&fleet, name));
    // A clock that is set back is no loss.
    for seconds in [30, 40, 20, 25, 50] {
        fleet.tick(seconds);
    }
    assert!(!is_lost(&mut fleet, 51));
    // The leader finds its lease as it was.
    let take_over = |fleet: &mut PlayedFleet, copy: &String| {
        *fleet.one.calendar() = Calendar::open(copy).unwrap();
        fleet.users = FleetCalendar::open(Some(copy)).unwrap();
    };
    take_over(&mut fleet, &copies[0]);
    fleet.tick(54);
    assert!(is_lost(&mut fleet, 55));
    // Another one, which only waited, finds an earlier epoch. The end of a lease of somebody else tells it nothing.
    let mut two = coordinator(&copies[1], "two", &text("1h", ""), Some(fleet.centre));
    two.tick(at(20), &mut Vec::new()).unwrap();
    two.tick(at(21), &mut Vec::new()).unwrap();
    *two.calendar() = Calendar::open(&copies[2]).unwrap();
    fleet.users = FleetCalendar::open(Some(&copies[2])).unwrap();
    assert!(!is_lost(&mut fleet, 22));
    two.tick(at(24), &mut Vec::new()).unwrap();
    assert!(is_lost(&mut fleet, 25));
}

#[test]
fn why_and_next_free_know_what_waits_for_an_earlier_description() {
    let mut fleet = with_handed_run(1000);
    let run = fleet.runs()[0].clone();
    // The agent is away from now on, and will carry out its run. a and c share a link, as the new description says.
    let link = "[link.x]\nhosts = [\"a\", \"c\"]\n";
    fleet.one.describe(inventory(&text("1h", link)), at(10)).unwrap();
    fleet.tick(11);
    let found = by_agents(&mut fleet, 12);
    assert!(found.contains(&ScheduleObstacle::AfterChange(run.ends)), "{found:?}");
    assert!(earliest(&mut fleet, 12) >= run.ends);
}

#[test]
fn what_is_held_for_a_run_that_has_ended_is_said_to_be() {
    let mut fleet = with_handed_run(1000);
    let run = fleet.runs()[0].clone();
    fleet.add("b-c", ("b", "c"), 2000, |_| ());
    fleet.users.cancel(&CancelTarget::Run(run.id.clone()), at(10)).unwrap();
    let answer = fleet.users.why("b-c", run.starts, at(11)).unwrap();
    let held = answer.obstacles.iter().find_map(|one| match one {
        ScheduleObstacle::Busy(held) if held.run == run.id => Some(held.state),
        _ => None,
    });
    assert_eq!(held, Some(CalendarRunState::Cancelled), "{:?}", answer.obstacles);
}

#[test]
fn an_agent_is_removed_once_it_is_revoked_and_has_nothing_in_hand() {
    let mut fleet = with_handed_run(1000);
    let refused = |fleet: &mut PlayedFleet, seconds| {
        fleet.users.remove_agent("a", at(seconds)).unwrap_err().to_string()
    };
    assert!(refused(&mut fleet, 10).contains("linerate agent revoke a"));
    fleet.users.revoke("a", at(10)).unwrap();
    // Its calendar was made for an hour at 1 s.
    let agent = fleet.users.agents().unwrap().remove(0);
    assert_eq!(agent.lease_until, at(3601));
    assert!(refused(&mut fleet, 3600).contains("in force until 2027-01-15T09:00:01Z"));
    let is_held = |fleet: &mut PlayedFleet| {
        let ended = RunFilter { states: vec![CalendarRunState::Cancelled], ..RunFilter::default() };
        assert_eq!(fleet.users.runs(&ended).unwrap().len(), 1);
        earliest_of(fleet, ("a", "d"), 995) > at(1000)
    };
    assert!(is_held(&mut fleet), "a removal that was refused changes nothing");
    fleet.users.remove_agent("a", at(3601)).unwrap();
    assert_eq!(fleet.users.agents().unwrap(), []);
    let gone = refused(&mut fleet, 3602);
    assert!(gone.contains("a has no agent"), "{gone}");
    // Its host is then measured by the coordinator.
    fleet.add("a-b-again", ("a", "b"), 4000, |_| ());
    let starts = (3603..4010).flat_map(|second| fleet.tick(second)).find_map(|action| match action {
        FleetAction::Start(run) => Some(run.schedule),
        _ => None,
    });
    assert_eq!(starts.as_deref(), Some("a-b-again"));
}

#[test]
fn a_host_that_is_enrolled_anew_is_measured_from_soon() {
    for first_ends in ["replaced", "revoked"] {
        let mut fleet = PlayedFleet::new(&text("6h", ""), &["a"]);
        fleet.report("a", &Value::Null, 0).unwrap();
        fleet.add("a-b", ("a", "b"), 0, |one| {
            one.at = None;
            one.every = Some(Span::from_secs(600));
        });
        let actions = [fleet.tick(1), fleet.tick(2)].concat();
        fleet.confirm(&actions, "a", 3);
        if first_ends == "revoked" {
            fleet.users.revoke("a", at(10)).unwrap();
        }
        let key = FleetKey::from_bytes([77; 32]).unwrap();
        fleet.users.enroll("a", key.public().as_str(), at(20)).unwrap();
        fleet.keys.insert("a".into(), key);
        fleet.report("a", &Value::Null, 21).unwrap();
        fleet.tick(22);
        fleet.tick(23);
        let booked = RunFilter { states: vec![CalendarRunState::Booked], ..RunFilter::default() };
        let first = fleet.users.runs(&booked).unwrap().into_iter().map(|run| run.starts).min();
        // The times that the first process may still use stay reserved, and others are found.
        assert!(first.is_some_and(|first| first < at(1200)), "{first_ends}: {first:?}");
    }
}

#[test]
fn the_last_run_is_none_that_was_to_come() {
    let mut fleet = with_handed_run(1000);
    fleet.users.cancel(&CancelTarget::All, at(10)).unwrap();
    assert_eq!(why(&mut fleet, 20).last, None);
    let last = why(&mut fleet, 1001).last.unwrap();
    assert_eq!(last.state, CalendarRunState::Cancelled);
}
