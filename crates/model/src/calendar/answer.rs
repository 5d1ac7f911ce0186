//! Answers about the calendar: why something does not run now, and the state of the fleet.

use linerate_units::Span;

use super::{Alarm, CalendarRun, CalendarRunState, ResourceReservation, Schedule, ScheduleState, UnixTime};
use crate::ForeignText;

/// What keeps a schedule from measuring now.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleObstacle {
    /// It is paused.
    Paused,
    /// It is not due before this time; absent if never again.
    NotDue(Option<UnixTime>),
    /// The hour is quiet, until this time.
    Quiet(UnixTime),
    /// Another run holds what it needs.
    Busy(ResourceReservation),
    /// No coordinator carries out the calendar, since this time; absent if none ever did.
    NoCoordinator(Option<UnixTime>),
    /// The agent that would measure takes no runs, for this reason.
    Agent(ForeignText),
    /// The database lost what was written last: nothing is booked until all agents have confirmed new calendars, or until
    /// this time.
    AfterLoss(UnixTime),
    /// Agents have runs in hand that were booked by an earlier description of the fleet: nothing is booked until they have
    /// given them back, or until this time.
    AfterChange(UnixTime),
    /// Until this time something may be on the wire that the calendar does not know well: nothing is booked before.
    Unsettled(UnixTime),
}

/// Why a schedule measures now or not.
#[derive(Debug, Clone, PartialEq)]
pub struct WhyAnswer {
    /// The time that is asked about.
    pub at: UnixTime,
    /// The schedule.
    pub state: ScheduleState,
    /// What keeps it from measuring; nothing if it could begin.
    pub obstacles: Vec<ScheduleObstacle>,
    /// When it could begin if it were due then; absent if not within a week.
    pub next_free: Option<UnixTime>,
    /// The run that is active.
    pub active: Option<CalendarRun>,
    /// The run that comes next.
    pub next: Option<CalendarRun>,
    /// The newest run that has ended.
    pub last: Option<CalendarRun>,
}

/// When a test could be made.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeTime {
    /// When its reservations could start.
    pub starts: UnixTime,
    /// When they would end.
    pub ends: UnixTime,
}

/// The state of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetStatus {
    /// Its name.
    pub name: String,
    /// When its description was stored.
    pub applied: UnixTime,
    /// The coordinator, and until when it has the lease; absent if none has it now.
    pub coordinator: Option<(ForeignText, UnixTime)>,
    /// Its epoch.
    pub epoch: u64,
    /// Its hosts.
    pub hosts: Vec<FleetHostStatus>,
    /// Number of schedules, and of those that are paused.
    pub schedules: (u64, u64),
    /// Number of runs by state, of those that begin in the last 24 hours or later.
    pub runs: Vec<(CalendarRunState, u64)>,
    /// Alarms that are not cleared.
    pub alarms: Vec<Alarm>,
}

/// The state of a host of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetHostStatus {
    /// Its name.
    pub name: String,
    /// Name or address of its agent.
    pub address: ForeignText,
    /// The port of its agent.
    pub port: u16,
    /// Its labels.
    pub labels: Vec<ForeignText>,
    /// What its newest run shows of it.
    pub state: FleetHostState,
    /// When that run ended.
    pub since: Option<UnixTime>,
    /// Why that run has no result.
    pub reason: ForeignText,
}

/// What is known of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetHostState {
    /// Nothing was measured with it yet.
    Unknown,
    /// It measures.
    Measuring,
    /// Its newest run has a result.
    Ready,
    /// Its newest run has none.
    Failed,
}

impl FleetHostState {
    /// Its name, in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Measuring => "measuring",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// What the file of a fleet means.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetPreview {
    /// Its name.
    pub name: String,
    /// Number of hosts.
    pub hosts: usize,
    /// The meshes.
    pub meshes: Vec<MeshPreview>,
    /// What is used by the meshes, the busiest first.
    pub loads: Vec<ResourceLoad>,
}

/// What a mesh of a fleet means.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshPreview {
    /// Its name.
    pub name: String,
    /// Number of pairs.
    pub pairs: usize,
    /// When one of its pairs is due, as an example.
    pub example: Schedule,
    /// How long the reservations of a run are.
    pub length: Span,
}

/// How much of its time a resource is reserved by periodic meshes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLoad {
    /// Name of the resource.
    pub resource: String,
    /// The share of its time; above 1 not everything finds a time.
    pub share: f64,
}
