//! What a coordinator decides, in virtual time with a calendar of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{
    CancelRequest, CancelTarget, FleetAction, FleetCalendar, FleetCoordinator, FleetError, LEASE,
    PairRequest, RunEnd, ScheduleCommand, ScheduleRequest, fleet_file,
};
use linerate_model::calendar::{AlarmKind, CalendarRun, CalendarRunState, CellResult, UnixTime};
use linerate_model::{Sweep, TestSpec};
use linerate_units::{Bitrate, Span};

const START: UnixTime = UnixTime::from_ms(1_800_000_000_000);

pub(crate) fn at(seconds: u64) -> UnixTime {
    START.after(Span::from_secs(seconds))
}

/// Two sites of two hosts, with one uplink.
pub(crate) const CAMPUS: &str = "set_up = \"3s\"\nsettle = \"2s\"\n[host.a]\naddress = \"a\"\n[host.b]\naddress = \"b\"\n\
                      [host.c]\naddress = \"c\"\n[host.d]\naddress = \"d\"\n[link.uplink]\nhosts = [\"a\", \"b\"]\n";

/// That fleet, and a coordinator that has looked at the calendar once.
pub(crate) struct Campus {
    _folder: tempfile::TempDir,
    path: String,
    pub(crate) coordinator: FleetCoordinator,
    pub(crate) users: FleetCalendar,
    /// Whether coordinators can name no runs.
    nameless: Arc<AtomicBool>,
}

impl Campus {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calendar.sqlite").display().to_string();
        let nameless = Arc::new(AtomicBool::new(false));
        let mut coordinator = coordinator(&path, "one", CAMPUS, &nameless);
        assert_eq!(tick(&mut coordinator, 0), []);
        let users = FleetCalendar::open(Some(&path)).unwrap();
        Self { _folder: folder, path, coordinator, users, nameless }
    }

    /// Another coordinator of the same calendar.
    fn another(&self, text: &str) -> FleetCoordinator {
        coordinator(&self.path, "two", text, &self.nameless)
    }

    pub(crate) fn tick(&mut self, seconds: u64) -> Vec<FleetAction> {
        tick(&mut self.coordinator, seconds)
    }

    /// The runs that start then.
    fn started(&mut self, seconds: u64) -> Vec<CalendarRun> {
        let start = |action| match action {
            FleetAction::Start(run) => Some(*run),
            _ => None,
        };
        self.tick(seconds).into_iter().filter_map(start).collect()
    }

    /// A test of ten seconds, once at a time.
    pub(crate) fn add(
        &mut self,
        name: &str,
        pair: (&str, &str),
        seconds: u64,
        change: impl FnOnce(&mut ScheduleRequest),
    ) {
        let mut request = ScheduleRequest {
            name: name.to_owned(),
            pair: PairRequest { from: pair.0.to_owned(), to: pair.1.to_owned(), ..PairRequest::default() },
            at: Some(linerate_fleet::rfc3339(at(seconds))),
            slip: Some(Span::from_secs(600)),
            ..ScheduleRequest::default()
        };
        request.pair.spec.traffic.duration = Some(Span::from_secs(10));
        request.pair.spec.traffic.no_latency = true;
        change(&mut request);
        self.users.add(&request, START).unwrap();
    }

    pub(crate) fn runs(&mut self, schedule: &str) -> Vec<CalendarRun> {
        let filter = RunFilter { schedule: Some(schedule.to_owned()), ..RunFilter::default() };
        let mut runs = self.users.runs(&filter).unwrap();
        runs.sort_by_key(|run| run.attempt);
        runs
    }

    /// The run ends; what is to be done then.
    fn end(&mut self, run: &CalendarRun, mbps: Option<f64>, seconds: u64) -> Vec<FleetAction> {
        let result =
            mbps.map(|mbps| CellResult { goodput: Bitrate::from_bps(mbps * 1e6), ..CellResult::default() });
        let state = if result.is_some() { CalendarRunState::Finished } else { CalendarRunState::Failed };
        let reason = if result.is_some() { String::new() } else { "refused".to_owned() };
        self.coordinator.ended(&run.id, &RunEnd { state, reason, result }, at(seconds)).unwrap();
        self.tick(seconds)
    }
}

fn coordinator(path: &str, holder: &str, text: &str, nameless: &Arc<AtomicBool>) -> FleetCoordinator {
    let file = fleet_file::Source { name: "campus.toml".to_owned(), text: text.to_owned() };
    let inventory = fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap();
    let (nameless, prefix, mut number) = (Arc::clone(nameless), holder.to_owned(), 0);
    let new_id = Box::new(move || {
        number += 1;
        if nameless.load(Ordering::Relaxed) {
            return Err(FleetError::NoRun("no random numbers".to_owned()));
        }
        Ok(format!("run-{prefix}-{number:03}"))
    });
    FleetCoordinator::new(Calendar::open(path).unwrap(), holder.to_owned(), inventory, new_id)
}

fn tick(coordinator: &mut FleetCoordinator, seconds: u64) -> Vec<FleetAction> {
    let mut actions = Vec::new();
    coordinator.tick(at(seconds), &mut actions).unwrap();
    actions
}

#[test]
fn two_tests_that_are_due_81_ms_apart_and_share_a_host_or_a_link_follow_each_other() {
    for second in [("a", "d"), ("b", "d")] {
        let mut campus = Campus::new();
        campus.add("first", ("a", "c"), 60, |_| ());
        campus.add("second", second, 60, |request| {
            request.at = Some("2027-01-15T08:01:00.081Z".to_owned());
        });
        campus.tick(1);
        let (first, second) = (campus.runs("first").remove(0), campus.runs("second").remove(0));
        assert_eq!(first.due, at(60));
        assert_eq!(second.due.as_ms() - first.due.as_ms(), 81);
        assert!(second.starts >= first.ends, "{first:?} {second:?}");
    }
    // Without anything in common they run at the same time.
    let mut campus = Campus::new();
    campus.add("first", ("a", "b"), 60, |_| ());
    campus.add("second", ("c", "d"), 60, |_| ());
    assert_eq!(campus.started(1), []);
    assert_eq!(campus.started(60).len(), 2);
}

#[test]
fn a_sweep_is_booked_without_delays_of_small_messages_and_without_probes() {
    let mut campus = Campus::new();
    campus.add("sweep", ("a", "c"), 60, |request| {
        request.pair.spec = TestSpec { sweep: Some(Sweep::default()), ..TestSpec::default() };
    });
    campus.tick(1);
    let spec = campus.runs("sweep").remove(0).spec;
    assert!(spec.socket.no_delay && spec.traffic.no_latency, "{spec:?}");
}

#[test]
fn a_preempted_run_says_by_whom_and_is_booked_again_in_its_window() {
    let mut campus = Campus::new();
    campus.add("low", ("a", "c"), 60, |_| ());
    campus.tick(1);
    campus.add("high", ("a", "d"), 62, |request| (request.priority, request.slip) = (5, Some(Span::ZERO)));
    campus.tick(2);
    let (low, high) = (campus.runs("low"), campus.runs("high").remove(0));
    assert_eq!((high.state, high.starts), (CalendarRunState::Booked, at(62)));
    assert_eq!(low[0].state, CalendarRunState::Preempted);
    assert!(
        low[0].reason.contains(&high.id) && low[0].reason.contains("'high' with priority 5"),
        "{}",
        low[0].reason
    );
    assert_eq!((low[1].state, low[1].attempt), (CalendarRunState::Booked, 1));
    assert!(low[1].starts >= high.ends);
    // What has begun is not preempted.
    assert_eq!(campus.started(62).len(), 1);
    campus.add("late", ("a", "d"), 63, |request| (request.priority, request.slip) = (9, Some(Span::ZERO)));
    campus.tick(63);
    let late = campus.runs("late").remove(0);
    assert_eq!(late.state, CalendarRunState::NotBooked);
    assert!(late.reason.contains(&format!("is in use by run {} of 'high'", high.id)), "{}", late.reason);
}

#[test]
fn times_without_a_coordinator_are_one_missed_run_and_a_window_that_is_open_is_used() {
    let mut campus = Campus::new();
    campus.add("often", ("a", "c"), 60, |request| {
        (request.at, request.every, request.slip) =
            (None, Some(Span::from_secs(60)), Some(Span::from_secs(30)));
    });
    campus.add("once", ("b", "d"), 3000, |request| request.slip = Some(Span::from_secs(3 * 3600)));
    campus.tick(1);
    // Nobody looks at the calendar for three hours.
    campus.tick(3 * 3600);
    let runs = campus.runs("often");
    let missed = runs.iter().filter(|run| run.state == CalendarRunState::Missed).count();
    // An hour of them was booked, and the rest is one.
    assert_eq!(missed, 60 + 1);
    assert!(runs.iter().any(|run| run.reason.contains("no coordinator was there from then until")));
    let once = campus.runs("once");
    assert_eq!(once[0].state, CalendarRunState::Missed);
    assert_eq!((once[1].state, once[1].attempt), (CalendarRunState::Running, 1));
}

#[test]
fn a_cancelled_run_keeps_its_time_until_it_has_stopped() {
    let mut campus = Campus::new();
    campus.add("first", ("a", "c"), 60, |_| ());
    campus.tick(1);
    let first = campus.started(60).remove(0);
    assert_eq!(campus.users.cancel(&CancelTarget::Run(first.id.clone()), at(62)).unwrap(), 1);
    let stop = campus.tick(63);
    assert!(matches!(&stop[..], [FleetAction::Stop { run, .. }] if *run == first.id), "{stop:?}");
    // Its packets may still be on the wire.
    campus.add("second", ("a", "d"), 63, |request| request.slip = Some(Span::ZERO));
    campus.tick(63);
    assert_eq!(campus.runs("second")[0].state, CalendarRunState::NotBooked);
    let end =
        RunEnd { state: CalendarRunState::Cancelled, reason: "a user cancelled it".to_owned(), result: None };
    campus.coordinator.ended(&first.id, &end, at(64)).unwrap();
    campus.add("third", ("a", "d"), 64, |request| request.slip = Some(Span::from_secs(1)));
    campus.tick(64);
    assert_eq!(campus.runs("third")[0].state, CalendarRunState::Booked);
    assert_eq!(campus.runs("first")[0].state, CalendarRunState::Cancelled);
}

#[test]
fn an_alarm_needs_a_second_test_and_ends_with_a_good_one() {
    let mut campus = Campus::new();
    campus.add("watched", ("a", "c"), 60, |request| {
        (request.at, request.every) = (None, Some(Span::from_secs(600)));
        request.alarm.alarm_below = Bitrate::from_bps(900e6);
    });
    campus.tick(1);
    let first_due = campus.runs("watched")[0].starts;
    let seconds = |time: UnixTime| time.since(START).as_ns() / 1_000_000_000;
    // An outlier: the second test is good, so nobody is told.
    let begin = seconds(first_due);
    let first = campus.started(begin).remove(0);
    assert_eq!(campus.end(&first, Some(100.0), begin + 12), []);
    let second = campus.started(begin + 14).remove(0);
    assert_eq!(second.confirms.as_ref(), Some(&first.id));
    assert_eq!(campus.end(&second, Some(940.0), begin + 27), []);
    // Twice in a row.
    let third = campus.started(begin + 600).remove(0);
    assert_eq!(campus.end(&third, Some(100.0), begin + 612), []);
    let fourth = campus.started(begin + 614).remove(0);
    let raised = campus.end(&fourth, Some(110.0), begin + 627);
    let [FleetAction::Notify(alarm)] = &raised[..] else { panic!("{raised:?}") };
    assert_eq!(
        (alarm.kind, &alarm.first_run, &alarm.second_run),
        (AlarmKind::Goodput, &third.id, &fourth.id)
    );
    assert!(alarm.text.contains("110.0 Mb/s") && alarm.cleared.is_none(), "{alarm:?}");
    // It stays one alarm, and makes no more second tests.
    let fifth = campus.started(begin + 1200).remove(0);
    assert_eq!(campus.end(&fifth, Some(100.0), begin + 1212), []);
    assert_eq!(campus.started(begin + 1230), []);
    let sixth = campus.started(begin + 1800).remove(0);
    let cleared = campus.end(&sixth, Some(930.0), begin + 1812);
    assert!(matches!(&cleared[..], [FleetAction::Notify(alarm)] if alarm.cleared.is_some()), "{cleared:?}");
    assert_eq!(campus.users.alarms(true).unwrap(), []);
    assert_eq!(campus.users.alarms(false).unwrap().len(), 1);
}

#[test]
fn a_result_of_a_coordinator_that_no_longer_leads_is_judged_by_the_one_that_does() {
    let mut campus = Campus::new();
    campus.add("watched", ("a", "c"), 60, |request| {
        request.alarm.alarm_below = Bitrate::from_bps(900e6);
    });
    campus.tick(1);
    let first = campus.started(60).remove(0);
    // The first coordinator is stopped until its lease is over, and another one leads.
    let mut other = campus.another(CAMPUS);
    let taken = 61 + LEASE.as_ns() / 1_000_000_000;
    assert_eq!(tick(&mut other, taken), []);
    assert!(other.leads());
    assert_eq!(campus.end(&first, Some(100.0), taken + 2), []);
    assert!(!campus.coordinator.leads());
    assert_eq!(campus.runs("watched").len(), 1);
    assert_eq!(tick(&mut other, taken + 3), []);
    let second = campus.runs("watched").into_iter().find(|run| run.confirms.is_some()).unwrap();
    assert_eq!((second.confirms, second.state), (Some(first.id), CalendarRunState::Booked));
}

#[test]
fn a_coordinator_that_waits_leaves_the_description_of_the_fleet_alone_until_it_leads() {
    let mut campus = Campus::new();
    let larger = format!("{CAMPUS}[host.e]\naddress = \"e\"\n[mesh.m]\nevery = \"1h\"\n");
    let mut other = campus.another(&larger);
    assert_eq!(tick(&mut other, 1), []);
    assert_eq!(campus.users.inventory().unwrap().hosts.len(), 4);
    assert_eq!(campus.users.schedules().unwrap(), []);
    campus.coordinator.stop(at(2)).unwrap();
    assert_eq!(tick(&mut other, 3), [FleetAction::Described]);
    assert_eq!(campus.users.inventory().unwrap().hosts.len(), 5);
    assert_eq!(campus.users.schedules().unwrap().len(), 5 * 4);
    // The same description once more changes nothing.
    let again = other.inventory().clone();
    other.describe(again, at(4)).unwrap();
    assert_eq!(tick(&mut other, 4), []);
}

#[test]
fn what_has_begun_is_carried_out_although_the_rest_of_the_look_at_the_calendar_fails() {
    let mut campus = Campus::new();
    campus.add("first", ("a", "c"), 60, |_| ());
    campus.tick(1);
    campus.add("second", ("b", "d"), 70, |_| ());
    campus.nameless.store(true, Ordering::Relaxed);
    let mut actions = Vec::new();
    campus.coordinator.tick(at(60), &mut actions).unwrap_err();
    let first = campus.runs("first").remove(0);
    assert_eq!(first.state, CalendarRunState::Running);
    assert!(matches!(&actions[..], [FleetAction::Start(run)] if run.id == first.id), "{actions:?}");
}

/// The fleet of a text.
pub(crate) fn described(campus: &mut Campus, text: &str, seconds: u64) {
    let file = fleet_file::Source { name: "campus.toml".to_owned(), text: text.to_owned() };
    let inventory = fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap();
    campus.coordinator.describe(inventory, at(seconds)).unwrap();
    assert_eq!(campus.tick(seconds), [FleetAction::Described]);
}

#[test]
fn a_new_link_holds_for_what_is_booked_already_and_waits_for_what_is_active() {
    let mut campus = Campus::new();
    for (name, pair) in [("first", ("a", "b")), ("second", ("c", "d"))] {
        campus.add(name, pair, 60, |request| {
            (request.at, request.every) = (None, Some(Span::from_secs(60)));
        });
    }
    campus.tick(1);
    let begun = campus.started(70);
    assert_eq!(begun.len(), 2, "both pairs measure at the same time");
    described(&mut campus, &format!("{CAMPUS}[link.core]\npairs = [[\"a\", \"b\"], [\"c\", \"d\"]]\n"), 71);
    let mut coming: Vec<CalendarRun> = campus.runs("first");
    coming.extend(campus.runs("second"));
    coming.retain(|run| run.state == CalendarRunState::Booked);
    coming.sort_by_key(|run| run.starts);
    assert!(coming.len() > 20, "{}", coming.len());
    assert!(coming[0].starts >= begun[0].ends);
    for two in coming.windows(2) {
        assert!(two[1].starts >= two[0].ends, "{two:?}");
    }
}

#[test]
fn a_host_that_is_missing_for_a_while_is_measured_again() {
    let mut campus = Campus::new();
    campus.add("often", ("a", "c"), 60, |request| {
        (request.at, request.every) = (None, Some(Span::from_secs(600)));
    });
    campus.tick(1);
    let without = CAMPUS.replace("[host.c]\naddress = \"c\"\n", "");
    described(&mut campus, &without, 10);
    campus.tick(11);
    assert!(!campus.runs("often").iter().any(|run| run.state == CalendarRunState::Booked));
    described(&mut campus, CAMPUS, 20);
    campus.tick(21);
    let booked = |run: &&CalendarRun| run.state == CalendarRunState::Booked;
    assert_eq!(campus.runs("often").iter().filter(booked).count(), 6);
}

#[test]
fn a_coordinator_whose_clock_was_ahead_leaves_nothing_that_waits_for_its_time() {
    const AHEAD: u64 = 40 * 24 * 3600;
    let mut campus = Campus::new();
    campus.add("often", ("a", "c"), 60, |request| {
        (request.at, request.every) = (None, Some(Span::from_secs(600)));
    });
    campus.tick(1);
    campus.coordinator.stop(at(2)).unwrap();
    let mut ahead = campus.another(CAMPUS);
    tick(&mut ahead, AHEAD);
    tick(&mut ahead, AHEAD + 1);
    assert!(ahead.leads());
    drop(ahead);
    // It was killed: its lease ends in 40 days.
    campus.tick(10);
    assert!(campus.coordinator.leads());
    campus.tick(11);
    let booked = |run: &CalendarRun| run.state == CalendarRunState::Booked;
    let mut coming = campus.runs("often");
    coming.retain(booked);
    assert_eq!(coming.len(), 6);
    assert!(coming.iter().all(|run| run.due < at(3700)), "{coming:?}");
}

#[test]
fn a_run_of_a_coordinator_that_is_gone_is_followed_by_a_second_test() {
    let mut campus = Campus::new();
    campus.add("watched", ("a", "c"), 60, |request| request.alarm.alarm_failure = true);
    campus.tick(1);
    let first = campus.started(60).remove(0);
    let mut other = campus.another(CAMPUS);
    tick(&mut other, 300);
    tick(&mut other, 301);
    let runs = campus.runs("watched");
    let lost = runs.iter().find(|run| run.id == first.id).unwrap();
    assert_eq!(lost.state, CalendarRunState::Failed);
    assert!(runs.iter().any(|run| run.confirms.as_ref() == Some(&first.id)), "{runs:?}");
}

#[test]
fn a_coordinator_that_no_longer_leads_stops_its_run_when_a_user_cancels_it() {
    let mut campus = Campus::new();
    campus.add("first", ("a", "c"), 60, |request| {
        request.pair.spec.traffic.duration = Some(Span::from_secs(300));
    });
    campus.tick(1);
    let first = campus.started(60).remove(0);
    let mut other = campus.another(CAMPUS);
    tick(&mut other, 80);
    assert!(other.leads());
    campus.users.cancel(&CancelTarget::Run(first.id.clone()), at(81)).unwrap();
    let stop = campus.tick(82);
    assert!(!campus.coordinator.leads());
    assert!(matches!(&stop[..], [FleetAction::Stop { run, .. }] if *run == first.id), "{stop:?}");
}

#[test]
fn a_schedule_whose_name_begins_like_a_run_is_cancelled_itself() {
    let mut campus = Campus::new();
    campus.add("other", ("b", "d"), 60, |_| ());
    campus.add("face", ("a", "c"), 60, |_| ());
    campus.tick(1);
    let cancel =
        |what: &str| ScheduleCommand::Cancel(CancelRequest { what: Some(what.to_owned()), all: false });
    cancel("face").execute(&mut campus.users, at(2)).unwrap();
    assert_eq!(campus.runs("face")[0].state, CalendarRunState::Cancelled);
    assert_eq!(campus.runs("other")[0].state, CalendarRunState::Booked);
    for nothing in ["fa", "nothing", ""] {
        let error = cancel(nothing).execute(&mut campus.users, at(3)).unwrap_err();
        assert!(matches!(error, FleetError::NoSchedule { .. }), "{error}");
    }
}

#[test]
fn a_coordinator_whose_clock_is_off_leaves_the_lead_to_another_one() {
    let mut campus = Campus::new();
    campus.add("first", ("a", "c"), 60, |_| ());
    campus.tick(1);
    let first = campus.started(60).remove(0);
    campus.coordinator.set_in_time(false, at(61)).unwrap();
    assert_eq!(campus.tick(61), []);
    assert!(!campus.coordinator.leads());
    let mut other = campus.another(CAMPUS);
    assert_eq!(tick(&mut other, 61), []);
    assert!(other.leads());
    // What it has started goes on, and its result counts.
    let good = CellResult { goodput: Bitrate::from_bps(1e9), ..CellResult::default() };
    let end = RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: Some(good) };
    campus.coordinator.ended(&first.id, &end, at(72)).unwrap();
    assert_eq!(campus.runs("first")[0].state, CalendarRunState::Finished);
    // Without a server, there is nothing to compare with.
    assert_eq!(campus.coordinator.check_clock(&|| at(73)).unwrap(), None);
    other.stop(at(74)).unwrap();
    campus.coordinator.set_in_time(true, at(75)).unwrap();
    campus.tick(75);
    assert!(campus.coordinator.leads());
}

#[test]
fn what_a_user_cancelled_stays_cancelled_when_another_coordinator_takes_over() {
    let mut campus = Campus::new();
    campus.add("once", ("a", "c"), 600, |_| ());
    campus.tick(1);
    campus.users.cancel(&CancelTarget::Schedule("once".to_owned()), at(2)).unwrap();
    campus.coordinator.stop(at(3)).unwrap();
    let mut other = campus.another(CAMPUS);
    tick(&mut other, 4);
    tick(&mut other, 5);
    let states: Vec<CalendarRunState> = campus.runs("once").iter().map(|run| run.state).collect();
    assert_eq!(states, [CalendarRunState::Cancelled]);
}

#[test]
fn resuming_what_is_not_paused_books_nothing_twice() {
    let mut campus = Campus::new();
    campus.add("once", ("a", "c"), 600, |_| ());
    campus.tick(1);
    campus.users.set_paused("once", false, at(2)).unwrap();
    campus.tick(3);
    assert_eq!(campus.runs("once").len(), 1);
    campus.users.set_paused("once", true, at(4)).unwrap();
    campus.users.set_paused("once", false, at(5)).unwrap();
    campus.tick(6);
    let states: Vec<CalendarRunState> = campus.runs("once").iter().map(|run| run.state).collect();
    assert_eq!(states, [CalendarRunState::Cancelled, CalendarRunState::Booked]);
}
