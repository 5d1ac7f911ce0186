//! One test or sweep with all choices.

use linerate_control::{
    ControlError, FollowUpRun, Log, PortObserver, ServerTrust, Sink, TestRequest, investigate, measure,
};
use linerate_model::{Body, Calibration, Investigation, Outcome, RunLabels, RunRecord, TestSpec, World};
use linerate_theory::follow_up::{Question, Topic};

use crate::lab_port_observer::LabPortObserver;
use crate::naming::{now, run_name, target};
use crate::test_file::PreparedFile;
use crate::{CancelToken, RunnerError, TestAgents, agent};

/// A test or sweep against a server.
#[derive(Debug)]
pub struct Measurement {
    /// The server: a name or an address.
    pub host: String,
    /// Its port; absent for the default one.
    pub port: Option<u16>,
    /// How to recognise the server of an encrypted control connection; absent for one that is not encrypted.
    pub tls: Option<ServerTrust>,
    /// What to measure.
    pub spec: TestSpec,
    /// The file that is sent or written; absent for generated payload.
    pub file: Option<PreparedFile>,
    /// The id of the run in logs and archives.
    pub run: String,
    /// The agents that measure instead of this host.
    pub agents: Option<TestAgents>,
    /// What the user says about it.
    pub labels: RunLabels,
    /// Further runs; absent for none. An agent makes none.
    pub investigation: Option<Investigation>,
    /// The calibration of this host, which makes verdicts more certain; see [`crate::calibration::stored`].
    pub calibration: Option<Box<Calibration>>,
    /// The switch of the emulated network that this program runs in; absent on a real host. See
    /// [`LabPortObserver::from_environment`].
    pub lab: Option<LabPortObserver>,
}

/// Sinks that a log owns.
pub type Sinks = Vec<Box<dyn Sink>>;

/// What became of a [`Measurement`].
#[derive(Debug)]
pub struct Measured {
    /// Everything that was measured, even if the run failed.
    pub record: RunRecord,
    /// How the run ended.
    pub outcome: Result<Outcome, ControlError>,
}

impl Measurement {
    /// A test against HOST, HOST:PORT or \[ADDRESS\]:PORT, with a new name.
    ///
    /// # Errors
    /// The specification or the server's name is invalid, or this system has no random numbers.
    pub fn new(host: &str, spec: TestSpec) -> Result<Self, RunnerError> {
        spec.check()?;
        let (host, port) = target(host, None)?;
        Self::of(host, port, spec)
    }

    /// The same for a host and port that are already separate, and a specification that was checked.
    ///
    /// # Errors
    /// This system has no random numbers.
    pub fn of(host: String, port: Option<u16>, spec: TestSpec) -> Result<Self, RunnerError> {
        let run = run_name()?;
        Ok(Self {
            host,
            port,
            tls: None,
            spec,
            file: None,
            run,
            agents: None,
            labels: RunLabels::default(),
            investigation: None,
            calibration: None,
            lab: None,
        })
    }

    /// Measures. Every sink gets each event as it happens, on the calling thread.
    ///
    /// `follow_up` is called with the question of each follow-up run and returns the sinks of that run, which has
    /// a log of its own; after `None` no more runs are made.
    pub fn run(
        self,
        cancel: &CancelToken,
        sinks: Vec<&mut dyn Sink>,
        follow_up: &mut dyn FnMut(&Question) -> Option<Sinks>,
    ) -> Measured {
        let mut log = Log::new(self.run, sinks);
        if !self.labels.is_empty() {
            log.note(Body::Labelled(self.labels));
        }
        let request = TestRequest {
            host: self.host,
            port: self.port,
            tls: self.tls,
            spec: match &self.file {
                Some(file) => file.amount(self.spec),
                None => self.spec,
            },
            file: self.file.map(|file| file.file),
            world: if self.lab.is_some() { World::Lab } else { World::Hosts },
            started_at: now(),
            calibration: self.calibration,
            observer: self.lab.as_ref().map(|lab| lab as &dyn PortObserver),
            stop: cancel.flag(),
        };
        let outcome = match (self.agents, self.investigation) {
            (Some(agents), _) => agent::measure(agents, &request, &mut log),
            (None, None) => measure(&request, &mut log),
            (None, Some(which)) => {
                let topic = (which == Investigation::Reads).then_some(Topic::Reads);
                investigate(&request, &mut log, topic, &mut |question| {
                    let sinks = follow_up(question)?;
                    Some(FollowUpRun { log: Log::owning(run_name().ok()?, sinks), started_at: now() })
                })
            }
        };
        Measured { record: log.into_record(), outcome }
    }
}
