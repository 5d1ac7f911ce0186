//! Carries out the part of a calendar that is an agent's, in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use linerate_broker::{Broker, BrokerError, BrokerEvent, NotSent, centre_subject};
use linerate_control::{HostRef, ServerTrust, Token};
use linerate_model::{ForeignText, TestSpec};
use linerate_proto::fleet::{
    AgentRun, CentreMessage, FleetKey, MessageOrigin, PlainName, PublicFleetKey, open,
};
use linerate_runner::{ArchiveWarning, CancelToken, PidFile, PidFileError, run_name};
use linerate_sock::clock::{self, Mono};
use linerate_sock::thread;
use linerate_units::Span;

use crate::agent::{AgentAction, AgentFolderError, AgentIdentity, CalendarAgent, ClockReading, DiskFolder};
use crate::answer_watch::AnswerWatch;
use crate::carry_out::{RunLog, RunSubstitute, RunWork, carry_out, failed};
use crate::coordinator::RunEnd;
use crate::enrollment::{Enrollment, EnrollmentError};
use crate::error::FleetError;
use crate::service::now;

/// How long active runs may take to stop when the service ends, and results to be sent.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
const PID_FILE: &str = "agent.pid";

/// What the service of an agent needs.
#[derive(Clone)]
pub struct AgentServiceConfig {
    /// Who it is.
    pub enrollment: Enrollment,
    /// Where it keeps what it must not forget.
    pub folder: PathBuf,
    /// Location of the archive of this host; absent for the default one of this user.
    pub archive: Option<String>,
    /// Address and port of the server of this host, which makes the tests.
    pub server: (String, Option<u16>),
    /// The token of the servers.
    pub token: Token,
    /// How to recognise servers of encrypted control connections; absent for plain ones.
    pub tls: Option<ServerTrust>,
    /// Version of the program.
    pub program: String,
    /// Gets what a user should know, from any thread.
    pub notify: fn(&AgentServiceNotice),
}

/// Something that a user of an agent should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentServiceNotice {
    /// The broker is connected.
    Connected(ForeignText),
    /// The broker is not connected.
    Disconnected(ForeignText),
    /// The broker refuses the agent.
    BrokerRefuses(ForeignText),
    /// The coordinators refuse the agent, or accept it again (empty).
    Refused(ForeignText),
    /// Nobody answers.
    NoAnswer,
    /// Somebody answers again.
    Answered,
    /// A message is too large for the broker.
    TooLarge(NotSent),
    /// Something cannot be kept, or can be again (empty).
    NotKept(String),
    /// A run has started.
    Started(AgentRun),
    /// A run has ended.
    Ended(PlainName, RunEnd),
    /// The archive does not have everything of a run.
    Archive(ArchiveWarning),
}

impl AgentServiceNotice {
    /// Whether somebody should look at it.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Disconnected(_)
            | Self::BrokerRefuses(_)
            | Self::NoAnswer
            | Self::TooLarge(_)
            | Self::Archive(_) => true,
            Self::Refused(why) => !why.as_str().is_empty(),
            Self::NotKept(why) => !why.is_empty(),
            _ => false,
        }
    }
}

impl fmt::Display for AgentServiceNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(server) => write!(f, "connected to the broker {server}"),
            Self::Disconnected(why) => {
                write!(f, "no connection to the broker ({why}); the calendar is carried out all the same")
            }
            Self::BrokerRefuses(why) => write!(f, "the broker refuses this agent: {why}"),
            Self::Refused(why) if why.as_str().is_empty() => {
                f.write_str("the coordinators accept this agent again")
            }
            Self::Refused(why) => write!(f, "the coordinators refuse this agent, it measures nothing: {why}"),
            Self::NoAnswer => f.write_str(
                "the broker is connected, but no coordinator answers this agent: none leads and was started with \
                 --broker, its fleet has another name, it knows another key of this agent or none, or the enrolment is \
                 from other coordinators",
            ),
            Self::Answered => f.write_str("the coordinators answer"),
            Self::TooLarge(why) => write!(
                f,
                "a part of what was measured does not reach the coordinators: {why}; raise max_payload of nats-server"
            ),
            Self::NotKept(why) if why.is_empty() => f.write_str("the folder takes results again"),
            Self::NotKept(why) => write!(f, "results cannot be kept ({why}); no further runs are taken"),
            Self::Started(run) => write!(f, "{} started: to {} ({})", run.id, run.to, run.schedule),
            Self::Ended(run, end) => {
                write!(f, "{run} {}", end.state.name())?;
                if let Some(rate) = end.result.as_ref().and_then(|result| result.goodput) {
                    write!(f, ", {rate}")?;
                }
                if end.reason.is_empty() { Ok(()) } else { write!(f, ": {}", end.reason) }
            }
            Self::Archive(warning) => write!(f, "{warning}"),
        }
    }
}

/// Why an agent cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentServiceError {
    /// Another process is this agent.
    #[error("another process uses the folder {}; end it, or give another one with --dir", .0.display())]
    Taken(PathBuf),
    /// The folder cannot be used.
    #[error("the folder of the agent cannot be used: {0}; give another one with --dir")]
    Folder(#[from] AgentFolderError),
    /// The same, for its lock.
    #[error("the folder {} cannot be used: {source}; give another one with --dir", folder.display())]
    Lock {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The enrolment is wrong.
    #[error(transparent)]
    Enrollment(#[from] EnrollmentError),
    /// The broker can never be reached.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// This system has no random numbers.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

/// How a run ended, with its log.
type AgentRunEnd = (PlainName, RunEnd, String);

/// An agent in this process.
pub struct FleetAgentService {
    config: AgentServiceConfig,
    agent: CalendarAgent,
    broker: Broker,
    subject: String,
    /// The key of the coordinators.
    centre: PublicFleetKey,
    answers: AnswerWatch,
    /// Whether it was told that a message is too large.
    told_too_large: bool,
    /// Whether it ends, and begins nothing more.
    stopping: bool,
    active: BTreeMap<PlainName, CancelToken>,
    ended: (Sender<AgentRunEnd>, Receiver<AgentRunEnd>),
    /// What carries out runs instead of measuring.
    substitute: Option<RunSubstitute>,
    _lock: PidFile,
}

impl FleetAgentService {
    /// Opens the folder and dials the broker.
    ///
    /// # Errors
    /// The folder or the enrolment cannot be used.
    pub fn open(config: AgentServiceConfig) -> Result<Self, AgentServiceError> {
        let folder = DiskFolder::open(&config.folder)?;
        let lock = PidFile::create(&config.folder.join(PID_FILE)).map_err(|error| match error {
            PidFileError::Taken => AgentServiceError::Taken(config.folder.clone()),
            PidFileError::System(source) => AgentServiceError::Lock { folder: config.folder.clone(), source },
        })?;
        let enrollment = &config.enrollment;
        let centre = PublicFleetKey::read(&enrollment.coordinators).map_err(EnrollmentError::from)?;
        let identity = AgentIdentity {
            name: enrollment.name.clone(),
            key: FleetKey::read(&enrollment.key).map_err(EnrollmentError::from)?,
            centre: centre.clone(),
            program: config.program.clone(),
            session: run_name().map_err(FleetError::from)?.into(),
        };
        let seed = u64::from_str_radix(&identity.session, 16).unwrap_or_default();
        let mut agent = CalendarAgent::open(identity, Box::new(folder), seed)?;
        agent.note_broken_off(&reading());
        Ok(Self {
            subject: centre_subject(&enrollment.fleet, &enrollment.name),
            broker: Broker::connect(enrollment.broker())?,
            agent,
            centre,
            answers: AnswerWatch::default(),
            told_too_large: false,
            stopping: false,
            active: BTreeMap::new(),
            ended: channel(),
            substitute: None,
            config,
            _lock: lock,
        })
    }

    /// Has runs carried out by something else than a measurement.
    #[doc(hidden)]
    #[must_use]
    pub fn with_substitute(mut self, substitute: RunSubstitute) -> Self {
        self.substitute = Some(substitute);
        self
    }

    /// Carries out the calendar until `stop` is cancelled.
    pub fn run(&mut self, stop: &CancelToken) {
        while !stop.is_cancelled() {
            let wait = self.agent.next_tick(&reading()).as_duration();
            self.turn(wait.min(Duration::from_millis(500)));
        }
        self.stopping = true;
        self.active.values().for_each(CancelToken::cancel);
        let until = clock::now() + SHUTDOWN_GRACE;
        let is_done = |service: &Self| service.active.is_empty() && service.is_empty_handed();
        while !until.has_passed() && !is_done(self) {
            self.turn(Duration::from_millis(100));
        }
    }

    /// Whether there is nothing that could still be sent.
    fn is_empty_handed(&self) -> bool {
        self.agent.waiting() == 0 || !self.broker.is_connected()
    }

    fn turn(&mut self, wait: Duration) {
        let mut event = self.broker.receive(wait);
        while let Some(one) = event {
            self.receive(one);
            event = self.broker.receive(Duration::ZERO);
        }
        let ended: Vec<AgentRunEnd> = self.ended.1.try_iter().collect();
        for (run, end, log) in ended {
            self.active.remove(&run);
            self.report(&AgentServiceNotice::Ended(run.clone(), end.clone()));
            self.agent.ended(&run, end, log, &reading());
        }
        for action in self.agent.tick(&reading()) {
            self.execute(action);
        }
        if self.answers.is_news(reading().running) {
            self.report(&AgentServiceNotice::NoAnswer);
        }
    }

    fn receive(&mut self, event: BrokerEvent) {
        match event {
            BrokerEvent::Message { payload, .. } => {
                let signed = open::<CentreMessage>(MessageOrigin::Centre, &self.centre, &payload).is_some();
                if signed && self.answers.answered(reading().running) {
                    self.report(&AgentServiceNotice::Answered);
                }
                self.agent.receive(&payload, &reading());
            }
            BrokerEvent::Connected { server } => {
                self.answers.connected(reading().running);
                self.agent.connected(&reading());
                self.report(&AgentServiceNotice::Connected(server));
            }
            BrokerEvent::Disconnected { why } => {
                self.answers.disconnected();
                self.report(&AgentServiceNotice::Disconnected(why));
            }
            BrokerEvent::Refused { why } => self.report(&AgentServiceNotice::BrokerRefuses(why)),
        }
    }

    fn execute(&mut self, action: AgentAction) {
        match action {
            AgentAction::Send(message) => {
                // What was not sent is sent again.
                if let Err(why @ NotSent::TooLarge { .. }) = self.broker.send(&self.subject, &message)
                    && !std::mem::replace(&mut self.told_too_large, true)
                {
                    self.report(&AgentServiceNotice::TooLarge(why));
                }
            }
            AgentAction::Start { run, .. } if self.stopping => {
                let end = failed("the agent was stopped".to_owned());
                self.agent.ended(&run.id, end, String::new(), &reading());
            }
            AgentAction::Start { run, spec, start_by } => self.start(run, *spec, mono_of(start_by)),
            AgentAction::Stop { run } => {
                if let Some(cancel) = self.active.get(run.as_str()) {
                    cancel.cancel();
                }
            }
            AgentAction::Refused(why) => self.report(&AgentServiceNotice::Refused(why.as_str().into())),
            AgentAction::NotKept(why) => self.report(&AgentServiceNotice::NotKept(why)),
        }
    }

    fn start(&mut self, run: AgentRun, spec: TestSpec, start_by: Mono) {
        self.report(&AgentServiceNotice::Started(run.clone()));
        let cancel = CancelToken::new();
        self.active.insert(run.id.clone(), cancel.clone());
        let (config, ended) = (self.config.clone(), self.ended.0.clone());
        let (id, substitute) = (run.id.clone(), self.substitute);
        let work = move || {
            let mut log = RunLog::default();
            let work = RunWork {
                archive: config.archive.as_deref(),
                client: config.own_server(),
                server: config.other_server(&run),
                run: &run.id,
                schedule: &run.schedule,
                spec: &spec,
                start_by,
                substitute,
            };
            let (end, warning) = carry_out(work, Some(&mut log), &cancel);
            if let Some(warning) = warning {
                (config.notify)(&AgentServiceNotice::Archive(warning));
            }
            // Only fails if the service has ended.
            let _ = ended.send((run.id, end, log.text));
        };
        if let Err(error) = thread::spawn("fleet-run", work) {
            let _ = self.ended.0.send((id, failed(error.to_string()), String::new()));
        }
    }

    fn report(&self, notice: &AgentServiceNotice) {
        (self.config.notify)(notice);
    }
}

impl AgentServiceConfig {
    /// The server of this host.
    fn own_server(&self) -> HostRef {
        HostRef {
            name: self.enrollment.name.clone(),
            address: self.server.0.clone(),
            port: self.server.1,
            test_address: None,
            token: self.token.clone(),
            tls: self.tls.clone(),
            netns: None,
        }
    }

    fn other_server(&self, run: &AgentRun) -> HostRef {
        HostRef {
            name: run.to.as_str().to_owned(),
            address: run.address.as_str().to_owned(),
            port: Some(run.port),
            test_address: run.test_address.as_deref().map(str::to_owned),
            token: self.token.clone(),
            tls: self.tls.clone(),
            netns: None,
        }
    }
}

impl fmt::Debug for FleetAgentService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetAgentService").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// A time of the running clock by the clock that tests use.
fn mono_of(running: Span) -> Mono {
    // In this order: if this process waits for the processor between the readings, the time comes earlier, not later.
    let now = clock::now();
    let left = running.as_ns().saturating_sub(clock::unadjusted_ns());
    now + Duration::from_nanos(left)
}

/// The clocks of this host.
fn reading() -> ClockReading {
    ClockReading {
        running: Span::from_ns(clock::unadjusted_ns()),
        wall: now(),
        wall_error: clock::wall_error().map(Span::from),
    }
}

#[cfg(test)]
mod tests;
