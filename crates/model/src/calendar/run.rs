//! One time that something is measured.

use linerate_units::Span;
use serde::{Deserialize, Serialize};

use super::{CellResult, UnixTime};
use crate::{ForeignText, TestSpec};

/// What became of a run. Every run reaches exactly one of the states that [end](CalendarRunState::is_end).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CalendarRunState {
    /// It has a time.
    Booked,
    /// It measures.
    Running,
    /// It measured.
    Finished,
    /// It could not measure, or not to its end.
    Failed,
    /// Its time passed before it could begin.
    Missed,
    /// A run with a higher priority took its time.
    Preempted,
    /// A user cancelled it.
    Cancelled,
    /// There was no time for it.
    NotBooked,
}

impl CalendarRunState {
    /// Every state, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Booked,
        Self::Running,
        Self::Finished,
        Self::Failed,
        Self::Missed,
        Self::Preempted,
        Self::Cancelled,
        Self::NotBooked,
    ];

    /// Its name, in results and databases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Booked => "booked",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Preempted => "preempted",
            Self::Cancelled => "cancelled",
            Self::NotBooked => "not_booked",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether no other state follows.
    #[must_use]
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Booked | Self::Running)
    }
}

/// One time that a schedule was due, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarRun {
    /// Its name, which the run in the archive has too.
    pub id: String,
    /// Its schedule.
    pub schedule: String,
    /// The mesh that it belongs to.
    pub mesh: Option<String>,
    /// The host that is the client.
    pub from: String,
    /// The host that is the server.
    pub to: String,
    /// What it measures.
    pub spec: TestSpec,
    /// The run that crossed a limit, if this one is made to see whether it does so again.
    pub confirms: Option<String>,
    /// When it was due.
    pub due: UnixTime,
    /// How often it was tried before: a run that was missed or preempted is booked again within its window.
    pub attempt: u32,
    /// When it may begin at the latest.
    pub latest: UnixTime,
    /// When its reservations begin, set-up included. For a run without reservations, when it was due.
    pub starts: UnixTime,
    /// When its reservations end.
    pub ends: UnixTime,
    /// Time before the traffic for connecting and preparing.
    pub set_up: Span,
    /// Time after the traffic for what still arrives.
    pub settle: Span,
    /// The higher one comes first; 0 to 9.
    pub priority: u8,
    /// What became of it.
    pub state: CalendarRunState,
    /// Why it is in this state; empty for one that is booked, runs, or finished.
    pub reason: ForeignText,
    /// The epoch of the coordinator that wrote its state.
    pub epoch: u64,
    /// When it began.
    pub begun: Option<UnixTime>,
    /// When it ended.
    pub ended: Option<UnixTime>,
    /// What it measured.
    pub result: Option<CellResult>,
    /// Whether its agent may have it in its calendar, and carries it out unless it hears of another one.
    pub handed: bool,
}
