//! A coordinator whose agents are played by the test, message by message.

use std::collections::BTreeMap;

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::*;
use linerate_model::calendar::{CalendarRun, UnixTime};
use linerate_proto::fleet::{self as messages, MessageOrigin};
use linerate_units::Span;
use serde_json::{Value, json};

pub(crate) const START: UnixTime = UnixTime::from_ms(1_800_000_000_000);
pub(crate) fn at_ms(ms: i64) -> UnixTime {
    UnixTime::from_ms(START.as_ms() + ms)
}
pub(crate) fn at(seconds: i64) -> UnixTime {
    at_ms(seconds * 1000)
}

pub(crate) fn seal(who: &str, key: &FleetKey, message: &Value) -> Vec<u8> {
    let origin = if who == "agent" { MessageOrigin::Agent } else { MessageOrigin::Centre };
    messages::seal(origin, key, message)
}

/// What the coordinators write into a calendar of agent a.
pub(crate) fn proof(epoch: u64, version: u64) -> String {
    messages::proof(&FleetKey::from_bytes([7; 32]).unwrap(), "a", HeldCalendar { epoch, version }).into()
}

pub(crate) fn body(bytes: &[u8]) -> Value {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap();
    serde_json::from_slice(&bytes[end + 1..]).unwrap()
}

pub(crate) fn text(ahead: &str, links: &str) -> String {
    format!(
        "set_up = \"3s\"\nsettle = \"2s\"\nahead = \"{ahead}\"\n[host.a]\naddress = \"a\"\n[host.b]\naddress = \"b\"\n[host.c]\naddress = \"c\"\n[host.d]\naddress = \"d\"\n{links}"
    )
}

pub(crate) fn inventory(text: &str) -> Inventory {
    let file = fleet_file::Source { name: "x.toml".to_owned(), text: text.to_owned() };
    fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap()
}

/// A coordinator with its calendar in a file, its users, and agents that the test plays.
pub(crate) struct PlayedFleet {
    _folder: tempfile::TempDir,
    pub(crate) path: String,
    pub(crate) one: FleetCoordinator,
    pub(crate) users: FleetCalendar,
    pub(crate) centre: [u8; 32],
    pub(crate) keys: BTreeMap<String, FleetKey>,
    pub(crate) nonce: u64,
}

pub(crate) fn coordinator(
    path: &str,
    holder: &str,
    text: &str,
    centre: Option<[u8; 32]>,
) -> FleetCoordinator {
    let (prefix, mut number) = (holder.to_owned(), 0);
    let new_id = Box::new(move || {
        number += 1;
        Ok(format!("run-{prefix}-{number}"))
    });
    let one =
        FleetCoordinator::new(Calendar::open(path).unwrap(), holder.to_owned(), inventory(text), new_id);
    match centre {
        Some(key) => one.with_agents(FleetKey::from_bytes(key).unwrap()),
        None => one,
    }
}

impl PlayedFleet {
    pub(crate) fn new(text: &str, agents: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sqlite").display().to_string();
        Self::on(folder, path, text, agents)
    }
    pub(crate) fn on(folder: tempfile::TempDir, path: String, text: &str, agents: &[&str]) -> Self {
        let centre = [7; 32];
        let mut one = coordinator(&path, "one", text, Some(centre));
        one.tick(START, &mut Vec::new()).unwrap();
        let mut users = FleetCalendar::open(Some(&path)).unwrap();
        let mut keys = BTreeMap::new();
        for (n, agent) in agents.iter().enumerate() {
            let key = FleetKey::from_bytes([n as u8 + 20; 32]).unwrap();
            users.enroll(agent, key.public().as_str(), START).unwrap();
            keys.insert((*agent).to_owned(), key);
        }
        Self { _folder: folder, path, one, users, centre, keys, nonce: 0 }
    }
    pub(crate) fn tick(&mut self, seconds: i64) -> Vec<FleetAction> {
        let mut actions = Vec::new();
        self.one.tick(at(seconds), &mut actions).unwrap();
        actions
    }
    pub(crate) fn receive(
        &mut self,
        agent: &str,
        message: &Value,
        seconds: i64,
    ) -> Result<Vec<FleetAction>, FleetError> {
        let bytes = seal("agent", &self.keys[agent], message);
        let mut actions = Vec::new();
        self.one.receive(&[(agent.to_owned(), bytes)], at(seconds), &mut actions)?;
        Ok(actions)
    }
    pub(crate) fn report(
        &mut self,
        agent: &str,
        holds: &Value,
        seconds: i64,
    ) -> Result<Vec<FleetAction>, FleetError> {
        self.nonce += 1;
        let message = json!({"type":"report","agent":agent,"session":format!("s-{agent}"),"previous":[],"newest":holds.clone(),"proof":"","nonce":self.nonce,
            "program":"1","holds":holds,"full":"","waiting":0,"begun":[]});
        self.receive(agent, &message, seconds)
    }
    pub(crate) fn calendar_of(actions: &[FleetAction], agent: &str) -> Option<Value> {
        actions.iter().rev().find_map(|action| match action {
            FleetAction::Send { agent: to, message } if to == agent => {
                Some(body(message)).filter(|one| one["type"] == "calendar")
            }
            _ => None,
        })
    }
    pub(crate) fn raw_calendar(actions: &[FleetAction], agent: &str) -> Option<Vec<u8>> {
        actions.iter().rev().find_map(|action| match action {
            FleetAction::Send { agent: to, message }
                if to == agent && body(message)["type"] == "calendar" =>
            {
                Some(message.clone())
            }
            _ => None,
        })
    }
    /// The agent takes what was handed out and says so.
    pub(crate) fn confirm(&mut self, actions: &[FleetAction], agent: &str, seconds: i64) {
        let one = Self::calendar_of(actions, agent).unwrap();
        self.report(agent, &json!({"epoch": one["epoch"], "version": one["version"]}), seconds).unwrap();
    }
    pub(crate) fn add(
        &mut self,
        name: &str,
        pair: (&str, &str),
        seconds: i64,
        change: impl FnOnce(&mut ScheduleRequest),
    ) {
        let mut request = ScheduleRequest {
            name: name.to_owned(),
            pair: PairRequest { from: pair.0.to_owned(), to: pair.1.to_owned(), ..PairRequest::default() },
            at: Some(rfc3339(at(seconds))),
            slip: Some(Span::from_secs(600)),
            ..ScheduleRequest::default()
        };
        request.pair.spec.traffic.duration = Some(Span::from_secs(10));
        request.pair.spec.traffic.no_latency = true;
        change(&mut request);
        self.users.add(&request, START).unwrap();
    }
    pub(crate) fn runs(&mut self) -> Vec<CalendarRun> {
        self.users.runs(&RunFilter::default()).unwrap()
    }
}

pub(crate) fn reading(ms: u64) -> ClockReading {
    ClockReading { running: Span::from_ms(ms), wall: UnixTime::from_ms(0), wall_error: None }
}
