//! The coordinator of a fleet, with agents whose keys it knows and who may say anything.
//!
//! The input is a script: each step is one byte that selects what happens and one for how, followed by further
//! arguments. The calendar is in memory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use linerate_archive::{Calendar, CalendarTransaction, RunFilter};
use linerate_fleet::{FleetAction, FleetCoordinator, Inventory, fleet_file};
use linerate_model::calendar::{CalendarRun, UnixTime};
use linerate_proto::fleet::{
    AgentReport, CentreMessage, FleetAgentMessage, HeldCalendar, MessageOrigin, PlainName, ResultDigest,
    ResultDocument, ResultPart, open, seal, seal_document,
};
use linerate_units::Span;

use crate::fleet::{agent_messages, at, documents, key, measured, report};
use crate::script::Script;

const FLEET: &str = "
    set_up = \"3s\"
    settle = \"2s\"
    ahead = \"1h\"
    host.a.address = \"a.example.net\"
    host.b.address = \"b.example.net\"
    host.c.address = \"c.example.net\"
    mesh.m = { hosts = [\"a\", \"b\"], every = \"10m\", test.duration = \"5s\" }
";
/// Agents and the numbers of their keys.
const AGENTS: [(&str, u8); 2] = [("a", 1), ("b", 3)];

/// Plays a script.
pub fn fleet_coordinator(bytes: &[u8]) {
    play(bytes);
}

fn play(bytes: &[u8]) -> CoordinatorSite {
    let mut site = CoordinatorSite::new();
    let mut script = Script { rest: bytes };
    while let (Some(step), Some(how)) = (script.byte(), script.byte()) {
        site.step(step, how, &mut script);
    }
    site
}

struct CoordinatorSite {
    one: FleetCoordinator,
    now: UnixTime,
    nonce: u64,
    /// The newest calendars of the agents, and their runs.
    calendars: BTreeMap<String, (HeldCalendar, linerate_proto::fleet::CalendarProof, Vec<PlainName>)>,
    /// Earlier messages of agents, to be sent again.
    earlier: Vec<(String, Vec<u8>)>,
}

fn inventory() -> Inventory {
    static INVENTORY: LazyLock<Inventory> = LazyLock::new(|| {
        let file = fleet_file::Source { name: "fleet.toml".to_owned(), text: FLEET.to_owned() };
        fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap_or_else(|_| unreachable!("the file is right"))
    });
    INVENTORY.clone()
}

impl CoordinatorSite {
    fn new() -> Self {
        let calendar = Calendar::open(":memory:").unwrap_or_else(|error| unreachable!("{error}"));
        let mut number = 0;
        let new_id = Box::new(move || {
            number += 1;
            Ok(format!("run-{number}"))
        });
        let mut one =
            FleetCoordinator::new(calendar, "one".to_owned(), inventory(), new_id).with_agents(key(2));
        let enroll = |calendar: &mut CalendarTransaction<'_>| {
            for (agent, number) in AGENTS {
                calendar.enroll_agent(agent, key(number).public().as_str(), at(0))?;
            }
            Ok(())
        };
        one.calendar().write(enroll).unwrap_or_else(|error| unreachable!("{error}"));
        Self { one, now: at(0), nonce: 0, calendars: BTreeMap::new(), earlier: Vec::new() }
    }

    fn step(&mut self, step: u8, how: u8, script: &mut Script<'_>) {
        let (agent, number) = AGENTS[usize::from(how % 2)];
        let sign = |document: &[u8]| seal_document(MessageOrigin::Agent, &key(number), document);
        match step % 10 {
            0 => self.pass(Span::from_ms(u64::from(how) * 100)),
            1 => self.pass(Span::from_secs(u64::from(how) * 60)),
            2 => {
                let report = FleetAgentMessage::Report(self.report(agent, how, script));
                self.receive_one(agent, seal(MessageOrigin::Agent, &key(number), &report));
            }
            3 => {
                let part = FleetAgentMessage::Result(self.part(agent, how, script));
                self.receive_one(agent, seal(MessageOrigin::Agent, &key(number), &part));
            }
            4 => self.receive_one(agent, sign(script.some().unwrap_or_default())),
            5 => {
                let documents = documents(&agent_messages());
                let mut document = documents[usize::from(how / 2) % documents.len()].clone();
                // Another byte somewhere in it.
                let place = usize::from(script.byte().unwrap_or_default()) * 4;
                if let Some(byte) = document.get_mut(place + usize::from(script.byte().unwrap_or_default())) {
                    *byte = script.byte().unwrap_or_default();
                }
                self.receive_one(agent, sign(&document));
            }
            6 => {
                if let Some((sender, bytes)) =
                    self.earlier.get(usize::from(how) % self.earlier.len().max(1)).cloned()
                {
                    self.receive_one(&sender, bytes);
                }
            }
            7 => self.receive_forged(how, script.some().unwrap_or_default()),
            8 => {
                let run = self.run_of(agent, how / 2);
                let told = self.one.archived(agent, &run, ResultDigest::of([]));
                self.take(agent, told.into_iter().collect());
            }
            _ => {
                // Many messages at once.
                let messages: Vec<_> =
                    self.earlier.iter().rev().take(usize::from(how % 16)).cloned().collect();
                self.receive(&messages);
            }
        }
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now.after(span);
        let mut actions = Vec::new();
        let done = self.one.tick(self.now, &mut actions);
        assert!(done.is_ok(), "{:?}", done.err());
        self.take("", actions);
    }

    /// The name of a run that this agent has, or one that it invents.
    fn run_of(&self, agent: &str, which: u8) -> String {
        let runs = self.calendars.get(agent).map_or(&[][..], |(_, _, runs)| runs);
        match runs.get(usize::from(which)) {
            Some(run) => run.to_string(),
            // Also one of the other agent.
            None => format!("run-{which}"),
        }
    }

    fn report(&mut self, agent: &str, how: u8, script: &mut Script<'_>) -> AgentReport {
        let choice = script.byte().unwrap_or_default();
        self.nonce += u64::from(choice & 1 == 0);
        let known = self.calendars.get(agent);
        let held = known.map(|(held, _, _)| *held);
        let holds = match choice / 2 % 4 {
            0 => held,
            1 => None,
            2 => held.map(|held| HeldCalendar { version: held.version.saturating_sub(1), ..held }),
            _ => Some(HeldCalendar { epoch: u64::MAX, version: u64::MAX - u64::from(choice) }),
        };
        // As the coordinators proved it, or as nobody did.
        let proof = known.map_or_else(|| "".into(), |(_, proof, _)| proof.clone());
        let time = |byte: u8| match byte {
            0 => UnixTime::from_ms(i64::MIN),
            1 => UnixTime::MAX,
            byte => at(i64::from(byte) * 60_000),
        };
        let begun = script.some().unwrap_or_default().chunks_exact(2);
        let begun = begun.take(64).map(|two| (self.run_of(agent, two[0]).into(), time(two[1])));
        AgentReport {
            agent: agent.into(),
            session: format!("s{}", how / 64).into(),
            previous: if how & 32 == 0 { vec!["s0".into()] } else { Vec::new() },
            nonce: if choice == 255 { u64::MAX } else { self.nonce },
            holds,
            newest: holds,
            proof,
            full: if how & 16 == 0 { "".into() } else { "no space".into() },
            waiting: if how & 8 == 0 { 0 } else { u64::MAX },
            begun: begun.collect(),
            ..report()
        }
    }

    fn part(&self, agent: &str, how: u8, script: &mut Script<'_>) -> ResultPart {
        let choice = script.byte().unwrap_or_default();
        let mut document = ResultDocument { ended: self.now, ..measured() };
        document.log =
            script.byte().map_or_else(String::new, |lines| "{}\n".repeat(usize::from(lines))).into();
        if choice & 4 != 0 {
            (document.begun, document.ended) = (None, UnixTime::MAX);
        }
        let text = document.parts().concat();
        let (first, second) = text.split_at(text.len() / 2);
        let (part, parts, content) = match choice % 4 {
            0 => (0, 1, text.as_str()),
            1 => (0, 2, first),
            2 => (1, 2, second),
            _ => (u32::from(choice), u32::from(choice) * 3, first),
        };
        ResultPart {
            agent: agent.into(),
            run: self.run_of(agent, how / 2).into(),
            part,
            parts,
            content: content.into(),
        }
    }

    /// Nothing comes of what is not signed by its sender.
    fn receive_forged(&mut self, how: u8, bytes: &[u8]) {
        let [message, ..] = &agent_messages()[..] else { return };
        let (sender, forged) = match how % 5 {
            0 => ("a", seal(MessageOrigin::Agent, &key(3), message)),
            1 => ("b", seal(MessageOrigin::Agent, &key(1), message)),
            // Under the name of b, signed by b: a's report.
            2 => ("b", seal(MessageOrigin::Agent, &key(3), message)),
            3 => ("a", seal(MessageOrigin::Centre, &key(1), message)),
            _ => ("nobody", bytes.to_vec()),
        };
        let mut actions = Vec::new();
        let done = self.one.receive(&[(sender.to_owned(), forged)], self.now, &mut actions);
        assert!(done.is_ok() && actions.is_empty(), "{actions:?}");
    }

    fn receive_one(&mut self, sender: &str, bytes: Vec<u8>) {
        let before = self.runs_not_of(sender);
        let message = (sender.to_owned(), bytes);
        self.receive(std::slice::from_ref(&message));
        assert_eq!(self.runs_not_of(sender), before, "{sender} has nothing to say about runs of others");
        self.earlier.push(message);
    }

    fn receive(&mut self, messages: &[(String, Vec<u8>)]) {
        let mut actions = Vec::new();
        let done = self.one.receive(messages, self.now, &mut actions);
        assert!(done.is_ok(), "one message must not take others with it: {:?}", done.err());
        assert!(actions.len() <= 4 * messages.len(), "{} actions", actions.len());
        let [(sender, _)] = messages else { return self.take("", actions) };
        self.take(sender, actions);
    }

    fn runs_not_of(&mut self, sender: &str) -> Vec<CalendarRun> {
        let runs = self.one.calendar().read(|calendar| calendar.runs(&RunFilter::default()));
        let runs = runs.unwrap_or_else(|error| unreachable!("{error}"));
        runs.into_iter().filter(|run| run.from != sender).collect()
    }

    /// What is sent is understood by its agent, and an agent only gets runs of its own. Only to `sender`, if there is one.
    fn take(&mut self, sender: &str, actions: Vec<FleetAction>) {
        for action in actions {
            match action {
                FleetAction::Send { agent, message } => {
                    assert!(sender.is_empty() || agent == sender, "{agent} is told of a message of {sender}");
                    let earlier = open::<CentreMessage>(MessageOrigin::Centre, &key(2).public(), &message);
                    let Some(earlier) = earlier else { unreachable!("what we send must be understood") };
                    self.take_message(&agent, earlier);
                }
                FleetAction::Archive { agent, run, log, .. } => {
                    assert!(sender.is_empty() || agent == sender);
                    assert!(PlainName::checked(run).is_some() && log.len() <= 64 << 20);
                }
                _ => {}
            }
        }
    }

    fn take_message(&mut self, agent: &str, earlier: CentreMessage) {
        let of = match &earlier {
            CentreMessage::Calendar(calendar) => &calendar.agent,
            CentreMessage::Answer(answer) => &answer.agent,
            CentreMessage::Stored(stored) => &stored.agent,
        };
        assert_eq!(of, agent);
        let CentreMessage::Calendar(calendar) = earlier else { return };
        let runs: Vec<PlainName> = calendar.runs.iter().map(|run| run.id.clone()).collect();
        for run in &calendar.runs {
            assert!(run.spec < calendar.specs.len() && run.ends <= calendar.until.max(self.now));
            let stored = self.one.calendar().read(|calendar| calendar.run(&run.id));
            let stored = stored.unwrap_or_else(|error| unreachable!("{error}"));
            assert!(stored.is_some_and(|stored| stored.from == agent), "{} is not of {agent}", run.id);
        }
        let held = HeldCalendar { epoch: calendar.epoch, version: calendar.version };
        self.calendars.insert(agent.to_owned(), (held, calendar.proof, runs));
    }
}

/// Scripts: agents that report, confirm, begin, end, are lost, and come back with what the database does not know.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (pass, wait, report, part, raw, damaged) = (0, 1, 2, 3, 4, 5);
    let (a, b) = (0, 1);
    // Both report, get calendars and confirm them.
    let handed =
        [pass, 10, report, a, 2, 0, report, b, 2, 0, pass, 10, pass, 10, report, a, 0, 0, report, b, 0, 0];
    let begun = [&handed[..], &[wait, 12, report, a, 0, 4, 0, 12, 1, 12, pass, 50]].concat();
    let ended =
        [&begun[..], &[part, a, 0, 3, part, a, 0, 3, 8, a, part, 2, 1, 3, part, 2, 2, 3, pass, 10]].concat();
    let unknown =
        [&handed[..], &[part, 200, 0, 1, part, 202, 1, 0, part, 204, 3, 0, part, 206, 7, 9]].concat();
    let lies =
        [&handed[..], &[report, a, 6, 2, 0, 0, report, b, 7, 2, 0, 1, report, 255, 4, 0, pass, 20]].concat();
    let copies =
        [&handed[..], &[report, 64 + 32, 0, 0, wait, 2, report, 128 + 32, 0, 0, report, 32, 0, 0]].concat();
    let forged =
        [&handed[..], &[7, 0, 0, 7, 1, 0, 7, 2, 0, 7, 3, 0, 7, 4, 2, 1, 2, 6, 1, 6, 2, 9, 8]].concat();
    let full = [&handed[..], &[report, 16 + 8, 0, 0, wait, 255, wait, 255, pass, 1]].concat();
    let changed = [&handed[..], &[damaged, a, 2, 9, 57, damaged, 2, 3, 1, 65, damaged, 4, 1, 30, 0]].concat();
    let mut seeds = vec![handed.to_vec(), begun, ended, unknown, lies, copies, forged, full, changed];
    let texts = documents(&agent_messages());
    let raw_seed = |one: &Vec<u8>| [&handed[..], &[raw, a, one.len() as u8], one, &[pass, 20]].concat();
    seeds.extend(texts.iter().filter(|one| one.len() < 256).map(raw_seed));
    seeds
}

#[cfg(test)]
mod tests {
    use linerate_model::calendar::CalendarRunState;

    use super::*;

    #[test]
    fn the_seeds_hand_out_calendars_and_take_results() {
        let seeds = seeds();
        let states = |which: usize| {
            let mut site = play(&seeds[which]);
            let runs = site.runs_not_of("nobody");
            let count = |state: CalendarRunState| runs.iter().filter(|run| run.state == state).count();
            (site.calendars.len(), count(CalendarRunState::Running), count(CalendarRunState::Finished))
        };
        assert_eq!(states(0), (2, 0, 0), "two agents have calendars");
        assert_eq!(states(1), (2, 2, 0), "two runs have begun");
        assert_eq!(states(2).2, 2, "both are measured");
    }
}
