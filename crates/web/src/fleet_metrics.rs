//! The last results of a fleet's meshes and other schedules, as OpenMetrics.

use std::fmt::Debug;
use std::hash::Hash;

use linerate_fleet::{FleetCalendar, FleetError, now};
use linerate_model::calendar::{
    CalendarRunState, CellResult, FleetAgent, FleetStatus, MeshGrid, ScheduleResult, UnixTime,
};
use linerate_units::Bitrate;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::metrics::{FloatGauge, MAX_PAIRS};

/// Of a pair of hosts of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CellLabels {
    mesh: String,
    src: String,
    dst: String,
}

/// Of a schedule that belongs to no mesh.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScheduleLabels {
    schedule: String,
    src: String,
    dst: String,
}

/// Of an alarm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AlarmLabels {
    src: String,
    dst: String,
    kind: String,
}

/// Of an agent that carries out the calendar by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AgentLabels {
    agent: String,
}

/// The last results of what has these labels.
#[derive(Debug)]
struct LastRuns<L> {
    goodput: Family<L, FloatGauge>,
    time: Family<L, FloatGauge>,
    success: Family<L, Gauge>,
}

impl<L: Clone + Hash + Eq> Default for LastRuns<L> {
    fn default() -> Self {
        Self { goodput: Family::default(), time: Family::default(), success: Family::default() }
    }
}

impl<L: Clone + Hash + Eq> LastRuns<L> {
    fn note(&self, labels: &L, last: Option<(CalendarRunState, UnixTime)>, result: Option<&CellResult>) {
        if let Some((state, ended)) = last {
            self.time.get_or_create(labels).set(ended.as_ms() as f64 / 1e3);
            let finished = state == CalendarRunState::Finished;
            self.success.get_or_create(labels).set(i64::from(finished));
        }
        let possible = result.filter(|result| !result.is_impossible());
        if let Some(rate) = possible.and_then(|result| result.goodput).map(Bitrate::bps) {
            self.goodput.get_or_create(labels).set(rate / 8.0);
        }
    }
}

impl<L: EncodeLabelSet + Clone + Hash + Eq + Debug + Send + Sync + 'static> LastRuns<L> {
    /// Registers them as those of `whom`, with names that begin like this.
    fn register(self, registry: &mut Registry, prefix: &str, whom: &str) {
        registry.register_with_unit(
            format!("{prefix}_goodput"),
            format!("Payload that the receiver got per second, in the last result of this {whom}"),
            Unit::Other("bytes_per_second".to_owned()),
            self.goodput,
        );
        registry.register_with_unit(
            format!("{prefix}_last_run_timestamp"),
            format!("When the last test of this {whom} ended, since 1970"),
            Unit::Seconds,
            self.time,
        );
        registry.register(
            format!("{prefix}_last_run_success"),
            format!("1 if the last test of this {whom} has a result"),
            self.success,
        );
    }
}

/// What a calendar says about the network and about itself.
#[derive(Debug, Default)]
pub(crate) struct FleetResults {
    cells: LastRuns<CellLabels>,
    schedules: LastRuns<ScheduleLabels>,
    alarms: Family<AlarmLabels, Gauge>,
    agent_seen: Family<AgentLabels, FloatGauge>,
    agent_waiting: Family<AgentLabels, Gauge>,
    agent_ready: Family<AgentLabels, Gauge>,
    coordinator: Gauge,
    paused: Gauge,
    left_out: Gauge,
    schedules_left_out: Gauge,
}

impl FleetResults {
    /// With one of each series: names of series that are empty are not printed.
    #[cfg(test)]
    pub(crate) fn one_of_each() -> Self {
        let results = Self::default();
        let name = || "name".to_owned();
        let last = Some((CalendarRunState::Finished, now()));
        let cell = CellLabels { mesh: name(), src: name(), dst: name() };
        results.cells.note(&cell, last, None);
        results.cells.goodput.get_or_create(&cell).set(1.0);
        let schedule = ScheduleLabels { schedule: name(), src: name(), dst: name() };
        results.schedules.note(&schedule, last, None);
        results.schedules.goodput.get_or_create(&schedule).set(1.0);
        results.alarms.get_or_create(&AlarmLabels { src: name(), dst: name(), kind: name() }).set(1);
        let agent = AgentLabels { agent: name() };
        results.agent_seen.get_or_create(&agent).set(1.0);
        results.agent_waiting.get_or_create(&agent).set(1);
        results.agent_ready.get_or_create(&agent).set(1);
        results
    }

    pub(crate) fn read(calendar: &mut FleetCalendar) -> Result<Self, FleetError> {
        let now = now();
        let results = Self::of(&calendar.status(now)?, &calendar.first_pairs(MAX_PAIRS, now)?);
        let (schedules, left_out) = calendar.last_results_without_mesh(MAX_PAIRS as u32)?;
        results.note_schedules(&schedules, left_out);
        results.note_agents(&calendar.agents()?, now);
        Ok(results)
    }

    fn note_schedules(&self, schedules: &[ScheduleResult], left_out: u64) {
        self.schedules_left_out.set(i64::try_from(left_out).unwrap_or(i64::MAX));
        for one in schedules {
            let labels =
                ScheduleLabels { schedule: one.name.clone(), src: one.from.clone(), dst: one.to.clone() };
            self.schedules.note(&labels, one.last, one.result.as_ref());
        }
    }

    fn note_agents(&self, agents: &[FleetAgent], now: UnixTime) {
        for agent in agents.iter().take(MAX_PAIRS) {
            let labels = AgentLabels { agent: agent.name.clone() };
            if let Some(seen) = agent.seen {
                self.agent_seen.get_or_create(&labels).set(seen.as_ms() as f64 / 1e3);
            }
            let waiting = i64::try_from(agent.waiting).unwrap_or(i64::MAX);
            self.agent_waiting.get_or_create(&labels).set(waiting);
            let ready = agent.revoked.is_none() && !agent.is_silent(now) && agent.note.is_empty();
            self.agent_ready.get_or_create(&labels).set(i64::from(ready));
        }
    }

    fn of(status: &FleetStatus, grids: &[MeshGrid]) -> Self {
        let results = Self::default();
        results.coordinator.set(i64::from(status.coordinator.is_some()));
        results.paused.set(i64::try_from(status.schedules.1).unwrap_or(i64::MAX));
        for alarm in status.alarms.iter().take(MAX_PAIRS) {
            let labels = AlarmLabels {
                src: alarm.from.clone(),
                dst: alarm.to.clone(),
                kind: alarm.kind.name().to_owned(),
            };
            results.alarms.get_or_create(&labels).set(1);
        }
        for grid in grids {
            results.left_out.inc_by(i64::try_from(grid.left_out).unwrap_or(i64::MAX));
            for cell in &grid.cells {
                let labels =
                    CellLabels { mesh: grid.name.clone(), src: cell.from.clone(), dst: cell.to.clone() };
                results.cells.note(&labels, cell.last, cell.result.as_ref().map(|(result, _)| result));
            }
        }
        results
    }

    pub(crate) fn register(self, registry: &mut Registry) {
        self.cells.register(registry, "fleet", "pair");
        self.schedules.register(registry, "fleet_schedule", "schedule, which belongs to no mesh");
        registry.register("fleet_alarms", "1 for each alarm that is not cleared", self.alarms);
        registry.register_with_unit(
            "fleet_agent_seen_timestamp",
            "When this agent was heard last, since 1970",
            Unit::Seconds,
            self.agent_seen,
        );
        registry.register(
            "fleet_agent_waiting_results",
            "Results that this agent keeps until they are stored",
            self.agent_waiting,
        );
        registry.register(
            "fleet_agent_ready",
            "1 if this agent takes runs: it is not revoked, was heard within 2 minutes, and has room for results",
            self.agent_ready,
        );
        registry.register(
            "fleet_coordinator",
            "1 if a coordinator carries out the calendar",
            self.coordinator,
        );
        registry.register("fleet_schedules_paused", "Schedules that are paused", self.paused);
        registry.register(
            "fleet_pairs_left_out",
            "Pairs whose results do not fit into this list",
            self.left_out,
        );
        registry.register(
            "fleet_schedules_left_out",
            "Schedules without a mesh whose results do not fit into this list",
            self.schedules_left_out,
        );
    }
}
