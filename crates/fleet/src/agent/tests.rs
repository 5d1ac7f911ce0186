//! An agent, message by message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use linerate_model::TestSpec;
use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_proto::fleet::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey,
    MessageOrigin, ResultDigest, ResultDocument, ResultPart, StoredResult, open, seal,
};
use linerate_units::Span;
use proptest::prelude::*;

use super::*;
use crate::coordinator::RunEnd;

const START_MS: i64 = 1_800_000_000_000;

/// Files in memory, which may take nothing more.
#[derive(Clone, Default)]
struct MemoryFolder(Arc<Mutex<Files>>);

/// The files, and whether nothing more can be written.
type Files = (BTreeMap<String, Vec<u8>>, bool);

impl AgentFolder for MemoryFolder {
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError> {
        let mut inner = self.0.lock().unwrap();
        if inner.1 {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(AgentFolderError { path: name.into(), source });
        }
        inner.0.insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.0.lock().unwrap().0.remove(name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let mut inner = self.0.lock().unwrap();
        if let Some(content) = inner.0.remove(from) {
            inner.0.insert(to.to_owned(), content);
        }
    }

    fn read_one(&mut self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().0.get(name).cloned()
    }

    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError> {
        let inner = self.0.lock().unwrap();
        Ok(inner.0.iter().map(|(name, content)| (name.clone(), content.len() as u64)).collect())
    }
}

fn centre() -> FleetKey {
    FleetKey::from_bytes([7; 32]).unwrap()
}

/// An agent, and how many seconds have passed since [`START_MS`].
struct TestSiteAgent {
    agent: CalendarAgent,
    folder: MemoryFolder,
    at: u64,
}

impl TestSiteAgent {
    fn new() -> Self {
        Self::with(MemoryFolder::default(), "first")
    }

    fn with(folder: MemoryFolder, session: &str) -> Self {
        let identity = AgentIdentity {
            name: "a".to_owned(),
            key: FleetKey::from_bytes([1; 32]).unwrap(),
            centre: centre().public(),
            program: "1.2.3".to_owned(),
            session: session.into(),
        };
        let agent = CalendarAgent::open(identity, Box::new(folder.clone()), 1).unwrap();
        Self { agent, folder, at: 0 }
    }

    fn reading(&self) -> ClockReading {
        ClockReading {
            running: Span::from_secs(1000 + self.at),
            wall: UnixTime::from_ms(0),
            wall_error: None,
        }
    }

    fn receive(&mut self, message: &CentreMessage) {
        let reading = self.reading();
        self.agent.receive(&seal(MessageOrigin::Centre, &centre(), message), &reading);
    }

    fn tick(&mut self) -> Vec<AgentAction> {
        let reading = self.reading();
        self.agent.tick(&reading)
    }

    /// What it says of itself, if it says something now.
    fn report_in(actions: &[AgentAction]) -> Option<AgentReport> {
        let key = FleetKey::from_bytes([1; 32]).unwrap().public();
        actions.iter().find_map(|action| match action {
            AgentAction::Send(bytes) => match open(MessageOrigin::Agent, &key, bytes) {
                Some(FleetAgentMessage::Report(report)) => Some(report),
                _ => None,
            },
            _ => None,
        })
    }

    /// The results that it sends now: runs and states.
    fn parts_in(actions: &[AgentAction]) -> impl Iterator<Item = ResultPart> {
        let key = FleetKey::from_bytes([1; 32]).unwrap().public();
        actions.iter().filter_map(move |action| match action {
            AgentAction::Send(bytes) => match open(MessageOrigin::Agent, &key, bytes) {
                Some(FleetAgentMessage::Result(part)) => Some(part),
                _ => None,
            },
            _ => None,
        })
    }

    fn results_in(actions: &[AgentAction]) -> Vec<(String, CalendarRunState, String)> {
        Self::parts_in(actions)
            .map(|part| {
                let document = ResultDocument::of(&part.content).unwrap();
                (part.run.into(), document.state, document.reason.to_string())
            })
            .collect()
    }

    /// Reports, and is answered at once.
    fn learn_the_time(&mut self) -> Vec<AgentAction> {
        let actions = self.tick();
        let report = Self::report_in(&actions).expect("no report");
        self.answer(&report, "");
        actions
    }

    fn answer(&mut self, report: &AgentReport, refused: &str) {
        self.receive(&CentreMessage::Answer(CentreAnswer {
            agent: "a".into(),
            session: report.session.clone(),
            nonce: report.nonce,
            epoch: 3,
            now: UnixTime::from_ms(START_MS + self.at as i64 * 1000),
            refused: refused.into(),
        }));
    }

    fn starts(actions: &[AgentAction]) -> Vec<&str> {
        let started = actions.iter().filter_map(|action| match action {
            AgentAction::Start { run, .. } => Some(run.id.as_str()),
            _ => None,
        });
        started.collect()
    }
}

/// A calendar of epoch 3 with these runs: name, and when they start, in seconds.
fn calendar(version: u64, runs: &[(&str, i64)]) -> AgentCalendar {
    let at = |secs: i64| UnixTime::from_ms(START_MS + secs * 1000);
    let run = |(id, starts): &(&str, i64)| AgentRun {
        id: (*id).into(),
        schedule: "s".into(),
        to: "b".into(),
        address: "b.example".into(),
        test_address: None,
        port: 1,
        spec: 0,
        starts: at(*starts),
        ends: at(starts + 20),
    };
    AgentCalendar {
        agent: "a".into(),
        epoch: 3,
        version,
        proof: "".into(),
        lost: false,
        until: at(1000),
        set_up: Span::from_secs(3),
        settle: Span::from_secs(2),
        specs: vec![TestSpec::default()],
        runs: runs.iter().map(run).collect(),
    }
}

fn finished() -> RunEnd {
    RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: None }
}

#[test]
fn a_run_starts_at_its_time_and_its_result_is_kept_until_it_is_stored() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10)])));
    site.at = 9;
    assert!(TestSiteAgent::starts(&site.tick()).is_empty());
    site.at = 11;
    let actions = site.tick();
    assert_eq!(TestSiteAgent::starts(&actions), ["r"]);
    let AgentAction::Start { start_by, .. } =
        actions.iter().find(|action| matches!(action, AgentAction::Start { .. })).unwrap()
    else {
        unreachable!()
    };
    assert_eq!(*start_by, Span::from_secs(1000 + 13), "3 s after its start");
    assert_eq!(TestSiteAgent::report_in(&actions).expect("a beginning is reported").begun.len(), 1);
    assert!(TestSiteAgent::starts(&site.tick()).is_empty(), "it begins once");
    site.at = 20;
    let reading = site.reading();
    site.agent.ended("r", finished(), "log".to_owned(), &reading);
    let done = vec![("r".to_owned(), CalendarRunState::Finished, String::new())];
    assert_eq!(TestSiteAgent::results_in(&site.tick()), done);
    assert!(TestSiteAgent::results_in(&site.tick()).is_empty());
    site.at = 31;
    let sent = site.tick();
    assert_eq!(TestSiteAgent::results_in(&sent), done, "it is sent again");
    let stored = |text: &str| {
        let digest = ResultDigest::of([text]);
        CentreMessage::Stored(StoredResult {
            agent: "a".into(),
            run: "r".into(),
            epoch: 3,
            part: None,
            digest,
        })
    };
    // What a copy of the agent has of this run is something else.
    site.receive(&stored("of another process"));
    assert_eq!(site.agent.waiting(), 1);
    site.receive(&stored(&TestSiteAgent::parts_in(&sent).next().unwrap().content));
    site.at = 100;
    assert!(TestSiteAgent::results_in(&site.tick()).is_empty());
    assert_eq!(site.agent.waiting(), 0);
    // The database lost something: everything of the last hours comes once more.
    site.receive(&CentreMessage::Calendar(AgentCalendar { lost: true, ..calendar(2, &[]) }));
    assert_eq!(TestSiteAgent::results_in(&site.tick()), done);
}

#[test]
fn only_a_newer_calendar_of_the_coordinators_counts() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(5, &[])));
    for refused in [
        calendar(5, &[("same", 10)]),
        calendar(4, &[("older", 10)]),
        AgentCalendar { epoch: 2, ..calendar(6, &[("deposed", 10)]) },
        AgentCalendar { agent: "b".into(), ..calendar(6, &[("foreign", 10)]) },
        AgentCalendar { specs: Vec::new(), ..calendar(6, &[("without", 10)]) },
        // Both would start, and only one of them could be stopped.
        calendar(6, &[("twice", 10), ("twice", 10)]),
    ] {
        site.receive(&CentreMessage::Calendar(refused));
        assert_eq!(site.agent.calendar().unwrap().version, 5);
    }
    let forged = seal(
        MessageOrigin::Centre,
        &FleetKey::from_bytes([1; 32]).unwrap(),
        &CentreMessage::Calendar(calendar(6, &[])),
    );
    let reading = site.reading();
    site.agent.receive(&forged, &reading);
    assert_eq!(site.agent.calendar().unwrap().version, 5);
    // Also after a restart.
    let mut again = TestSiteAgent::with(site.folder.clone(), "second");
    again.learn_the_time();
    again.receive(&CentreMessage::Calendar(calendar(4, &[])));
    assert_eq!(again.agent.calendar().unwrap().version, 5);
    again.receive(&CentreMessage::Calendar(AgentCalendar { epoch: 4, ..calendar(6, &[]) }));
    assert_eq!(again.agent.calendar().unwrap().version, 6);
}

#[test]
fn a_run_whose_time_has_passed_or_whose_clock_is_not_sure_is_missed_with_the_reason() {
    let reason = |site: &mut TestSiteAgent| TestSiteAgent::results_in(&site.tick()).pop().unwrap();
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("late", 10)])));
    site.at = 14;
    assert_eq!(reason(&mut site).2, "its agent was not there at its time");
    // 100 millionths in 6000 s are 0.6 s, more than a quarter of 2 s.
    let mut site = TestSiteAgent::new();
    let later =
        AgentCalendar { until: UnixTime::from_ms(START_MS + 9_000_000), ..calendar(1, &[("unsure", 6000)]) };
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(later));
    site.at = 6000;
    let (_, state, why) = reason(&mut site);
    assert!(state == CalendarRunState::Missed && why.starts_with("clock: it may be 60"), "{why}");
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(AgentCalendar {
        until: UnixTime::from_ms(START_MS + 9500),
        ..calendar(1, &[("over", 10)])
    }));
    site.at = 10;
    assert_eq!(reason(&mut site).2, "the calendar of its agent had ended");
    // One that ends before it begins has no time at all.
    let mut site = TestSiteAgent::new();
    let mut none = calendar(1, &[("none", 10)]);
    none.runs[0].ends = UnixTime::from_ms(START_MS + 10_000);
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(none));
    site.at = 10;
    assert_eq!(reason(&mut site).2, "its agent was not there at its time");
    // Without any answer, nothing is known of the time.
    let mut site = TestSiteAgent::new();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10)])));
    site.at = 10;
    assert!(TestSiteAgent::starts(&site.tick()).is_empty());
}

#[test]
fn a_run_is_stopped_when_its_calendar_ends_even_if_that_says_that_it_lasts_longer() {
    let mut site = TestSiteAgent::new();
    let ends = UnixTime::from_ms(START_MS + 15_000);
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(AgentCalendar { until: ends, ..calendar(1, &[("long", 10)]) }));
    site.at = 10;
    assert_eq!(TestSiteAgent::starts(&site.tick()), ["long"]);
    site.at = 15;
    let actions = site.tick();
    assert!(actions.contains(&AgentAction::Stop { run: "long".to_owned() }), "{actions:?}");
}

#[test]
fn what_is_taken_back_is_stopped_before_the_new_calendar_is_confirmed() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10)])));
    site.at = 10;
    assert_eq!(TestSiteAgent::starts(&site.tick()), ["r"]);
    site.tick();
    site.receive(&CentreMessage::Calendar(calendar(2, &[])));
    let actions = site.tick();
    assert!(actions.iter().any(|action| matches!(action, AgentAction::Stop { run, .. } if run == "r")));
    assert_eq!(TestSiteAgent::report_in(&actions), None);
    site.at = 60;
    assert_eq!(TestSiteAgent::report_in(&site.tick()), None, "it has not stopped yet");
    let reading = site.reading();
    site.agent.ended("r", finished(), String::new(), &reading);
    let actions = site.tick();
    let held = TestSiteAgent::report_in(&actions).unwrap().holds.unwrap();
    assert_eq!((held.epoch, held.version), (3, 2));
    assert_eq!(TestSiteAgent::results_in(&actions)[0].1, CalendarRunState::Cancelled);
}

#[test]
fn a_restarted_agent_begins_nothing_twice_and_says_what_was_broken_off() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10)])));
    site.at = 10;
    assert_eq!(TestSiteAgent::starts(&site.tick()), ["r"]);
    let mut again = TestSiteAgent::with(site.folder.clone(), "second");
    again.at = 11;
    let reading = again.reading();
    again.agent.note_broken_off(&reading);
    let actions = again.learn_the_time();
    let report = TestSiteAgent::report_in(&actions).unwrap();
    assert_eq!((report.session.as_str(), &report.previous[..]), ("second", &["first".into()][..]));
    assert_eq!(TestSiteAgent::results_in(&actions), [], "it is not known to be accepted");
    let actions = again.tick();
    let results = TestSiteAgent::results_in(&actions);
    assert_eq!((results[0].0.as_str(), results[0].1), ("r", CalendarRunState::Failed));
    assert!(TestSiteAgent::starts(&actions).is_empty());
}

#[test]
fn a_folder_that_takes_nothing_more_stops_what_it_cannot_note_and_is_reported() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10)])));
    site.folder.0.lock().unwrap().1 = true;
    site.at = 10;
    let actions = site.tick();
    assert!(TestSiteAgent::starts(&actions).is_empty());
    let results = TestSiteAgent::results_in(&actions);
    assert!(results[0].2.starts_with("the agent cannot note it"), "{results:?}");
    site.at = 50;
    assert!(!TestSiteAgent::report_in(&site.tick()).unwrap().full.is_empty());
    // A later calendar is not taken either: after a restart it would keep to the first one.
    site.receive(&CentreMessage::Calendar(calendar(2, &[])));
    assert_eq!(site.agent.calendar().unwrap().version, 1);
    site.folder.0.lock().unwrap().1 = false;
    site.receive(&CentreMessage::Calendar(calendar(3, &[])));
    assert_eq!(site.agent.calendar().unwrap().version, 3);
    assert!(TestSiteAgent::report_in(&site.tick()).unwrap().full.is_empty());
}

#[test]
fn an_agent_that_is_refused_stops_and_measures_nothing() {
    let mut site = TestSiteAgent::new();
    site.learn_the_time();
    site.receive(&CentreMessage::Calendar(calendar(1, &[("r", 10), ("s", 40)])));
    site.at = 10;
    let actions = site.tick();
    assert_eq!(TestSiteAgent::starts(&actions), ["r"]);
    let report = TestSiteAgent::report_in(&actions).expect("a beginning is reported");
    site.answer(&report, "it was revoked");
    let actions = site.tick();
    assert!(actions.iter().any(|action| matches!(action, AgentAction::Stop { .. })));
    assert!(actions.contains(&AgentAction::Refused("it was revoked".to_owned())));
    site.at = 40;
    assert!(TestSiteAgent::starts(&site.tick()).is_empty());
    site.receive(&CentreMessage::Calendar(calendar(2, &[("s", 40)])));
    assert_eq!(site.agent.calendar(), None, "it listens to nothing but answers");
}

proptest! {
    /// Coordinators of any version may say anything that they have signed.
    #[test]
    fn nothing_that_is_signed_does_harm(
        said in prop::collection::vec((any::<[i64; 5]>(), any::<[u64; 5]>(), "[a-z./]{0,8}", 0u8..3), 0..20),
    ) {
        let mut site = TestSiteAgent::new();
        site.learn_the_time();
        for (times, numbers, text, kind) in said {
            let [starts, ends, until, _, now] = times.map(UnixTime::from_ms);
            let message = match kind {
                0 => {
                    let mut one = calendar(numbers[0], &[(&text, 0)]);
                    (one.epoch, one.until) = (numbers[1], until);
                    (one.set_up, one.settle) = (Span::from_ns(numbers[2]), Span::from_ns(numbers[3]));
                    (one.runs[0].starts, one.runs[0].ends) = (starts, ends);
                    one.runs[0].spec = numbers[4] as usize;
                    CentreMessage::Calendar(one)
                }
                1 => CentreMessage::Answer(CentreAnswer {
                    agent: "a".into(),
                    session: "first".into(),
                    nonce: numbers[0] % 4,
                    epoch: numbers[1],
                    now,
                    refused: text.as_str().into(),
                }),
                _ => CentreMessage::Stored(StoredResult {
                    agent: "a".into(),
                    run: text.into(),
                    epoch: numbers[2],
                    part: Some(numbers[0] as u32).filter(|_| numbers[1] % 2 == 0),
                    digest: ResultDigest::of([]),
                }),
            };
            site.receive(&message);
            site.at += numbers[2] % 60;
            site.tick();
            let reading = site.reading();
            prop_assert!(site.agent.next_tick(&reading) <= Span::from_secs(5));
        }
        // Nothing is written outside of its folder, whatever names are said.
        let names: Vec<String> = site.folder.0.lock().unwrap().0.keys().cloned().collect();
        prop_assert!(names.iter().all(|name| !name.contains('/') && !name.contains("..")), "{:?}", names);
    }
}
