//! One run of an agent: a client in its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use linerate_model::{Body, Event, Outcome, World};
use linerate_proto::agent::{Job, JobEnd, JobEvent, SettingsAnswer};
use linerate_sock::Mono;
use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;

use super::failed;
use crate::TestRequest;
use crate::client::{PhaseGate, measure_with};
use crate::error::ControlError;
use crate::log::{Log, Sink, SinkError};
use crate::port_observer::PortObserver;
use crate::server::ServerConfig;
use crate::tls::ServerTrust;

/// A message from a job, or from a change of settings, to the thread that serves the coordinator.
#[derive(Debug)]
pub(super) enum JobMessage {
    /// The job has begun; its times count from `epoch`.
    Accepted { job: u32, epoch: Mono },
    /// All sockets are open, and the job waits for its start.
    Ready { job: u32 },
    /// An event of the job's log.
    Event(Box<JobEvent>),
    /// The job has ended.
    Ended(JobEnd),
    /// Settings were checked, set or restored.
    Settings(Box<SettingsAnswer>),
}

/// The messages that wait for the thread that serves the coordinator.
#[derive(Debug)]
pub(super) struct JobMessages {
    waiting: Mutex<Vec<JobMessage>>,
    /// Wakes the receiving thread when a message is added.
    pub(super) waker: EventFd,
}

impl JobMessages {
    pub(super) fn new() -> Result<Self, ControlError> {
        Ok(Self { waiting: Mutex::default(), waker: EventFd::new()? })
    }

    pub(super) fn put(&self, message: JobMessage) {
        locked(&self.waiting).push(message);
        self.waker.wake();
    }

    pub(super) fn take(&self) -> Vec<JobMessage> {
        let _ = self.waker.clear();
        std::mem::take(&mut *locked(&self.waiting))
    }
}

/// Executes a job. Every event of its log becomes a message, except the first and the last, which the
/// coordinator writes itself.
pub(super) fn carry_out(
    job: Job,
    gate: &PhaseGate,
    stop: &AtomicBool,
    messages: &JobMessages,
    config: &ServerConfig,
) {
    let (number, observer) = (job.job, config.observer.as_deref());
    let mut post = JobReporter { job: number, messages };
    let mut log = Log::new(String::new(), vec![&mut post]);
    messages.put(JobMessage::Accepted { job: number, epoch: log.epoch() });
    let request = TestRequest {
        host: job.host.into(),
        port: job.port,
        spec: job.spec,
        world: if observer.is_some() { World::Lab } else { World::Hosts },
        started_at: String::new(),
        calibration: config.calibration.clone(),
        observer: observer.map(|observer| observer as &dyn PortObserver),
        file: None,
        tls: job.certificate.map(|certificate| ServerTrust::Fingerprint(Arc::new(certificate))),
        stop,
    };
    // The coordinator learns of the end of a job even if its thread panics.
    let life = catch_unwind(AssertUnwindSafe(|| measure_with(&request, Some(gate), &mut log)));
    let end = match life {
        Ok(Ok(outcome)) => {
            let reason = log.record().reason.clone().filter(|_| outcome != Outcome::Completed);
            JobEnd { job: number, outcome, reason }
        }
        Ok(Err(error)) => failed(number, error.to_string()),
        Err(_) => failed(number, "the agent failed during the run".to_owned()),
    };
    messages.put(JobMessage::Ended(end));
}

struct JobReporter<'a> {
    job: u32,
    messages: &'a JobMessages,
}

impl Sink for JobReporter<'_> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        if !matches!(event.body, Body::RunStarted(_) | Body::RunEnded { .. }) {
            let (host, at, body) = (event.host, event.at, event.body.clone());
            self.messages.put(JobMessage::Event(Box::new(JobEvent { job: self.job, host, at, body })));
        }
        Ok(())
    }
}
