//! Serves one coordinator: the place that it holds in the queue, and the runs that this agent executes for it.

mod about;
mod job;
mod settings;

use linerate_sock::handle::AsFd;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

use linerate_model::Outcome;
use linerate_proto::agent::{
    AgentEnd, AgentInput, AgentOutput, Job, JobEnd, SettingsAnswer, SettingsRequest,
};
use linerate_proto::{QueuePosition, Ticket};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock, thread};
use linerate_units::{Span, Timestamp};

use super::queue::QueueDecision;
use super::{ServerEvent, Shared};
use crate::client::PhaseGate;
use crate::control_stream::ControlStream;
use crate::dialogue_loop::DialogueLoop;
use crate::error::ControlError;
use crate::memory::{self, Loan};
use crate::multicast::MulticastSenders;
use crate::restored::Restored;
use crate::setup::expected_time;
use job::{JobMessage, JobMessages};
use settings::CoordinatorSettings;

/// How often the queue position of a waiting coordinator and the server's handle are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How much longer than the longest run a coordinator may hold a place: time for opening, draining and the
/// dialogue.
const RESERVATION_GRACE: Duration = Duration::from_secs(40);

/// Serves one coordinator until it ends, disconnects or is rejected. `received` is what the front has already read
/// from it.
pub(super) fn serve(connection: ControlStream, peer: SocketAddr, received: &[u8], shared: &Shared) {
    let held = RefCell::new(None);
    let mut begun = false;
    let settings = Arc::new(CoordinatorSettings::default());
    // All jobs have ended when the scope is left. Only then are the settings restored, and after that the place
    // is released, even if this thread has panicked.
    let work = AssertUnwindSafe(|| {
        std::thread::scope(|scope| {
            let mut service =
                AgentService::begin(connection, peer, shared, scope, Arc::clone(&settings), &held)?;
            let life = AssertUnwindSafe(|| service.start(received).and_then(|()| service.run()));
            let result = catch_unwind(life).unwrap_or_else(|_| Err(failed_in_the_middle()));
            service.stop_jobs();
            begun = service.begun;
            result
        })
    });
    let result = catch_unwind(work).unwrap_or_else(|_| Err(failed_in_the_middle()));
    report_restored(settings.restore(), peer, shared);
    if let Some(held) = held.take() {
        held.release(shared);
    }
    let trouble = match result {
        Ok(trouble) => trouble,
        Err(error) => Some(error.to_string()),
    };
    (shared.event)(ServerEvent::Ended { client: peer, trouble: trouble.map(Into::into) });
    if begun && shared.config.one_off {
        shared.switch.turn_off();
    }
}

fn failed_in_the_middle() -> ControlError {
    ControlError::Local("the agent failed in the middle of the control connection".to_owned())
}

fn report_restored(restored: Restored, client: SocketAddr, shared: &Shared) {
    if restored != Restored::default() {
        (shared.event)(ServerEvent::SettingsRestored { client, restored });
    }
}

/// A place in the queue.
struct HeldPlace {
    place: u64,
    ticket: Option<Ticket>,
    reported_position: Option<QueuePosition>,
    until: Mono,
}

impl HeldPlace {
    fn release(self, shared: &Shared) {
        if let Some(ticket) = &self.ticket {
            shared.tickets.withdraw(ticket);
        }
        shared.queue.leave(self.place);
    }
}

/// A job under way.
struct RunningJob {
    gate: Arc<PhaseGate>,
    stop: Arc<AtomicBool>,
    /// When it has to end; absent for no limit.
    until: Option<Mono>,
}

impl RunningJob {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.gate.wake();
    }
}

struct AgentService<'scope, 'env> {
    dialogue: DialogueLoop<AgentEnd>,
    peer: SocketAddr,
    shared: &'env Shared,
    scope: &'scope Scope<'scope, 'env>,
    name: String,
    /// The queue place of this coordinator. It outlives this struct, so that it is released last.
    place: &'scope RefCell<Option<HeldPlace>>,
    begun: bool,
    jobs: BTreeMap<u32, RunningJob>,
    messages: Arc<JobMessages>,
    turned_away: Option<String>,
    settings: Arc<CoordinatorSettings>,
    senders: Arc<MulticastSenders>,
}

impl<'scope, 'env> AgentService<'scope, 'env> {
    fn begin(
        connection: ControlStream,
        peer: SocketAddr,
        shared: &'env Shared,
        scope: &'scope Scope<'scope, 'env>,
        settings: Arc<CoordinatorSettings>,
        place: &'scope RefCell<Option<HeldPlace>>,
    ) -> Result<Self, ControlError> {
        let mut nonce = [0; 16];
        fill(&mut nonce)?;
        let end = AgentEnd::new(Timestamp::START, locked(&shared.agent_token).clone(), nonce)
            .with_channel_binding(connection.channel_binding()?);
        Ok(Self {
            dialogue: DialogueLoop::new(end, connection, clock::now())?,
            peer,
            shared,
            scope,
            name: String::new(),
            place,
            begun: false,
            jobs: BTreeMap::new(),
            messages: Arc::new(JobMessages::new()?),
            turned_away: None,
            settings,
            senders: Arc::default(),
        })
    }

    /// Passes the bytes that the front has read to the dialogue.
    fn start(&mut self, received: &[u8]) -> Result<(), ControlError> {
        self.dialogue.input(AgentInput::Bytes(received))
    }

    /// Serves until the end. Returns why the coordinator was rejected; absent if it ended the dialogue itself.
    fn run(&mut self) -> Result<Option<String>, ControlError> {
        loop {
            let messages = Arc::clone(&self.messages);
            for output in self.dialogue.turn(clock::now() + POLL_INTERVAL, &[messages.waker.as_fd()])? {
                if matches!(output, AgentOutput::Done) {
                    self.dialogue.flush_at_end();
                    return Ok(self.turned_away.take());
                }
                self.execute(output)?;
            }
            self.read_messages()?;
            self.reserve_in_turn()?;
            let over = |until: &Mono| until.has_passed();
            let expired = |held: &HeldPlace| held.ticket.is_some() && over(&held.until);
            if self.place.borrow().as_ref().is_some_and(expired) {
                let why = "the place was held for longer than this server allows (--limit-time)".to_owned();
                self.dialogue.input(AgentInput::GiveUp(why.clone()))?;
                self.turned_away = Some(why);
            } else if self.shared.stopping() && !self.jobs.is_empty() {
                // The jobs end first, so that what was measured until now reaches the coordinator.
                self.stop_jobs();
            } else if self.shared.stopping() {
                self.dialogue.input(AgentInput::GiveUp("the agent was stopped".to_owned()))?;
            }
            self.jobs.values().filter(|job| job.until.as_ref().is_some_and(over)).for_each(RunningJob::stop);
        }
    }

    fn execute(&mut self, output: AgentOutput) -> Result<(), ControlError> {
        match output {
            AgentOutput::TurnedAway(why) => self.turned_away = Some(format!("turned away: {why}")),
            AgentOutput::Known { name } => {
                self.name = name.into();
                let local = self.dialogue.stream().local_addr().ok().map(|address| address.ip());
                let about = about::about(local, self.shared);
                self.dialogue.input(AgentInput::About(Box::new(about)))?;
            }
            AgentOutput::Hold { expected } => self.reserve(expected)?,
            AgentOutput::Release => {
                report_restored(self.settings.restore(), self.peer, self.shared);
                if let Some(held) = self.place.take() {
                    held.release(self.shared);
                }
            }
            AgentOutput::Settings(request) => self.change_settings(request)?,
            AgentOutput::Prepare(job) => self.prepare(*job)?,
            AgentOutput::Start { job, at } => {
                if let Some(running) = self.jobs.get(&job) {
                    running.gate.open_at(self.dialogue.instant_of(at));
                }
            }
            AgentOutput::Stop { job } => {
                if let Some(running) = self.jobs.get(&job) {
                    running.stop();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Joins the queue, within the same limits as other clients.
    fn reserve(&mut self, expected: Span) -> Result<(), ControlError> {
        let place = match self.shared.queue.join_known(self.peer.ip(), expected) {
            Ok(place) => place,
            Err(why) => return self.dialogue.input(AgentInput::NotHeld(why.to_string())),
        };
        let held = HeldPlace { place, ticket: None, reported_position: None, until: Mono::FAR };
        if let Some(former) = self.place.replace(Some(held)) {
            former.release(self.shared);
        }
        self.reserve_in_turn()
    }

    fn reserve_in_turn(&mut self) -> Result<(), ControlError> {
        let mut place = self.place.borrow_mut();
        let Some(held) = place.as_mut().filter(|held| held.ticket.is_none()) else { return Ok(()) };
        match self.shared.queue.turn(held.place) {
            QueueDecision::Now { .. } => {
                let mut number = [0; 16];
                fill(&mut number)?;
                let ticket = Ticket(number);
                held.ticket = Some(ticket);
                if let Some(longest) = self.shared.longest() {
                    held.until = clock::now() + longest.as_duration() + RESERVATION_GRACE;
                }
                self.shared.tickets.give(ticket, held.place);
                self.begun = true;
                (self.shared.event)(ServerEvent::Held { client: self.peer, name: self.name.as_str().into() });
                self.dialogue.input(AgentInput::Held(ticket))
            }
            QueueDecision::Displaced => {
                drop(place);
                if let Some(held) = self.place.take() {
                    held.release(self.shared);
                }
                let why = "the queue is full and a new host has priority; try again later";
                self.dialogue.input(AgentInput::NotHeld(why.to_owned()))
            }
            QueueDecision::Later { position, wait } => {
                let place = QueuePosition { position, wait_ns: wait };
                if held
                    .reported_position
                    .is_some_and(|reported_position| reported_position.position == place.position)
                {
                    return Ok(());
                }
                held.reported_position = Some(place);
                (self.shared.event)(ServerEvent::Waiting { client: self.peer, position: place.position });
                self.dialogue.input(AgentInput::Waiting(place))
            }
        }
    }

    fn change_settings(&mut self, request: SettingsRequest) -> Result<(), ControlError> {
        // The place is held as long as settings are requested; each request extends it by the longest run.
        if let (Some(held), Some(longest)) = (&mut *self.place.borrow_mut(), self.shared.longest()) {
            held.until = clock::now() + longest.as_duration() + RESERVATION_GRACE;
        }
        let local = self.dialogue.stream().local_addr().ok().map(|address| address.ip());
        let (settings, messages) = (Arc::clone(&self.settings), Arc::clone(&self.messages));
        let (shared, client) = (self.shared, self.peer);
        let work = move || {
            let answer = settings.carry_out(&request, local, shared);
            if request != SettingsRequest::Restore && !matches!(request, SettingsRequest::Check(_)) {
                (shared.event)(ServerEvent::SettingsChanged { client, in_force: answer.in_force.clone() });
            }
            messages.put(JobMessage::Settings(Box::new(answer)));
        };
        match thread::spawn_scoped(self.scope, "settings", work) {
            Ok(_) => Ok(()),
            Err(error) => {
                let troubles = vec![format!("the agent could not start a thread: {}", error.source)];
                let answer = SettingsAnswer {
                    in_force: Vec::new(),
                    troubles: troubles.into_iter().map(Into::into).collect(),
                };
                self.dialogue.input(AgentInput::SettingsDone(Box::new(answer)))
            }
        }
    }

    fn prepare(&mut self, job: Job) -> Result<(), ControlError> {
        let number = job.job;
        let longest = self.shared.longest();
        let length = expected_time(&job.spec);
        if let Some(longest) = longest.filter(|longest| length > *longest) {
            let why = format!(
                "the run would take {length}, but the agent allows {longest}; give a shorter \
                               -t"
            );
            return self.dialogue.input(AgentInput::Ended(failed(number, why)));
        }
        let loan = match reserve_memory(&job, self.shared) {
            Ok(loan) => loan,
            Err(why) => return self.dialogue.input(AgentInput::Ended(failed(number, why))),
        };
        let messages = Arc::clone(&self.messages);
        let ready = move || messages.put(JobMessage::Ready { job: number });
        let running = RunningJob {
            gate: Arc::new(PhaseGate::new(job.ticket, Arc::clone(&self.senders), ready)?),
            stop: Arc::new(AtomicBool::new(false)),
            until: longest.map(|longest| clock::now() + longest.as_duration() + RESERVATION_GRACE),
        };
        let (gate, stop) = (Arc::clone(&running.gate), Arc::clone(&running.stop));
        let (messages, config) = (Arc::clone(&self.messages), self.shared.config.clone());
        (self.shared.event)(ServerEvent::Asked { client: self.peer, target: job.host.as_str().into() });
        let work = move || {
            job::carry_out(job, &gate, &stop, &messages, &config);
            drop(loan);
        };
        match thread::spawn_scoped(self.scope, "job", work) {
            Ok(_) => {
                self.jobs.insert(number, running);
                Ok(())
            }
            Err(error) => {
                let why = format!("the agent could not start a thread: {}", error.source);
                self.dialogue.input(AgentInput::Ended(failed(number, why)))
            }
        }
    }

    fn read_messages(&mut self) -> Result<(), ControlError> {
        for message in self.messages.take() {
            let input = match message {
                JobMessage::Accepted { job, epoch } => {
                    AgentInput::Accepted { job, epoch: self.dialogue.time_of(epoch) }
                }
                JobMessage::Ready { job } => AgentInput::Ready { job },
                JobMessage::Event(event) => AgentInput::Event(event),
                JobMessage::Settings(answer) => AgentInput::SettingsDone(answer),
                JobMessage::Ended(end) => {
                    self.jobs.remove(&end.job);
                    AgentInput::Ended(end)
                }
            };
            // Many events arrive at once, so they are sent together at the next poll.
            self.dialogue.feed(input)?;
        }
        Ok(())
    }

    fn stop_jobs(&self) {
        self.jobs.values().for_each(RunningJob::stop);
    }
}

/// Reserves the memory that a job needs on this host.
fn reserve_memory(job: &Job, shared: &Shared) -> Result<Loan, String> {
    let spec = job.spec.clone().checked().map_err(|error| error.to_string())?;
    let needed = memory::needed(&spec, true).map_err(|error| error.to_string())?;
    shared.memory.reserve(needed)
}

fn failed(job: u32, why: String) -> JobEnd {
    JobEnd { job, outcome: Outcome::Failed, reason: Some(why.into()) }
}

fn fill(bytes: &mut [u8]) -> Result<(), ControlError> {
    getrandom::fill(bytes).map_err(|error| ControlError::Local(format!("no random numbers: {error}")))
}
