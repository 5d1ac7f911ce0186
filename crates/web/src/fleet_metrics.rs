//! The last results of a fleet's meshes, as OpenMetrics.

use linerate_fleet::{FleetCalendar, FleetError, now};
use linerate_model::calendar::{CalendarRunState, FleetAgent, FleetStatus, MeshGrid};
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

/// What a calendar says about the network and about itself.
#[derive(Debug, Default)]
pub(crate) struct FleetResults {
    goodput: Family<CellLabels, FloatGauge>,
    time: Family<CellLabels, FloatGauge>,
    success: Family<CellLabels, Gauge>,
    alarms: Family<AlarmLabels, Gauge>,
    agent_seen: Family<AgentLabels, FloatGauge>,
    agent_waiting: Family<AgentLabels, Gauge>,
    agent_ready: Family<AgentLabels, Gauge>,
    coordinator: Gauge,
    paused: Gauge,
    left_out: Gauge,
}

impl FleetResults {
    pub(crate) fn read(calendar: &mut FleetCalendar) -> Result<Self, FleetError> {
        let results = Self::of(&calendar.status(now())?, &calendar.first_pairs(usize::MAX, now())?);
        results.note_agents(&calendar.agents()?);
        Ok(results)
    }

    fn note_agents(&self, agents: &[FleetAgent]) {
        for agent in agents.iter().take(MAX_PAIRS) {
            let labels = AgentLabels { agent: agent.name.clone() };
            if let Some(seen) = agent.seen {
                self.agent_seen.get_or_create(&labels).set(seen.as_ms() as f64 / 1e3);
            }
            let waiting = i64::try_from(agent.waiting).unwrap_or(i64::MAX);
            self.agent_waiting.get_or_create(&labels).set(waiting);
            let ready = agent.revoked.is_none() && agent.seen.is_some() && agent.note.is_empty();
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
        let cells = grids.iter().flat_map(|grid| grid.cells.iter().map(move |cell| (grid, cell)));
        for (number, (grid, cell)) in cells.enumerate() {
            if number >= MAX_PAIRS {
                results.left_out.inc();
                continue;
            }
            let labels = CellLabels { mesh: grid.name.clone(), src: cell.from.clone(), dst: cell.to.clone() };
            if let Some((state, ended)) = cell.last {
                results.time.get_or_create(&labels).set(ended.as_ms() as f64 / 1e3);
                let finished = state == CalendarRunState::Finished;
                results.success.get_or_create(&labels).set(i64::from(finished));
            }
            let possible = cell.result.as_ref().filter(|(result, _)| !result.is_impossible());
            let goodput = possible.and_then(|(result, _)| result.goodput);
            if let Some(rate) = goodput.map(Bitrate::bps) {
                results.goodput.get_or_create(&labels).set(rate / 8.0);
            }
        }
        results
    }

    pub(crate) fn register(self, registry: &mut Registry) {
        registry.register_with_unit(
            "fleet_goodput",
            "Payload that the receiver got per second, in the last result of this pair",
            Unit::Other("bytes_per_second".to_owned()),
            self.goodput,
        );
        registry.register_with_unit(
            "fleet_last_run_timestamp",
            "When the last test of this pair ended, since 1970",
            Unit::Seconds,
            self.time,
        );
        registry.register(
            "fleet_last_run_success",
            "1 if the last test of this pair has a result",
            self.success,
        );
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
            "1 if this agent takes runs: it is not revoked, was heard, and has room for results",
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
    }
}
