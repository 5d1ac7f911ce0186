//! Many agents in one process, each with a connection of its own, and folders in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use linerate_broker::{Broker, BrokerConfig, BrokerEvent, BrokerLogin, agent_subject, centre_subject};
use linerate_fleet::{
    AgentAction, AgentFolder, AgentFolderError, AgentIdentity, CalendarAgent, CentreMessage, ClockReading,
    RunEnd, now,
};
use linerate_model::calendar::CalendarRunState;
use linerate_sock::process::{Signal, end_with_parent};
use linerate_sock::{clock, limits};
use linerate_units::Span;

use super::key;

/// How often all agents are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// File descriptors of a connection with its runtime, and some more.
const FILES: usize = 6;

/// How the agents of a process, or of all, are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StormState {
    pub(crate) agents: usize,
    pub(crate) with_calendar: usize,
    pub(crate) with_runs: usize,
    /// Agents that have an answer since their last connection, or the first one.
    pub(crate) answered: usize,
    /// Agents that have lost a connection.
    pub(crate) disconnected: usize,
    /// The longest time from a report to its answer, since connections were lost.
    pub(crate) lag_ms: usize,
}

impl StormState {
    pub(crate) fn read(line: &str) -> Self {
        let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[agents, with_calendar, with_runs, answered, disconnected, lag_ms] = &numbers[..] else {
            return Self::default();
        };
        Self { agents, with_calendar, with_runs, answered, disconnected, lag_ms }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            agents: self.agents + other.agents,
            with_calendar: self.with_calendar + other.with_calendar,
            with_runs: self.with_runs + other.with_runs,
            answered: self.answered + other.answered,
            disconnected: self.disconnected + other.disconnected,
            lag_ms: self.lag_ms.max(other.lag_ms),
        }
    }
}

#[derive(Default)]
struct StormFolder(BTreeMap<String, Vec<u8>>);

impl AgentFolder for StormFolder {
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), AgentFolderError> {
        self.0.insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(content) = self.0.remove(from) {
            self.0.insert(to.to_owned(), content);
        }
    }

    fn read_one(&mut self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned()
    }

    fn list(&mut self) -> Result<Vec<(String, u64)>, AgentFolderError> {
        Ok(self.0.iter().map(|(name, content)| (name.clone(), content.len() as u64)).collect())
    }
}

struct StormAgent {
    machine: CalendarAgent,
    broker: Broker,
    subject: String,
    next_tick: clock::Mono,
    answered: bool,
    disconnected: bool,
    /// When the first report since the last answer was sent.
    asked: Option<clock::Mono>,
    lag: Duration,
}

impl StormAgent {
    fn new(number: usize, url: &str) -> Self {
        let name = format!("h{number}");
        let mut config = BrokerConfig::new(vec![url.to_owned()], &format!("linerate agent {name}"));
        config.login = BrokerLogin::Key(key(Some(number)).secret());
        config.subscribe = vec![agent_subject("storm", &name)];
        let identity = AgentIdentity {
            name: name.clone(),
            key: key(Some(number)),
            centre: key(None).public(),
            program: "1.2.3".to_owned(),
            session: format!("{number:016x}").into(),
        };
        Self {
            machine: CalendarAgent::open(identity, Box::<StormFolder>::default(), number as u64).unwrap(),
            broker: Broker::connect(config).unwrap(),
            subject: centre_subject("storm", &name),
            next_tick: clock::now(),
            answered: false,
            disconnected: false,
            asked: None,
            lag: Duration::ZERO,
        }
    }

    fn look(&mut self) {
        let mut event = self.broker.receive(Duration::ZERO);
        if event.is_none() && !self.next_tick.has_passed() {
            return;
        }
        while let Some(one) = event {
            self.receive(one);
            event = self.broker.receive(Duration::ZERO);
        }
        let reading = reading();
        for action in self.machine.tick(&reading) {
            match action {
                AgentAction::Send(message) => {
                    let sent = self.broker.send(&self.subject, &message).is_ok();
                    if sent && self.asked.is_none() {
                        self.asked = Some(clock::now());
                    }
                }
                AgentAction::Start { run, .. } => {
                    let reason = "it is not measured".to_owned();
                    let end = RunEnd { state: CalendarRunState::Failed, reason, result: None };
                    self.machine.ended(&run.id, end, String::new(), &reading);
                }
                _ => {}
            }
        }
        self.next_tick = clock::now() + self.machine.next_tick(&reading).as_duration();
    }

    fn receive(&mut self, event: BrokerEvent) {
        match event {
            BrokerEvent::Message { payload, .. } => {
                self.machine.receive(&payload, &reading());
                let document = payload.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default();
                let is_answer = document.starts_with(b"{\"type\":\"answer\"")
                    && serde_json::from_slice::<CentreMessage>(document).is_ok();
                if let Some(asked) = self.asked.take_if(|_| is_answer) {
                    self.answered = true;
                    self.lag = self.lag.max(clock::now().since(asked));
                }
            }
            BrokerEvent::Connected { .. } => self.machine.connected(&reading()),
            BrokerEvent::Disconnected { .. } => {
                if self.answered {
                    self.disconnected = true;
                }
                (self.answered, self.asked, self.lag) = (false, None, Duration::ZERO);
            }
            BrokerEvent::Refused { why } => panic!("refused: {why}"),
        }
    }
}

fn reading() -> ClockReading {
    ClockReading { running: Span::from_ns(clock::unadjusted_ns()), wall: now(), wall_error: None }
}

/// Is these agents until the process is killed, and prints how they are.
pub(crate) fn run(folder: &Path, first: usize, count: usize) {
    end_with_parent(Signal::Kill).unwrap();
    let _ = limits::raise_open_files((count * FILES) as u64 + 100);
    let url = std::fs::read_to_string(folder.join("broker.url")).unwrap();
    let mut agents: Vec<StormAgent> =
        (first..first + count).map(|number| StormAgent::new(number, &url)).collect();
    loop {
        let next = clock::now() + LOOK_INTERVAL;
        agents.iter_mut().for_each(StormAgent::look);
        let count = |is_so: fn(&&StormAgent) -> bool| agents.iter().filter(is_so).count();
        let lag = agents.iter().map(|agent| agent.lag).max().unwrap_or_default();
        println!(
            "{} {} {} {} {} {}",
            agents.len(),
            count(|agent| agent.machine.calendar().is_some()),
            count(|agent| agent.machine.calendar().is_some_and(|calendar| !calendar.runs.is_empty())),
            count(|agent| agent.answered),
            count(|agent| agent.disconnected),
            lag.as_millis()
        );
        clock::sleep_until(next);
    }
}
