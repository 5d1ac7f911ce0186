//! What a user of a calendar asked for.

use super::{
    Alarm, CalendarRun, FleetAgent, FleetPreview, FleetStatus, FreeTime, MeshGrid, ScheduleState, UnixTime,
    WhyAnswer,
};

/// The answer to a question about a calendar, or what was done.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetAnswer {
    /// A schedule that was added.
    Added(Box<ScheduleState>),
    /// What was done with a schedule, in the past tense, and how many runs were cancelled.
    Changed {
        /// The name of the schedule.
        schedule: String,
        /// What was done, such as `paused`.
        done: &'static str,
        /// Runs that were cancelled.
        cancelled: u64,
    },
    /// How many runs were cancelled.
    Cancelled(u64),
    /// Schedules, and the runs that have not ended.
    Schedules(Vec<ScheduleState>, Vec<CalendarRun>),
    /// Runs.
    Runs(Vec<CalendarRun>),
    /// Why a schedule runs or not.
    Why(Box<WhyAnswer>),
    /// Times at which a test could be made.
    FreeTimes(Vec<FreeTime>),
    /// Meshes.
    Grids(Vec<MeshGrid>),
    /// Alarms.
    Alarms(Vec<Alarm>),
    /// The state of the fleet.
    Status(Box<FleetStatus>),
    /// Agents, and what time it is.
    Agents(Vec<FleetAgent>, UnixTime),
    /// An agent was enrolled.
    Enrolled {
        /// Its host.
        host: String,
        /// Its public key.
        key: String,
        /// Files that were written.
        written: Vec<String>,
        /// Whether one of them is for the broker, which has to read it.
        reload_broker: bool,
    },
    /// An agent was revoked.
    Revoked {
        /// Its host.
        host: String,
        /// Files that were written.
        written: Vec<String>,
    },
    /// An agent was removed; its host.
    AgentRemoved(String),
    /// What the file of a fleet means.
    Preview(Box<FleetPreview>),
}
