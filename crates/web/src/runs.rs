//! Runs that pages and programs start here: one after the other, in the queue of this host's server.

mod carry_out;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use linerate_control::{BrowserPort, ControlError, OwnRun, OwnRunTurn, OwnRuns, QueueLoad, StartTickets};
use linerate_model::Outcome;
use linerate_runner::{CancelToken, run_name};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use linerate_units::Span;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::allowed_target::AllowedTarget;
use crate::archive_access::ArchiveAccess;
use crate::config::PlanSetup;
use crate::live::WebLive;
use crate::problem::{HttpProblem, INTERNAL, INVALID_SETTING, STOPPING, TOO_MANY};
use crate::run_request::RunLimits;
use crate::web_task::WebTask;

/// Most runs that wait.
const MAX_WAITING: usize = 16;
/// Ended runs that are remembered with their problem.
const MAX_ENDED: usize = 64;
/// Idempotency keys that are remembered, and how long.
const MAX_KEYS: usize = 1024;
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How often a waiting run looks whether it may begin.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A run holds the place in this host's queue while it waits for the other host. If both hosts measure each other,
/// each would wait for the other for ever.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(120);
/// A test whose end depends on the network may take this long, and any test as much longer than expected as this.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WebRunState {
    /// It waits for other runs.
    Waiting,
    /// It is carried out.
    Running,
    /// It is over.
    Ended,
    /// Its log has no end: another program carries it out, or it was killed.
    Unfinished,
}

/// Which runs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CurrentRuns {
    /// The run that is carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<String>,
    /// The runs that wait, the next one first.
    pub(crate) waiting: Vec<String>,
    /// The run that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latest: Option<String>,
}

/// A run that was started here.
#[derive(Debug)]
pub(crate) struct WebRun {
    pub(crate) id: String,
    pub(crate) task: WebTask,
    pub(crate) live: WebLive,
    cancel: CancelToken,
    progress: Mutex<WebRunProgress>,
}

#[derive(Debug)]
struct WebRunProgress {
    state: WebRunState,
    /// Its place in the server's queue; absent if it needs none.
    place: Option<OwnRun>,
    /// Whether it needs one. A test against the server of this program takes its place there as a client, and until
    /// it is over, the others have none: they would be before it in that queue, and after it in this one.
    needs_place: bool,
    /// Whether the other host was compared with the server of this program, in whose queue the test would wait for
    /// itself.
    is_compared: bool,
    /// When it began to be carried out.
    began: Option<Mono>,
    /// Why it failed.
    problem: Option<String>,
}

impl WebRun {
    pub(crate) fn state(&self) -> WebRunState {
        locked(&self.progress).state
    }

    fn has_run_for(&self, time: Duration) -> bool {
        locked(&self.progress).began.is_some_and(|began| clock::now().since(began) > time)
    }

    pub(crate) fn problem(&self) -> Option<String> {
        locked(&self.progress).problem.clone()
    }

    /// Whether it may be carried out. Takes a place in the server's queue if it has none and needs one.
    fn turn(&self, own_runs: &OwnRuns) -> Result<OwnRunTurn, ControlError> {
        let mut progress = locked(&self.progress);
        if progress.place.is_none() && progress.needs_place {
            progress.place = Some(own_runs.join(self.task.length())?);
        }
        progress.place.as_ref().map_or(Ok(OwnRunTurn::Now), OwnRun::turn)
    }
}

/// The runs of the service.
#[derive(Debug)]
pub(crate) struct RunQueue {
    state: Mutex<RunQueueState>,
    changed: Condvar,
    current_runs: watch::Sender<CurrentRuns>,
    own_runs: OwnRuns,
    archive: ArchiveAccess,
    /// Where tests may go; empty for everywhere.
    targets: Vec<AllowedTarget>,
    plan_setup: PlanSetup,
}

#[derive(Debug, Default)]
struct RunQueueState {
    waiting: VecDeque<Arc<WebRun>>,
    running: Option<Arc<WebRun>>,
    ended: VecDeque<Arc<WebRun>>,
    keys: VecDeque<StartKey>,
    stopping: bool,
}

/// A start that is not made twice.
#[derive(Debug)]
struct StartKey {
    key: String,
    /// Of the request.
    digest: [u8; 32],
    run: String,
    made: Mono,
}

impl RunQueue {
    pub(crate) fn new(
        own_runs: OwnRuns,
        archive: ArchiveAccess,
        targets: Vec<AllowedTarget>,
        plan_setup: PlanSetup,
    ) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            current_runs: watch::Sender::new(CurrentRuns::default()),
            own_runs,
            archive,
            targets,
            plan_setup,
        }
    }

    /// Adds a run. The same key with the same request gives the run that it gave before.
    pub(crate) fn start(&self, task: WebTask, key: Option<&str>) -> Result<Arc<WebRun>, HttpProblem> {
        let digest = task.digest();
        let mut state = locked(&self.state);
        if state.stopping {
            return Err(HttpProblem::new(STOPPING, "this server is stopping and starts no more runs"));
        }
        state.keys.retain(|key| clock::now().since(key.made) < KEY_LIFETIME);
        if let Some(made) = key.and_then(|key| state.keys.iter().find(|made| made.key == key)) {
            if made.digest != digest {
                return Err(HttpProblem::new(
                    INVALID_SETTING,
                    "this Idempotency-Key was used for another request; use a new one",
                )
                .at("Idempotency-Key"));
            }
            let run = state.all().find(|run| run.id == made.run).cloned();
            return run.ok_or_else(|| {
                HttpProblem::new(
                    INVALID_SETTING,
                    format!("this Idempotency-Key has started the run {}", made.run),
                )
                .at("Idempotency-Key")
            });
        }
        if state.waiting.len() >= MAX_WAITING {
            let text = format!("{MAX_WAITING} runs already wait on this host; try again when one has ended");
            return Err(HttpProblem::new(TOO_MANY, text).limit(MAX_WAITING as u64).retry_after(10));
        }
        let run = self.add(&mut state, task)?;
        if let Some(key) = key {
            if state.keys.len() >= MAX_KEYS {
                state.keys.pop_front();
            }
            state.keys.push_back(StartKey {
                key: key.to_owned(),
                digest,
                run: run.id.clone(),
                made: clock::now(),
            });
        }
        self.publish(&state);
        self.changed.notify_all();
        Ok(run)
    }

    fn add(&self, state: &mut RunQueueState, task: WebTask) -> Result<Arc<WebRun>, HttpProblem> {
        let id = run_name().map_err(|error| HttpProblem::new(INTERNAL, error))?;
        let behind_own_server =
            state.running.as_ref().is_some_and(|run| locked(&run.progress).place.is_none());
        let needs_place = task.needs_place();
        let place = if behind_own_server || !needs_place {
            None
        } else {
            let place = self.own_runs.join(task.length());
            Some(place.map_err(|error| HttpProblem::new(TOO_MANY, error).retry_after(10))?)
        };
        let is_compared = !task.is_to_a_host();
        let progress = WebRunProgress {
            state: WebRunState::Waiting,
            place,
            needs_place,
            is_compared,
            began: None,
            problem: None,
        };
        let run = Arc::new(WebRun {
            id,
            live: task.viewed(),
            task,
            cancel: CancelToken::new(),
            progress: Mutex::new(progress),
        });
        state.waiting.push_back(Arc::clone(&run));
        Ok(run)
    }

    /// Where browsers measure.
    pub(crate) fn browser_port(&self) -> Option<BrowserPort> {
        self.own_runs.browser_port()
    }

    /// Where clients measure responsiveness.
    pub(crate) fn responsiveness_port(&self) -> Option<u16> {
        self.own_runs.responsiveness_port()
    }

    /// The tickets with which browsers start tests.
    pub(crate) fn start_tickets(&self) -> &StartTickets {
        self.own_runs.start_tickets()
    }

    /// A run that was started here and is still known.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<WebRun>> {
        locked(&self.state).all().find(|run| run.id == id).cloned()
    }

    /// Position of a run in the server's queue, and longest expected wait; absent if it does not wait.
    pub(crate) fn wait(&self, run: &WebRun) -> Option<(u32, Span)> {
        let state = locked(&self.state);
        let ahead = state.waiting.iter().position(|waiting| waiting.id == run.id)?;
        let progress = locked(&run.progress);
        // One without a place waits for the run against this program's server, and for those before it here.
        progress.place.as_ref().map_or(Some((ahead as u32 + 1, Span::ZERO)), OwnRun::position)
    }

    /// The runs that wait, the next one first.
    pub(crate) fn waiting(&self) -> Vec<Arc<WebRun>> {
        locked(&self.state).waiting.iter().cloned().collect()
    }

    /// Clients and runs in the queue of this host's server.
    pub(crate) fn load(&self) -> QueueLoad {
        self.own_runs.load()
    }

    /// What tests and plans of the pages may not exceed now.
    pub(crate) fn limits(&self) -> RunLimits {
        RunLimits { targets: self.targets.clone(), longest: self.own_runs.longest() }
    }

    /// What plans are carried out with.
    pub(crate) const fn plan_setup(&self) -> &PlanSetup {
        &self.plan_setup
    }

    /// Which runs there are, now and after each change.
    pub(crate) fn current_runs(&self) -> watch::Receiver<CurrentRuns> {
        self.current_runs.subscribe()
    }

    /// Ends a run early. What was measured is kept.
    pub(crate) fn cancel(&self, run: &WebRun) {
        run.cancel.cancel();
        let mut state = locked(&self.state);
        if let Some(at) = state.waiting.iter().position(|waiting| waiting.id == run.id)
            && let Some(run) = state.waiting.remove(at)
        {
            self.end(&mut state, &run, Outcome::Interrupted, Some("cancelled before it began".to_owned()));
        }
        self.changed.notify_all();
    }

    /// Forgets a run that has ended.
    pub(crate) fn forget(&self, id: &str) {
        let mut state = locked(&self.state);
        state.ended.retain(|run| run.id != id);
        self.publish(&state);
    }

    /// Cancels the running run if it has waited for the other host, or takes, too long.
    pub(crate) fn end_long_runs(&self) {
        let running = locked(&self.state).running.clone();
        let Some(run) = running else { return };
        let limit = self.time_limit(&run);
        if run.has_run_for(limit) {
            let reason = format!("it took longer than {} s, the limit of this server", limit.as_secs());
            locked(&run.progress).problem = Some(reason);
            run.cancel.cancel();
        }
        let waits_too_long = run.live.queued_for(clock::now()).is_some_and(|wait| wait > QUEUE_TIMEOUT);
        // One against the server of this program waits for its own turn there.
        if waits_too_long && locked(&run.progress).place.is_some() {
            locked(&run.progress).problem = Some(format!(
                "{} was busy for {} s; try again later",
                run.task.target(),
                QUEUE_TIMEOUT.as_secs()
            ));
            run.cancel.cancel();
        }
    }

    /// Ends the running run, and refuses others.
    pub(crate) fn stop(&self) {
        let mut state = locked(&self.state);
        state.stopping = true;
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
        self.changed.notify_all();
    }

    /// How long a run may take. A test of a day is expected to take a day; a count of bytes may never end.
    fn time_limit(&self, run: &WebRun) -> Duration {
        let duration = |span: Span| Duration::from_nanos(span.as_ns());
        match run.task.expected_time() {
            Some(expected) => duration(expected) + TIME_LIMIT,
            None => self.own_runs.longest().map_or(TIME_LIMIT, duration),
        }
    }

    fn publish(&self, state: &RunQueueState) {
        let current_runs = CurrentRuns {
            running: state.running.as_ref().map(|run| run.id.clone()),
            waiting: state.waiting.iter().map(|run| run.id.clone()).collect(),
            latest: state.ended.back().map(|run| run.id.clone()),
        };
        self.current_runs.send_if_modified(|published| {
            let changed = *published != current_runs;
            *published = current_runs;
            changed
        });
    }
}

impl RunQueueState {
    fn all(&self) -> impl Iterator<Item = &Arc<WebRun>> {
        self.waiting.iter().chain(&self.running).chain(&self.ended)
    }
}
