//! Carries out a calendar: a coordinator with a clock, and a thread for each active run.

mod notice;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use linerate_archive::{Archive, Calendar, CalendarTransaction, EventStore};
use linerate_broker::{
    Broker, BrokerConfig, BrokerEvent, BrokerLogin, NotSent, agent_subject, centre_subjects, name_in_subject,
};
use linerate_control::{HostRef, ServerTrust, Token};
use linerate_model::calendar::{Alarm, CalendarRun, CalendarRunState, UnixTime};
use linerate_model::{Event, ForeignText};
use linerate_proto::fleet::{FleetKey, ResultDigest};
use linerate_runner::{ArchiveWarning, CancelToken, archive_at, run_name};
use linerate_sock::{clock, thread};
use linerate_units::Span;

pub use notice::FleetNotice;

use crate::carry_out::{RunSubstitute, RunWork, failed};
use crate::coordinator::{FleetAction, FleetCoordinator, RunEnd};
use crate::enrollment::{BrokerOptions, EnrollmentError};
use crate::error::FleetError;
use crate::fleet_file;
use crate::inventory::{FleetHost, Inventory};
use crate::notify::notify;

/// How often the calendar is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The same while there is much to do.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// How often results of own runs are looked for while agents are heard.
const RESULT_INTERVAL: Duration = Duration::from_millis(100);
/// Messages of agents that one transaction takes at most.
const MESSAGES_AT_ONCE: usize = 256;
/// How much longer agents are heard than until the next look, if all of them speak at once. A lease lasts longer.
const LONGEST_LISTENING: Duration = Duration::from_secs(2);
/// How often the clock is compared with that of the server of the calendar.
const CLOCK_INTERVAL: Duration = Duration::from_secs(10);
/// Names of agents about which something is reported once.
const MAX_REPORTED: usize = 16;
/// How long active runs may take to stop when the service ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// What a service needs.
#[derive(Clone)]
pub struct FleetServiceConfig {
    /// Location of the archive with the calendar; absent for the default one of this user.
    pub archive: Option<String>,
    /// The fleet.
    pub inventory: Inventory,
    /// The token of the agents.
    pub token: Token,
    /// How to recognise the agents of encrypted control connections; absent for plain ones.
    pub tls: Option<ServerTrust>,
    /// How to reach agents that carry out the calendar by themselves; absent if there are none.
    pub broker: Option<FleetBroker>,
    /// Gets what a user should know, from any thread.
    pub notify: fn(&FleetNotice),
}

/// How a coordinator reaches agents.
#[derive(Clone)]
pub struct FleetBroker {
    /// The secret key of the coordinators, as a text.
    pub key: String,
    /// Where the broker is.
    pub place: BrokerOptions,
}

/// A run that is carried out.
struct ActiveRun {
    run: Box<CalendarRun>,
    cancel: CancelToken,
    /// Why it was stopped.
    why: Option<&'static str>,
}

/// A result that the calendar does not have yet.
type UnstoredEnd = (String, RunEnd);

/// A coordinator that carries out a calendar in this process.
pub struct FleetService {
    config: FleetServiceConfig,
    coordinator: FleetCoordinator,
    active: BTreeMap<String, ActiveRun>,
    ended: (Sender<UnstoredEnd>, Receiver<UnstoredEnd>),
    /// Results that could not be stored.
    waiting: Vec<UnstoredEnd>,
    led: Option<bool>,
    away: bool,
    broker: Option<Broker>,
    /// Agents that were reported to be unknown, and to have too large calendars.
    told_unknown: BTreeSet<String>,
    told_too_large: BTreeSet<String>,
    /// The archive, for the logs of agents.
    archive: Option<Archive>,
    /// When the clock is compared next, and whether it was right.
    clock_due: clock::Mono,
    in_time: bool,
    /// What carries out runs instead of measuring.
    substitute: Option<RunSubstitute>,
}

impl FleetService {
    /// Opens the calendar.
    ///
    /// # Errors
    /// The calendar cannot be used, or a mesh can never run.
    pub fn open(config: FleetServiceConfig) -> Result<Self, FleetError> {
        let mut calendar = Calendar::of(archive_at(config.archive.as_deref())?)?;
        if config.broker.is_none() {
            let agents = |calendar: &mut CalendarTransaction<'_>| calendar.agents();
            let count = calendar.read(agents)?.iter().filter(|agent| agent.revoked.is_none()).count();
            if count > 0 {
                (config.notify)(&FleetNotice::AgentsWithoutBroker(count));
            }
        }
        let new_id = Box::new(|| run_name().map_err(FleetError::from));
        let mut coordinator = FleetCoordinator::new(calendar, run_name()?, config.inventory.clone(), new_id);
        let broker = config.broker.as_ref().map(|one| one.dial(&config.inventory.name)).transpose()?;
        if let Some(broker) = &config.broker {
            coordinator =
                coordinator.with_agents(FleetKey::read(&broker.key).map_err(EnrollmentError::from)?);
            // Until there is a connection.
            coordinator.set_deaf(true);
        }
        coordinator.describe(config.inventory.clone(), now())?;
        Ok(Self {
            config,
            coordinator,
            active: BTreeMap::new(),
            ended: channel(),
            waiting: Vec::new(),
            led: None,
            away: false,
            broker,
            told_unknown: BTreeSet::new(),
            told_too_large: BTreeSet::new(),
            archive: None,
            clock_due: clock::now(),
            in_time: true,
            substitute: None,
        })
    }

    /// Has runs carried out by something else than a measurement.
    #[doc(hidden)]
    #[must_use]
    pub fn with_substitute(mut self, substitute: RunSubstitute) -> Self {
        self.substitute = Some(substitute);
        self
    }

    /// Messages of agents that were dropped because too many came at once. Agents repeat what matters.
    #[doc(hidden)]
    #[must_use]
    pub fn dropped_messages(&self) -> u64 {
        self.broker.as_ref().map_or(0, Broker::dropped_messages)
    }

    /// Uses another description of the fleet from now on. Active runs continue.
    ///
    /// # Errors
    /// A mesh can never run, or the fleet has another name than its agents know; the earlier description stays in force.
    pub fn describe(&mut self, inventory: Inventory) -> Result<(), FleetError> {
        if self.broker.is_some() && inventory.name != self.config.inventory.name {
            let old = self.config.inventory.name.clone();
            return Err(FleetError::Renamed { old, new: inventory.name });
        }
        self.coordinator.describe(inventory.clone(), now())?;
        self.config.inventory = inventory;
        Ok(())
    }

    /// The same, by the file of the fleet.
    ///
    /// # Errors
    /// The file has mistakes, or as for [`Self::describe`].
    pub fn describe_by(&mut self, file: &Path) -> Result<(), FleetError> {
        self.describe(fleet_file::load(file)?)
    }

    /// Carries out the calendar until `stop` is cancelled. `between` is called about twice a second.
    ///
    /// # Errors
    /// The lease cannot be given up at the end; it then ends by itself.
    pub fn run(&mut self, stop: &CancelToken, between: &mut dyn FnMut(&mut Self)) -> Result<(), FleetError> {
        while !stop.is_cancelled() {
            self.turn();
            between(self);
            self.listen(if self.coordinator.has_more() { BUSY_INTERVAL } else { POLL_INTERVAL });
        }
        for active in self.active.values_mut() {
            active.stop("the coordinator was stopped");
        }
        let until = clock::now() + SHUTDOWN_GRACE;
        while !self.active.is_empty() && !until.has_passed() {
            self.receive(until.remaining().min(POLL_INTERVAL));
            self.store_results();
        }
        self.store_results();
        self.coordinator.stop(now())
    }

    /// Whether this coordinator leads.
    pub(crate) fn leads(&self) -> bool {
        self.led == Some(true)
    }

    fn turn(&mut self) {
        self.store_results();
        self.compare_clock();
        let mut actions = Vec::new();
        match self.coordinator.tick(now(), &mut actions) {
            Ok(()) => {
                if std::mem::take(&mut self.away) {
                    self.report(&FleetNotice::CalendarBack);
                }
                self.note_leader();
            }
            Err(error) => {
                if !std::mem::replace(&mut self.away, true) {
                    self.report(&FleetNotice::CalendarAway(with_cause(&error)));
                }
            }
        }
        actions.into_iter().for_each(|action| self.execute(action));
    }

    /// A calendar that cannot be read is noticed by the look at it.
    fn compare_clock(&mut self) {
        if !self.clock_due.has_passed() {
            return;
        }
        self.clock_due = clock::now() + CLOCK_INTERVAL;
        if let Ok(Some(check)) = self.coordinator.check_clock(&now) {
            let in_time = check.off <= check.most;
            if std::mem::replace(&mut self.in_time, in_time) != in_time {
                self.report(&FleetNotice::Clock(check));
            }
        }
    }

    fn note_leader(&mut self) {
        let leads = self.coordinator.leads();
        if self.led.replace(leads) != Some(leads) {
            let notice = match self.coordinator.epoch() {
                Some(epoch) => FleetNotice::Leads(epoch),
                None => FleetNotice::Follows,
            };
            self.report(&notice);
        }
    }

    fn execute(&mut self, action: FleetAction) {
        match action {
            FleetAction::Start(run) => self.start(run),
            FleetAction::Stop { run, why } => {
                if let Some(active) = self.active.get_mut(&run) {
                    active.stop(why);
                }
            }
            FleetAction::Notify(alarm) => self.notify(*alarm),
            FleetAction::Send { agent, message } => self.send(&agent, &message),
            FleetAction::Archive { agent, run, log, is_known, digest } => {
                self.archive_log((&agent, &run), &log, is_known, digest);
            }
            FleetAction::Agent(notice) => self.report(&FleetNotice::Agent(notice)),
            FleetAction::Described => self.report(&FleetNotice::Described),
        }
    }

    fn start(&mut self, run: Box<CalendarRun>) {
        self.report(&FleetNotice::Started(run.clone()));
        let cancel = CancelToken::new();
        let active = ActiveRun { run: run.clone(), cancel: cancel.clone(), why: None };
        self.active.insert(run.id.clone(), active);
        let (config, ended, id) = (self.config.clone(), self.ended.0.clone(), run.id.clone());
        let substitute = self.substitute;
        let work = move || {
            let end = carry_out(&config, &run, substitute, &cancel);
            // Only fails if the service has ended.
            let _ = ended.send((run.id, end));
        };
        if let Err(error) = thread::spawn("fleet-run", work) {
            self.waiting.push((id, failed(error.to_string())));
        }
    }

    /// Tells the users in a thread of its own: a web server or a mail program may take long.
    fn notify(&self, alarm: Alarm) {
        self.report(&FleetNotice::Alarm(alarm.clone()));
        let (whom, fleet, report) =
            (self.config.inventory.notify.clone(), self.config.inventory.name.clone(), self.config.notify);
        let work = move || {
            for error in notify(&whom, &fleet, &alarm) {
                report(&FleetNotice::NotifyFailed(error));
            }
        };
        // A host that refuses a thread says so for the next run as well.
        drop(thread::spawn("fleet-notify", work));
    }

    /// Hears agents and waits for results, until the next look at the calendar.
    fn listen(&mut self, timeout: Duration) {
        if self.broker.is_none() {
            return self.receive(timeout);
        }
        let until = clock::now() + timeout;
        let latest = until + LONGEST_LISTENING;
        loop {
            // Agents take the time from the answers, so they are given at once.
            let received = self.receive_events(until.remaining().min(RESULT_INTERVAL));
            self.receive(Duration::ZERO);
            // While many agents speak, they are more urgent than what is booked for the next hours.
            let goes_on = !until.has_passed() || (received >= MESSAGES_AT_ONCE && !latest.has_passed());
            if !goes_on || !self.waiting.is_empty() {
                return;
            }
        }
    }

    /// Hears some messages of agents; how many.
    fn receive_events(&mut self, timeout: Duration) -> usize {
        let mut messages = Vec::new();
        let Some(broker) = &self.broker else { return 0 };
        let mut event = broker.receive(timeout);
        while let Some(one) = event {
            match one {
                BrokerEvent::Message { subject, payload } => {
                    let sender = name_in_subject(&self.config.inventory.name, &subject);
                    messages.extend(sender.map(|sender| (sender, payload)));
                }
                BrokerEvent::Connected { server } => {
                    self.coordinator.set_deaf(false);
                    self.report(&FleetNotice::BrokerConnected(server));
                }
                BrokerEvent::Disconnected { why } => {
                    self.coordinator.set_deaf(true);
                    self.report(&FleetNotice::BrokerAway(why));
                }
                BrokerEvent::Refused { why } => self.report(&FleetNotice::BrokerAway(why)),
            }
            event = if messages.len() < MESSAGES_AT_ONCE { broker.receive(Duration::ZERO) } else { None };
        }
        if messages.is_empty() {
            return 0;
        }
        let mut actions = Vec::new();
        // A calendar that cannot be used is noticed by the look at it, and agents repeat what they said.
        let received = self.coordinator.receive(&messages, now(), &mut actions);
        if received.is_ok() && self.coordinator.leads() {
            for agent in unanswered(&messages, &actions) {
                if is_new(&mut self.told_unknown, &agent) {
                    self.report(&FleetNotice::AgentUnknown(ForeignText::new(&agent)));
                }
            }
        }
        actions.into_iter().for_each(|action| self.execute(action));
        messages.len()
    }

    fn send(&mut self, agent: &str, message: &[u8]) {
        let Some(broker) = &self.broker else { return };
        // What does not arrive is asked for again.
        let sent = broker.send(&agent_subject(&self.config.inventory.name, agent), message);
        if let Err(why @ NotSent::TooLarge { .. }) = sent
            && is_new(&mut self.told_too_large, agent)
        {
            self.report(&FleetNotice::TooLarge { agent: agent.to_owned(), why });
        }
    }

    /// Archives the log of a run that an agent carried out. One that cannot be archived is sent again.
    fn archive_log(&mut self, (agent, run): (&str, &str), log: &str, is_known: bool, digest: ResultDigest) {
        let events: Vec<Event> = log.lines().filter_map(|line| Event::read(line).ok()).collect();
        // An agent has nothing to say about other runs.
        let own = events.iter().all(|event| event.run.as_str() == run);
        if !events.is_empty() && own {
            if self.archive.is_none() {
                self.archive = archive_at(self.config.archive.as_deref()).ok();
            }
            let Some(archive) = &mut self.archive else { return };
            let appended = match archive.contains(run) {
                // Not the agent's.
                Ok(true) if !is_known => Ok(()),
                Ok(_) => archive.append(&events),
                Err(error) => Err(error),
            };
            if let Err(error) = appended {
                self.archive = None;
                self.report(&FleetNotice::Archive(ArchiveWarning::NotArchived(error)));
                return;
            }
        }
        if let Some(action) = self.coordinator.archived(agent, run, digest) {
            self.execute(action);
        }
    }

    /// Waits for results, and for the next look at the calendar.
    fn receive(&mut self, timeout: Duration) {
        match self.ended.1.recv_timeout(timeout) {
            Ok(ended) => {
                self.waiting.push(ended);
                self.waiting.extend(self.ended.1.try_iter());
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    /// Stores results in the calendar. Those that cannot be stored wait.
    fn store_results(&mut self) {
        for (run, mut end) in std::mem::take(&mut self.waiting) {
            if let Some(why) = self.active.get(&run).and_then(|active| active.why) {
                let cancelled = why == crate::coordinator::CANCELLED_BY_USER;
                end.state = if cancelled { CalendarRunState::Cancelled } else { CalendarRunState::Failed };
                end.reason = why.to_owned();
            }
            match self.coordinator.ended(&run, &end, now()) {
                Ok(()) => {
                    if let Some(active) = self.active.remove(&run) {
                        self.report(&FleetNotice::Ended(active.run, end));
                    }
                }
                Err(_) => self.waiting.push((run, end)),
            }
        }
    }

    fn report(&self, notice: &FleetNotice) {
        (self.config.notify)(notice);
    }
}

/// Senders of messages for which nothing was to be done. Every message that is understood has an answer.
fn unanswered(messages: &[(String, Vec<u8>)], actions: &[FleetAction]) -> BTreeSet<String> {
    let mut senders: BTreeSet<String> = messages.iter().map(|(sender, _)| sender.clone()).collect();
    for action in actions {
        if let FleetAction::Send { agent, .. } | FleetAction::Archive { agent, .. } = action {
            senders.remove(agent);
        }
    }
    senders
}

/// Whether something about this agent was not reported before. Of too many agents it is reported of the first ones.
fn is_new(reported: &mut BTreeSet<String>, agent: &str) -> bool {
    reported.len() < MAX_REPORTED && reported.insert(agent.to_owned())
}

impl FleetBroker {
    fn dial(&self, fleet: &str) -> Result<Broker, FleetError> {
        let mut config =
            BrokerConfig::new(self.place.brokers.clone(), &format!("linerate coordinator {fleet}"));
        config.login = match &self.place.credentials {
            Some(file) => BrokerLogin::CredentialsFile(file.clone()),
            None => BrokerLogin::Key(self.key.clone()),
        };
        config.roots = self.place.roots.clone();
        config.subscribe = vec![centre_subjects(fleet)];
        config.is_centre = true;
        Ok(Broker::connect(config)?)
    }
}

impl ActiveRun {
    fn stop(&mut self, why: &'static str) {
        self.why = self.why.or(Some(why));
        self.cancel.cancel();
    }
}

/// Wall-clock time.
#[must_use]
pub fn now() -> UnixTime {
    UnixTime::from_ms((clock::wall_ns() / 1_000_000) as i64)
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}

/// Has the agents measure, and archives the run.
fn carry_out(
    config: &FleetServiceConfig,
    run: &CalendarRun,
    substitute: Option<RunSubstitute>,
    cancel: &CancelToken,
) -> RunEnd {
    let host = |name: &str| config.inventory.host(name).map(|host| host_ref(host, config));
    let (client, server) = match (host(&run.from), host(&run.to)) {
        (Ok(client), Ok(server)) => (client, server),
        (Err(error), _) | (_, Err(error)) => return failed(error.to_string()),
    };
    // Less what clocks may differ.
    let latest = run.starts.after(run.set_up).after(Span::from_ns(run.settle.as_ns() / 2));
    let work = RunWork {
        archive: config.archive.as_deref(),
        client,
        server,
        run: &run.id,
        schedule: &run.schedule,
        spec: &run.spec,
        start_by: clock::now() + latest.since(now()).as_duration(),
        substitute,
    };
    let (end, warning) = crate::carry_out::carry_out(work, None, cancel);
    if let Some(warning) = warning {
        (config.notify)(&FleetNotice::Archive(warning));
    }
    end
}

fn host_ref(host: &FleetHost, config: &FleetServiceConfig) -> HostRef {
    HostRef {
        name: host.name.clone(),
        address: host.address.clone(),
        port: Some(host.port),
        test_address: host.test_address.clone(),
        token: config.token.clone(),
        tls: config.tls.clone(),
        netns: None,
    }
}

impl fmt::Debug for FleetService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetService").field("coordinator", &self.coordinator).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
