//! The emulated networks of this host for their viewers. One thread for each network that is watched asks its switch,
//! however many watch.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use linerate_runner::lab::control_protocol::{PortHistory, Status};
use linerate_runner::lab::{AskError, LabHandle, LabName, LabResourceError, StateDir};
use linerate_sock::thread::{self, locked};
use linerate_sock::{Mono, clock};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::live::{LabFrame, LabSnapshot, LabState, Message, message};
use crate::problem::{HttpProblem, INTERNAL, NOT_FOUND};
use crate::server::yield_to_measurements;

/// Shortest time between two frames.
const INTERVAL: Duration = Duration::from_millis(500);
/// Most bits per second to all viewers of a lab together.
const MAX_BPS: f64 = 10e6;
/// Timeout for an answer of a switch.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// A switch that has not answered for this long is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// How far back a new viewer sees.
const COURSE: Duration = Duration::from_secs(60);
const OTHER_VERSION: &str =
    "another version of linerate has started this network; start it again with this one";

/// The labs that are up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LabList {
    /// In the order of their names.
    labs: Vec<NamedLab>,
}

/// A lab that is up.
#[derive(Debug, Serialize, JsonSchema)]
struct NamedLab {
    /// Its name.
    name: String,
}

/// The end of the stream of a lab.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LabEnd {
    /// Why.
    reason: &'static str,
}

/// The data of the messages of a lab's stream.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes messages that are written one by one")]
pub(crate) enum LabMessage {
    /// Of `snapshot`: first, and whenever a link has changed.
    Snapshot(Box<LabSnapshot>),
    /// Of `frame`: twice a second.
    Frame(LabFrame),
    /// Of `end`: the lab is down.
    End(LabEnd),
}

/// The labs of this user, and those of them that are watched.
#[derive(Debug, Default)]
pub(crate) struct WatchedLabs {
    /// The folder with the state of labs; absent for the default one.
    run_dir: Option<PathBuf>,
    /// By name. One whose thread has ended is not in it.
    watched: Mutex<HashMap<String, Arc<WatchedLab>>>,
}

/// A lab that is watched.
#[derive(Debug)]
pub(crate) struct WatchedLab {
    handle: LabHandle,
    /// Absent until the switch has answered.
    state: Mutex<Option<LabState>>,
    /// Why it is not asked any more.
    over: OnceLock<&'static str>,
    newest: watch::Sender<Message>,
}

/// The messages of a lab, for one viewer.
#[derive(Debug)]
pub(crate) struct LabViewer {
    pub(crate) lab: Arc<WatchedLab>,
    pub(crate) messages: watch::Receiver<Message>,
}

impl WatchedLabs {
    pub(crate) fn new(run_dir: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { run_dir, ..Self::default() })
    }

    /// The labs that are up. Reads files.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn list(&self) -> Result<LabList, HttpProblem> {
        let labs = self.folder()?.labs().map_err(|error| unreadable(&error))?;
        let up = labs.iter().filter(|lab| lab.is_up());
        Ok(LabList { labs: up.map(|lab| NamedLab { name: lab.name().to_owned() }).collect() })
    }

    /// Watches a lab. Reads files.
    ///
    /// # Errors
    /// No lab with this name is up, or no thread can be started.
    pub(crate) fn watch(self: &Arc<Self>, name: &str) -> Result<LabViewer, HttpProblem> {
        let none = || HttpProblem::new(NOT_FOUND, "no emulated network with this name is up on this host");
        let name: LabName = name.parse().map_err(|_| none())?;
        let mut watched = locked(&self.watched);
        if let Some(lab) = watched.get(name.as_str()) {
            return Ok(LabViewer { lab: Arc::clone(lab), messages: lab.newest.subscribe() });
        }
        let handle = self.folder()?.lab(name);
        if !handle.is_up() {
            return Err(none());
        }
        let lab = Arc::new(WatchedLab {
            handle,
            state: Mutex::default(),
            over: OnceLock::new(),
            newest: watch::Sender::new(Message::default()),
        });
        let viewer = LabViewer { lab: Arc::clone(&lab), messages: lab.newest.subscribe() };
        let (labs, followed) = (Arc::clone(self), Arc::clone(&lab));
        thread::spawn("web-lab", move || labs.follow(&followed)).map_err(|error| {
            tracing::error!(%error, "a lab cannot be watched");
            HttpProblem::new(INTERNAL, "the network cannot be watched; the log of the server says why")
        })?;
        watched.insert(lab.handle.name().to_owned(), lab);
        Ok(viewer)
    }

    fn folder(&self) -> Result<StateDir, HttpProblem> {
        StateDir::open(self.run_dir.as_deref()).map_err(|error| unreadable(&error))
    }

    /// Asks a switch until its lab is down, or nobody watches.
    fn follow(&self, lab: &WatchedLab) {
        yield_to_measurements();
        let mut answered = clock::now();
        let mut next = answered;
        let over = loop {
            let now = clock::now();
            match lab.handle.status(ANSWER_TIMEOUT) {
                // A port without its link: the switch is older than this program.
                Ok(status) if status.ports.len() > 2 * status.links.len() => break Some(OTHER_VERSION),
                Ok(status) => {
                    answered = now;
                    next = now.max(next + lab.show(&status));
                }
                Err(AskError::Strange) => break Some(OTHER_VERSION),
                Err(_) if !lab.handle.is_up() => break Some("the network is down"),
                Err(_) if now.since(answered) >= SILENCE => break Some("the switch does not answer"),
                Err(_) => next = now + INTERVAL,
            }
            clock::sleep_until(next);
            // Whoever comes later finds none, and starts another thread.
            let mut watched = locked(&self.watched);
            if lab.newest.receiver_count() == 0 {
                watched.remove(lab.handle.name());
                break None;
            }
        };
        if let Some(reason) = over {
            locked(&self.watched).remove(lab.handle.name());
            // It is set once, here.
            let _ = lab.over.set(reason);
            let bytes = message("end", None, &LabEnd { reason });
            lab.newest.send_modify(|newest| newest.end = Some(bytes));
        }
    }
}

fn unreadable(error: &LabResourceError) -> HttpProblem {
    tracing::error!(%error, "the folder of emulated networks");
    HttpProblem::new(INTERNAL, "emulated networks cannot be listed; the log of the server says why")
}

impl WatchedLab {
    /// Shows an answer to the viewers; the time until the next one.
    fn show(&self, status: &Status) -> Duration {
        // Nobody waits for the lock while the switch is asked.
        let history = if locked(&self.state).is_none() { self.history() } else { None };
        let mut state = locked(&self.state);
        let has_changed = match &mut *state {
            Some(state) => state.update(status),
            empty => {
                *empty =
                    Some(LabState::new(status, history.as_ref().map(|(until, history)| (*until, history))));
                true
            }
        };
        let frame = state.as_ref().map(|state| message("frame", None, state.frame())).unwrap_or_default();
        let bits = (self.newest.receiver_count() * frame.len() * 8) as f64;
        // The state is locked: whoever is told to take a snapshot finds this one or a newer one.
        self.newest.send_modify(|newest| {
            newest.frame = frame;
            newest.snapshots += u64::from(has_changed);
        });
        INTERVAL.max(Duration::from_secs_f64(bits / MAX_BPS))
    }

    /// The counters of the last minute, and until when.
    fn history(&self) -> Option<(Mono, PortHistory)> {
        let until = clock::now();
        Some((until, self.handle.history(COURSE, ANSWER_TIMEOUT).ok()?))
    }

    /// What a viewer gets first; absent until the switch has answered.
    pub(crate) fn snapshot(&self) -> Option<LabSnapshot> {
        locked(&self.state).as_ref().map(LabState::snapshot)
    }

    /// The same as a message of an event stream.
    pub(crate) fn snapshot_message(&self) -> Bytes {
        self.snapshot().map(|snapshot| message("snapshot", None, &snapshot)).unwrap_or_default()
    }
}

impl LabViewer {
    /// Waits until there is a snapshot.
    ///
    /// # Errors
    /// The lab went down, or its switch does not answer.
    pub(crate) async fn first(&mut self) -> Result<LabSnapshot, HttpProblem> {
        let seen = self.messages.wait_for(|message| message.snapshots > 0 || message.end.is_some());
        let _ = tokio::time::timeout(SILENCE + ANSWER_TIMEOUT, seen).await;
        let why = self.lab.over.get().copied().unwrap_or("the switch does not answer");
        self.lab.snapshot().ok_or_else(|| HttpProblem::new(NOT_FOUND, why))
    }
}
