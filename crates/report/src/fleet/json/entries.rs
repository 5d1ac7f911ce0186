//! The documents and their entries, made from what a calendar answers.

use linerate_model::ForeignText;
use linerate_model::calendar::{
    Alarm, CalendarRun, FleetAgent, FleetPreview, FleetStatus, MeshCell, MeshGrid, Recurrence,
    ResourceReservation, ScheduleObstacle, ScheduleState, UnixTime, WhyAnswer,
};

use super::{
    AgentEntry, AgentsDocument, AlarmEntry, AlarmsDocument, CalendarDocument, CalendarRunEntry, CellEntry,
    ChangeDocument, CoordinatorEntry, EnrolledAgentEntry, EnrollmentDocument, FleetDocument,
    FleetPreviewDocument, LoadEntry, MeshEntry, MeshPreviewEntry, MeshesDocument, ObstacleEntry,
    ReservationEntry, ScheduleCounts, ScheduleEntry, SchedulesDocument, WhenEntry, WhyDocument, time,
};
use crate::fleet::compact_rate;

fn given(text: &ForeignText) -> Option<ForeignText> {
    Some(text.clone()).filter(|text| !text.is_empty())
}

impl AgentsDocument {
    /// Agents that carry out the calendar by themselves.
    #[must_use]
    pub fn new(agents: &[FleetAgent], now: UnixTime) -> Self {
        let entry = |agent: &FleetAgent| EnrolledAgentEntry {
            name: agent.name.as_str().into(),
            key: agent.key.as_str().into(),
            state: crate::fleet::agents::state(agent, now),
            enrolled: time(agent.enrolled),
            revoked: agent.revoked.map(time),
            heard: agent.seen.map(time),
            version: agent.version,
            confirmed: agent.acked,
            until: Some(agent.until).filter(|_| agent.acked > 0).map(time),
            waiting: agent.waiting,
            program: given(&agent.program),
            note: given(&agent.note),
        };
        Self { schema: "linerate.agents/1", agents: agents.iter().map(entry).collect() }
    }
}

impl EnrollmentDocument {
    /// What was done with an agent.
    #[must_use]
    pub fn new(host: &str, key: Option<&String>, written: &[String]) -> Self {
        Self {
            schema: "linerate.enrollment/1",
            host: host.into(),
            key: key.map(|key| key.as_str().into()),
            written: written.to_vec(),
        }
    }
}

impl ChangeDocument {
    /// What was done with a schedule, and how many runs were cancelled.
    #[must_use]
    pub fn new(schedule: Option<String>, done: Option<&'static str>, cancelled: u64) -> Self {
        Self { schema: "linerate.change/1", schedule, done, cancelled }
    }
}

impl SchedulesDocument {
    /// Schedules, and the runs that have not ended.
    #[must_use]
    pub fn new(schedules: &[ScheduleState], runs: &[CalendarRun]) -> Self {
        Self {
            schema: "linerate.schedules/1",
            schedules: schedules.iter().map(ScheduleEntry::new).collect(),
            runs: runs.iter().map(CalendarRunEntry::new).collect(),
            next: None,
        }
    }

    /// As a page, after which the next one begins here.
    #[must_use]
    pub fn before(self, next: Option<String>) -> Self {
        Self { next, ..self }
    }
}

impl ScheduleEntry {
    fn new(state: &ScheduleState) -> Self {
        let schedule = state.schedule.clone();
        Self {
            name: schedule.name,
            mesh: schedule.mesh,
            from: schedule.from,
            to: schedule.to,
            when: match schedule.recurrence {
                Recurrence::Cron(cron) => WhenEntry::Cron { cron },
                Recurrence::Every { period, jitter, .. } => WhenEntry::Every { period, jitter },
                Recurrence::Once(at) => WhenEntry::Once { at: time(at) },
            },
            zone: schedule.zone,
            slip: schedule.slip,
            quiet: schedule.quiet,
            priority: schedule.priority,
            shared: schedule.shared,
            until: schedule.until.map(time),
            alarm: schedule.alarm,
            paused: state.paused,
            next_due: state.next_due.map(time),
            test: schedule.spec,
        }
    }
}

impl CalendarDocument {
    /// Runs.
    #[must_use]
    pub fn new(runs: &[CalendarRun]) -> Self {
        Self { schema: "linerate.calendar/1", runs: runs.iter().map(CalendarRunEntry::new).collect() }
    }
}

impl CalendarRunEntry {
    fn new(run: &CalendarRun) -> Self {
        Self {
            run: run.id.clone(),
            schedule: run.schedule.clone(),
            mesh: run.mesh.clone(),
            from: run.from.clone(),
            to: run.to.clone(),
            confirms: run.confirms.clone(),
            due: time(run.due),
            attempt: run.attempt,
            latest: time(run.latest),
            starts: time(run.starts),
            ends: time(run.ends),
            priority: run.priority,
            state: run.state,
            reason: given(&run.reason),
            begun: run.begun.map(time),
            ended: run.ended.map(time),
            result: run.result.clone(),
        }
    }
}

impl WhyDocument {
    /// Why a schedule measures or not.
    #[must_use]
    pub fn new(why: &WhyAnswer) -> Self {
        let obstacle = |obstacle: &ScheduleObstacle| match obstacle {
            ScheduleObstacle::Paused => ObstacleEntry::Paused,
            ScheduleObstacle::NotDue(due) => ObstacleEntry::NotDue { due: due.map(time) },
            ScheduleObstacle::Quiet(until) => ObstacleEntry::QuietHours { until: time(*until) },
            ScheduleObstacle::Busy(one) => ObstacleEntry::Busy { reservation: ReservationEntry::new(one) },
            ScheduleObstacle::NoCoordinator(last) => {
                ObstacleEntry::NoCoordinator { last_run: last.map(time) }
            }
            ScheduleObstacle::Agent(why) => ObstacleEntry::Agent { reason: why.clone() },
            ScheduleObstacle::AfterLoss(until) => ObstacleEntry::AfterLoss { until: time(*until) },
            ScheduleObstacle::AfterChange(until) => ObstacleEntry::AfterChange { until: time(*until) },
            ScheduleObstacle::Unsettled(until) => ObstacleEntry::Unsettled { until: time(*until) },
        };
        Self {
            schema: "linerate.why/1",
            at: time(why.at),
            schedule: ScheduleEntry::new(&why.state),
            obstacles: why.obstacles.iter().map(obstacle).collect(),
            next_free: why.next_free.map(time),
            active: why.active.as_ref().map(CalendarRunEntry::new),
            next: why.next.as_ref().map(CalendarRunEntry::new),
            last: why.last.as_ref().map(CalendarRunEntry::new),
        }
    }
}

impl ReservationEntry {
    fn new(one: &ResourceReservation) -> Self {
        Self {
            resource: one.resource.clone(),
            run: one.run.clone(),
            schedule: one.schedule.clone(),
            priority: one.priority,
            starts: time(one.starts),
            ends: time(one.ends),
            state: one.state,
        }
    }
}

impl MeshesDocument {
    /// Meshes.
    #[must_use]
    pub fn new(grids: &[MeshGrid]) -> Self {
        let mesh = |grid: &MeshGrid| MeshEntry {
            mesh: grid.name.clone(),
            hosts: grid.hosts.clone(),
            cells: grid.cells.iter().map(CellEntry::new).collect(),
            left_out: Some(grid.left_out).filter(|pairs| *pairs > 0),
        };
        Self { schema: "linerate.meshes/1", meshes: grids.iter().map(mesh).collect(), next: None }
    }

    /// As a page, after which the next one begins here.
    #[must_use]
    pub fn before(self, next: Option<String>) -> Self {
        Self { next, ..self }
    }
}

impl CellEntry {
    fn new(cell: &MeshCell) -> Self {
        let (result, measured) = cell.result.clone().unzip();
        Self {
            from: cell.from.clone(),
            to: cell.to.clone(),
            state: cell.last.map(|(state, _)| state),
            ended: cell.last.map(|(_, at)| time(at)),
            reason: given(&cell.reason),
            run: cell.run.clone(),
            short: result
                .as_ref()
                .filter(|result| !result.is_impossible())
                .and_then(|result| result.goodput)
                .map(compact_rate),
            result,
            measured: measured.map(time),
            next: cell.next.map(time),
            alarms: cell.alarms.iter().map(AlarmEntry::new).collect(),
        }
    }
}

impl AlarmsDocument {
    /// Alarms.
    #[must_use]
    pub fn new(alarms: &[Alarm]) -> Self {
        Self { schema: "linerate.alarms/1", alarms: alarms.iter().map(AlarmEntry::new).collect() }
    }
}

impl AlarmEntry {
    fn new(alarm: &Alarm) -> Self {
        Self {
            kind: alarm.kind,
            state: if alarm.cleared.is_some() { "cleared" } else { "open" },
            schedule: alarm.schedule.clone(),
            mesh: alarm.mesh.clone(),
            from: alarm.from.clone(),
            to: alarm.to.clone(),
            text: alarm.text.clone(),
            since: time(alarm.since),
            raised: time(alarm.raised),
            cleared: alarm.cleared.map(time),
            runs: [alarm.first_run.clone(), alarm.second_run.clone()],
        }
    }
}

impl FleetDocument {
    /// The state of a fleet.
    #[must_use]
    pub fn new(status: &FleetStatus) -> Self {
        let agent = |host: &linerate_model::calendar::FleetHostStatus| AgentEntry {
            name: host.name.clone(),
            address: host.address.clone(),
            port: host.port,
            labels: host.labels.clone(),
            state: host.state.name(),
            since: host.since.map(time),
            reason: given(&host.reason),
        };
        let coordinator = status.coordinator.as_ref().map(|(name, until)| CoordinatorEntry {
            name: name.clone(),
            epoch: status.epoch,
            until: time(*until),
        });
        Self {
            schema: "linerate.fleet/1",
            name: status.name.clone(),
            applied: time(status.applied),
            coordinator,
            agents: status.hosts.iter().map(agent).collect(),
            schedules: ScheduleCounts { all: status.schedules.0, paused: status.schedules.1 },
            runs: status.runs.iter().map(|(state, count)| (state.name(), *count)).collect(),
            alarms: status.alarms.iter().map(AlarmEntry::new).collect(),
        }
    }
}

impl FleetPreviewDocument {
    pub(super) fn new(preview: &FleetPreview) -> Self {
        let mesh = |mesh: &linerate_model::calendar::MeshPreview| MeshPreviewEntry {
            name: mesh.name.clone(),
            pairs: mesh.pairs,
            length: mesh.length,
            shared: mesh.example.shared,
        };
        let load = |load: &linerate_model::calendar::ResourceLoad| LoadEntry {
            resource: load.resource.clone(),
            share: load.share,
        };
        Self {
            schema: "linerate.fleet-preview/1",
            name: preview.name.clone(),
            hosts: preview.hosts,
            meshes: preview.meshes.iter().map(mesh).collect(),
            loads: preview.loads.iter().map(load).collect(),
        }
    }
}
