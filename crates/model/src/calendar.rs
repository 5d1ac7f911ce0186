//! The calendar of a fleet: what is measured when, and what each measurement uses of hosts and links.
//!
//! A [`Schedule`] says what to measure and how often. Each time that it is due becomes a [`CalendarRun`], which holds
//! a [`ResourceReservation`] on every [`Resource`] that it uses.

mod agent;
mod alarm;
mod answer;
mod cell;
mod fleet_answer;
mod quiet_hours;
mod resource;
mod run;
mod schedule;
mod unix_time;

pub use agent::{FleetAgent, FleetAgentState};
pub use alarm::{Alarm, AlarmKind, AlarmLimits};
pub use answer::{
    FleetHostState, FleetHostStatus, FleetPreview, FleetStatus, FreeTime, MeshPreview, ResourceLoad,
    ScheduleObstacle, WhyAnswer,
};
pub use cell::{CellResult, MeshCell, MeshGrid, ScheduleResult};
pub use fleet_answer::FleetAnswer;
pub use quiet_hours::{QuietHours, QuietHoursError};
pub use resource::{Resource, ResourceKind, ResourceReservation, ResourceUse};
pub use run::{CalendarRun, CalendarRunState};
pub use schedule::{Recurrence, Schedule, ScheduleState};
pub use unix_time::UnixTime;
