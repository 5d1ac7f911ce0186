//! Answers as JSON documents. Times are in RFC 3339 format, in UTC; what is missing is absent.

mod entries;
mod reasons;

use std::collections::BTreeMap;

use jiff::Timestamp;
use linerate_model::calendar::{
    AlarmKind, AlarmLimits, CalendarRunState, CellResult, FleetAnswer, QuietHours, UnixTime,
};
use linerate_model::{ForeignText, TestSpec};
use linerate_units::Span;
use serde::Serialize;
use serde_json::{Value, to_value};

pub use reasons::{ObstacleEntry, WhenEntry};

/// Declares a document or a part of one: serialised, with a schema for the description of the HTTP interface.
macro_rules! documents {
    ($($(#[$meta:meta])* pub struct $Name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Serialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            pub struct $Name {
                $($(#[$field_meta])* pub $field: $type,)+
            }
        )+
    };
}

documents! {
    /// The agents that carry out the calendar by themselves.
    pub struct AgentsDocument {
        /// `linerate.agents/1`.
        schema: &'static str,
        /// By name.
        agents: Vec<EnrolledAgentEntry>,
    }

    /// An agent that carries out the calendar by itself.
    pub struct EnrolledAgentEntry {
        /// Its host.
        name: ForeignText,
        /// Its public key.
        key: ForeignText,
        /// `ready`, `behind` (lacks the newest calendar), `full`, `silent` (for 2 minutes), `never heard` or `revoked`.
        state: &'static str,
        /// When it was enrolled.
        enrolled: String,
        /// When it was revoked.
        #[serde(skip_serializing_if = "Option::is_none")]
        revoked: Option<String>,
        /// When it was heard last.
        #[serde(skip_serializing_if = "Option::is_none")]
        heard: Option<String>,
        /// Number of the newest calendar that was handed out to it; 0 for none.
        version: u64,
        /// Number of the calendar that it has confirmed; 0 for none.
        confirmed: u64,
        /// When its calendar ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
        /// Results that it keeps until they are stored.
        waiting: u64,
        /// Its version of the program.
        #[serde(skip_serializing_if = "Option::is_none")]
        program: Option<ForeignText>,
        /// Why it takes no further runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<ForeignText>,
    }

    /// An agent that was enrolled, revoked or removed.
    pub struct EnrollmentDocument {
        /// `linerate.enrollment/1`.
        schema: &'static str,
        /// Its host.
        host: ForeignText,
        /// Its public key; absent if it was revoked or removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<ForeignText>,
        /// Files that were written.
        written: Vec<String>,
    }

    /// Schedules, and the runs that have not ended.
    pub struct SchedulesDocument {
        /// `linerate.schedules/1`.
        schema: &'static str,
        /// By name.
        schedules: Vec<ScheduleEntry>,
        /// Booked and active runs; on a page, the active ones and the next one of each of its schedules.
        runs: Vec<CalendarRunEntry>,
        /// What to give as `after` for the next page; absent on the last one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }

    /// A schedule.
    pub struct ScheduleEntry {
        /// Its name.
        name: ForeignText,
        /// The mesh that it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        mesh: Option<ForeignText>,
        /// The host that is the client.
        from: ForeignText,
        /// The host that is the server.
        to: ForeignText,
        /// When it is due.
        when: WhenEntry,
        /// Time zone of its times.
        zone: ForeignText,
        /// How much later than due it may begin.
        #[serde(rename = "slip_ns")]
        slip: Span,
        /// Hours in which nothing is measured.
        quiet: Vec<QuietHours>,
        /// 0 to 9; the higher one comes first.
        priority: u8,
        /// Whether others may use the same hosts and links.
        shared: bool,
        /// The last time at which it is due.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
        /// Limits of its results.
        alarm: AlarmLimits,
        /// Whether it is paused.
        paused: bool,
        /// When it is due next, after the runs that are booked.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_due: Option<String>,
        /// What it measures.
        test: TestSpec,
    }

    /// One time that something is measured.
    pub struct CalendarRunEntry {
        /// Its name, also in the archive.
        run: String,
        /// Its schedule.
        schedule: String,
        /// Its mesh.
        #[serde(skip_serializing_if = "Option::is_none")]
        mesh: Option<String>,
        /// The host that is the client.
        from: String,
        /// The host that is the server.
        to: String,
        /// The run whose result it confirms.
        #[serde(skip_serializing_if = "Option::is_none")]
        confirms: Option<String>,
        /// When it was due.
        due: String,
        /// How often it was tried before.
        attempt: u32,
        /// When it may begin at the latest.
        latest: String,
        /// When its reservations begin.
        starts: String,
        /// When its reservations end.
        ends: String,
        /// Its priority.
        priority: u8,
        /// What became of it.
        state: CalendarRunState,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
        /// When it began.
        #[serde(skip_serializing_if = "Option::is_none")]
        begun: Option<String>,
        /// When it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// What it measured.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CellResult>,
    }

    /// Runs.
    pub struct CalendarDocument {
        /// `linerate.calendar/1`.
        schema: &'static str,
        /// The runs.
        runs: Vec<CalendarRunEntry>,
    }

    /// What was changed.
    pub struct ChangeDocument {
        /// `linerate.change/1`.
        schema: &'static str,
        /// The schedule.
        #[serde(skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
        /// What was done with it.
        #[serde(skip_serializing_if = "Option::is_none")]
        done: Option<&'static str>,
        /// Number of runs that were cancelled.
        cancelled: u64,
    }

    /// A part of a resource that a run holds.
    pub struct ReservationEntry {
        /// The resource.
        resource: String,
        /// The run.
        run: String,
        /// Its schedule.
        schedule: String,
        /// Its priority.
        priority: u8,
        /// When it begins.
        starts: String,
        /// When it ends.
        ends: String,
        /// State of the run. What a run that has ended holds may still be in the calendar of its agent.
        state: CalendarRunState,
    }

    /// Why a schedule measures or not.
    pub struct WhyDocument {
        /// `linerate.why/1`.
        schema: &'static str,
        /// The time that is asked about.
        at: String,
        /// The schedule.
        schedule: ScheduleEntry,
        /// What keeps it from measuring.
        obstacles: Vec<ObstacleEntry>,
        /// When everything that it uses is free.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_free: Option<String>,
        /// The active run.
        #[serde(skip_serializing_if = "Option::is_none")]
        active: Option<CalendarRunEntry>,
        /// The next run.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<CalendarRunEntry>,
        /// The newest run that has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<CalendarRunEntry>,
    }

    /// A time at which a test could be made.
    pub struct FreeTimeEntry {
        /// When its reservations could start.
        starts: String,
        /// When they would end.
        ends: String,
    }

    /// LocalTimes at which a test could be made.
    pub struct FreeTimesDocument {
        /// `linerate.free-times/1`.
        schema: &'static str,
        /// The times.
        times: Vec<FreeTimeEntry>,
    }

    /// Meshes.
    pub struct MeshesDocument {
        /// `linerate.meshes/1`.
        schema: &'static str,
        /// The meshes.
        meshes: Vec<MeshEntry>,
        /// What to give as `after` for the next page; absent on the last one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }

    /// A mesh.
    pub struct MeshEntry {
        /// Its name.
        mesh: String,
        /// Its hosts, in the order of the grid.
        hosts: Vec<String>,
        /// Its pairs.
        cells: Vec<CellEntry>,
        /// Number of pairs that a page leaves out, because they are too many; absent if there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u64>,
    }

    /// A pair of a mesh.
    pub struct CellEntry {
        /// The host that is the client.
        from: String,
        /// The host that is the server.
        to: String,
        /// What became of the newest run that has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<CalendarRunState>,
        /// When that was.
        #[serde(skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// Why it has no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
        /// Its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// The newest result, which may be older than the newest run.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CellResult>,
        /// The goodput in few letters, for a grid; absent if it is impossible.
        #[serde(skip_serializing_if = "Option::is_none")]
        short: Option<String>,
        /// When the result was measured.
        #[serde(skip_serializing_if = "Option::is_none")]
        measured: Option<String>,
        /// When it is measured next.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
        /// Alarms that are open.
        alarms: Vec<AlarmEntry>,
    }

    /// Alarms.
    pub struct AlarmsDocument {
        /// `linerate.alarms/1`.
        schema: &'static str,
        /// The newest first.
        alarms: Vec<AlarmEntry>,
    }

    /// A limit that was crossed in two runs in a row.
    pub struct AlarmEntry {
        /// What it is about.
        kind: AlarmKind,
        /// `open` or `cleared`.
        state: &'static str,
        /// The schedule.
        schedule: String,
        /// Its mesh.
        #[serde(skip_serializing_if = "Option::is_none")]
        mesh: Option<String>,
        /// The host that is the client.
        from: String,
        /// The host that is the server.
        to: String,
        /// What was found.
        text: ForeignText,
        /// When the first run ended.
        since: String,
        /// When it was raised.
        raised: String,
        /// When it was cleared.
        #[serde(skip_serializing_if = "Option::is_none")]
        cleared: Option<String>,
        /// The two runs.
        runs: [String; 2],
    }

    /// The coordinator that leads.
    pub struct CoordinatorEntry {
        /// Its name.
        name: ForeignText,
        /// Its epoch.
        epoch: u64,
        /// When its lease ends.
        until: String,
    }

    /// A host of a fleet.
    pub struct AgentEntry {
        /// Its name.
        name: String,
        /// Name or address of its agent.
        address: ForeignText,
        /// Port of its agent.
        port: u16,
        /// Its labels.
        labels: Vec<ForeignText>,
        /// `unknown`, `measuring`, `ready` or `failed`.
        state: &'static str,
        /// When its newest run ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// Why that run has no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
    }

    /// Numbers of schedules.
    pub struct ScheduleCounts {
        /// All of them.
        all: u64,
        /// Those that are paused.
        paused: u64,
    }

    /// The state of a fleet.
    pub struct FleetDocument {
        /// `linerate.fleet/1`.
        schema: &'static str,
        /// Its name.
        name: String,
        /// When its description was stored.
        applied: String,
        /// The coordinator that leads.
        #[serde(skip_serializing_if = "Option::is_none")]
        coordinator: Option<CoordinatorEntry>,
        /// Its hosts.
        agents: Vec<AgentEntry>,
        /// Its schedules.
        schedules: ScheduleCounts,
        /// Number of runs by state, of the last 24 hours and coming ones.
        runs: BTreeMap<&'static str, u64>,
        /// Alarms that are open.
        alarms: Vec<AlarmEntry>,
    }

    /// A mesh before it is measured.
    pub struct MeshPreviewEntry {
        /// Its name.
        name: String,
        /// Number of pairs.
        pairs: usize,
        /// How long each test is reserved.
        #[serde(rename = "length_ns")]
        length: Span,
        /// Whether its tests are shared.
        shared: bool,
    }

    /// How busy a resource is.
    pub struct LoadEntry {
        /// The resource.
        resource: String,
        /// The share of its time.
        share: f64,
    }

    /// What the file of a fleet means.
    pub struct FleetPreviewDocument {
        /// `linerate.fleet-preview/1`.
        schema: &'static str,
        /// Its name.
        name: String,
        /// Number of hosts.
        hosts: usize,
        /// The meshes.
        meshes: Vec<MeshPreviewEntry>,
        /// What is used, the busiest first.
        loads: Vec<LoadEntry>,
    }
}

/// The answer as a JSON document.
#[must_use]
pub fn document(answer: &FleetAnswer) -> Value {
    // Our own types always have a JSON form.
    match answer {
        FleetAnswer::Added(state) => to_value(SchedulesDocument::new(std::slice::from_ref(state), &[])),
        FleetAnswer::Changed { schedule, done, cancelled } => {
            to_value(ChangeDocument::new(Some(schedule.clone()), Some(done), *cancelled))
        }
        FleetAnswer::Cancelled(count) => to_value(ChangeDocument::new(None, None, *count)),
        FleetAnswer::Schedules(schedules, runs) => to_value(SchedulesDocument::new(schedules, runs)),
        FleetAnswer::Runs(runs) => to_value(CalendarDocument::new(runs)),
        FleetAnswer::Why(answer) => to_value(WhyDocument::new(answer)),
        FleetAnswer::FreeTimes(free) => {
            let entry = |one: &linerate_model::calendar::FreeTime| FreeTimeEntry {
                starts: time(one.starts),
                ends: time(one.ends),
            };
            to_value(FreeTimesDocument {
                schema: "linerate.free-times/1",
                times: free.iter().map(entry).collect(),
            })
        }
        FleetAnswer::Grids(grids) => to_value(MeshesDocument::new(grids)),
        FleetAnswer::Alarms(alarms) => to_value(AlarmsDocument::new(alarms)),
        FleetAnswer::Status(status) => to_value(FleetDocument::new(status)),
        FleetAnswer::Agents(agents, now) => to_value(AgentsDocument::new(agents, *now)),
        FleetAnswer::Enrolled { host, key, written, .. } => {
            to_value(EnrollmentDocument::new(host, Some(key), written))
        }
        FleetAnswer::Revoked { host, written } => to_value(EnrollmentDocument::new(host, None, written)),
        FleetAnswer::AgentRemoved(host) => to_value(EnrollmentDocument::new(host, None, &[])),
        FleetAnswer::Preview(preview) => to_value(FleetPreviewDocument::new(preview)),
    }
    .unwrap_or_default()
}

fn time(at: UnixTime) -> String {
    Timestamp::from_millisecond(at.as_ms()).unwrap_or(Timestamp::MAX).to_string()
}
