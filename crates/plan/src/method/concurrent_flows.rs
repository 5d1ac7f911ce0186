//! Flows that share a path: their totals and fairness, each class of packets, the latency that they cause, and
//! the ports that they fill.

use linerate_model::metrics::port;
use linerate_model::{
    Direction, Dscp, MethodCell, MethodColumn, MethodRow, MethodTable, PlanPoint, PlanRecord, RunRecord,
    Workload,
};
use linerate_theory::stats::order::median;

use super::points::{FlowAtPoint, Points, numbers, text_column};
use crate::plan::Plan;
use crate::point::{Point, PointFlow};
use crate::progress::is_complete;

/// A port that was busy for a smaller share of the time limits nothing.
const BUSY_SHARE: f64 = 0.9;

/// The tables of the method.
pub(super) fn tables(
    plan: &Plan,
    record: &PlanRecord,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<MethodTable> {
    let Some(points) = Points::of(record) else { return Vec::new() };
    let known = |number: usize| plan.point(number).ok();
    let known: Vec<Point> = (0..plan.grid.len()).filter_map(known).collect();
    let measured: Vec<MeasuredPoint<'_>> = points
        .start
        .points
        .iter()
        .filter_map(|at| {
            Some(MeasuredPoint { at, point: known.iter().find(|one| at.id == one.id.to_string())? })
        })
        .collect();
    let view = ConcurrentFlows { plan, record, points: &points, measured: &measured };
    [view.totals(), view.classes(), view.latency(), view.ports(runs)].into_iter().flatten().collect()
}

/// A point of the record, and what the plan measures there.
#[derive(Clone, Copy)]
struct MeasuredPoint<'r> {
    at: &'r PlanPoint,
    point: &'r Point,
}

struct ConcurrentFlows<'r> {
    plan: &'r Plan,
    record: &'r PlanRecord,
    points: &'r Points<'r>,
    measured: &'r [MeasuredPoint<'r>],
}

/// Flows that are measured at the same time, with what they have together in each direction.
struct FlowsAtOnce<'r> {
    flows: Vec<&'r str>,
    ways: [FlowAtPoint<'r>; 2],
}

impl<'r> ConcurrentFlows<'r> {
    fn axis_columns(&self) -> Vec<MethodColumn> {
        self.points.start.axes.iter().map(|axis| text_column(&axis.name)).collect()
    }

    fn axis_cells(&self, at: &PlanPoint) -> Vec<MethodCell> {
        let label = |axis| self.points.label(at, axis).map_or_else(MethodCell::default, MethodCell::text);
        (0..self.points.start.axes.len()).map(label).collect()
    }

    /// Streams of data at a point that are judged.
    fn streams(of: MeasuredPoint<'r>) -> impl Iterator<Item = &'r PointFlow> {
        of.point.tests.iter().filter(|test| !test.cross_traffic && carries_data(test))
    }

    /// Whether the flows differ in the class of their packets.
    fn has_classes(&self) -> bool {
        let mut classes = self.measured.iter().flat_map(|of| &of.point.tests).map(class);
        let first = classes.next();
        classes.any(|other| Some(other) != first)
    }

    /// The name of a flow, and the class of its packets if there are several.
    fn flow_cells(&self, test: &PointFlow) -> Vec<MethodCell> {
        let class = self.has_classes().then(|| MethodCell::text(class(test).to_string()));
        std::iter::once(MethodCell::text(test.flow.as_str())).chain(class).collect()
    }

    /// Flows with the same sums in both directions were measured at the same time.
    fn at_once(&self, of: MeasuredPoint<'r>) -> Vec<FlowsAtOnce<'r>> {
        let mut groups: Vec<FlowsAtOnce<'r>> = Vec::new();
        for test in Self::streams(of) {
            let ways = both(of.at, &test.flow);
            let sums = |ways: &[FlowAtPoint<'_>; 2]| ways.map(|way| self.points.number(&way, "total"));
            if sums(&ways) == [None, None] {
                continue;
            }
            match groups.iter_mut().find(|group| sums(&group.ways) == sums(&ways)) {
                Some(group) => group.flows.push(&test.flow),
                None => groups.push(FlowsAtOnce { flows: vec![&test.flow], ways }),
            }
        }
        groups
    }

    fn totals(&self) -> Option<MethodTable> {
        let groups = |of: MeasuredPoint<'r>| self.at_once(of).into_iter().map(move |group| (of.at, group));
        let groups: Vec<(&PlanPoint, FlowsAtOnce<'_>)> =
            self.measured.iter().copied().flat_map(groups).collect();
        if groups.is_empty() {
            return None;
        }
        // The flows need no name if all points have the same.
        let named = groups.windows(2).any(|pair| pair[0].1.flows != pair[1].1.flows);
        let mut columns = self.axis_columns();
        columns.extend(named.then(|| text_column("flows")));
        columns.extend([
            numbers("total up", "bit/s"),
            numbers("fairness up", "1"),
            numbers("total down", "bit/s"),
            numbers("fairness down", "1"),
        ]);
        let rows = groups.iter().map(|(at, group)| {
            let mut cells = self.axis_cells(at);
            cells.extend(named.then(|| MethodCell::text(group.flows.join(" "))));
            for way in &group.ways {
                cells.extend(["total", "fairness"].map(|quantity| self.points.cell(way, quantity)));
            }
            MethodRow { point: Some(at.id.clone()), cells }
        });
        Some(MethodTable {
            title: "All flows together".into(),
            about: "Sum of the goodputs of the flows measured at the same time, and Jain's index: 1 if all \
                    have the same goodput, 1/n if one of n has everything."
                .into(),
            columns,
            rows: rows.collect(),
            notes: Vec::new(),
        })
    }

    /// The rate of each flow, if the flows differ in the class of their packets.
    fn classes(&self) -> Option<MethodTable> {
        let flows = |of: MeasuredPoint<'r>| {
            let at = of.at;
            Self::streams(of).map(move |test| (at, test))
        };
        let flows: Vec<(&PlanPoint, &PointFlow)> = self.measured.iter().copied().flat_map(flows).collect();
        if !self.has_classes() {
            return None;
        }
        let mut columns = self.axis_columns();
        columns.extend([
            text_column("flow"),
            text_column("class"),
            numbers("up", "bit/s"),
            numbers("of total", "%"),
            numbers("down", "bit/s"),
            numbers("of total", "%"),
        ]);
        let rows = flows.iter().map(|(at, test)| {
            let mut cells = self.axis_cells(at);
            cells.extend([MethodCell::text(test.flow.as_str()), MethodCell::text(class(test).to_string())]);
            for way in both(at, &test.flow) {
                let total = self.points.number(&way, "total").filter(|total| *total > 0.0);
                let share = self.points.number(&way, "goodput").zip(total);
                cells.push(self.points.cell(&way, "goodput"));
                cells.push(MethodCell::number(share.map(|(rate, total)| 100.0 * rate / total)));
            }
            MethodRow { point: Some(at.id.clone()), cells }
        });
        Some(MethodTable {
            title: "Goodput of each class".into(),
            about: "Class: the DSCP of the packets in both directions.".into(),
            columns,
            rows: rows.collect(),
            notes: Vec::new(),
        })
    }

    /// Time of transactions during the load, or without transactions the round-trip time of the probes.
    fn latency(&self) -> Option<MethodTable> {
        let mut rows: Vec<MethodRow> = Vec::new();
        let mut requests = false;
        for of in self.measured.iter().copied() {
            let pairs = self.transactions(of);
            requests |= !pairs.is_empty();
            rows.extend(pairs.iter().map(|(idle, loaded)| self.transaction_row(of, *idle, loaded)));
        }
        if !requests {
            let probes = |of: MeasuredPoint<'r>| {
                let row = |test| self.probe_row(of.at, test);
                Self::streams(of).filter_map(row).collect::<Vec<_>>()
            };
            rows.extend(self.measured.iter().copied().flat_map(probes));
        }
        if rows.is_empty() {
            return None;
        }
        let mut columns = self.axis_columns();
        columns.push(text_column("flow"));
        columns.extend(self.has_classes().then(|| text_column("class")));
        columns.extend([
            numbers("idle", "ns"),
            numbers("loaded", "ns"),
            numbers("p99", "ns"),
            numbers("max", "ns"),
            numbers("unanswered", "1"),
        ]);
        let about = if requests {
            "Time of a request and its response, as medians before the load (idle) and during it (loaded), \
             and the 99th percentile and the maximum during it. Requests that were not answered within a \
             second have no time and are counted."
        } else {
            "Round-trip time of probes, as medians before the load (idle) and during it (loaded), and the \
             99th percentile and the maximum during it."
        };
        Some(MethodTable {
            title: "Latency under load".into(),
            about: about.into(),
            columns,
            rows,
            notes: Vec::new(),
        })
    }

    /// Flows of transactions that run during the load, each with the same flow without load.
    fn transactions(&self, of: MeasuredPoint<'r>) -> Vec<(Option<&'r PointFlow>, &'r PointFlow)> {
        let times = self.plan.measured_times(of.point);
        let tests = of.point.tests.iter();
        let flows: Vec<_> = tests.filter_map(|test| Some((test, times.get(test.flow.as_str())?))).collect();
        let is_loaded = |time| flows.iter().any(|(test, other)| carries_data(test) && other.overlaps(time));
        let asks = |test: &PointFlow| !carries_data(test) && test.spec.sweep.is_none() && !test.cross_traffic;
        let found = flows.iter().filter(|(test, time)| asks(test) && is_loaded(time)).map(|(loaded, _)| {
            let like = |test: &PointFlow| {
                (&test.from, &test.to, class(test), test.spec.traffic.udp, &test.spec.transactions.workload)
                    == (
                        &loaded.from,
                        &loaded.to,
                        class(loaded),
                        loaded.spec.traffic.udp,
                        &loaded.spec.transactions.workload,
                    )
            };
            let idle = flows.iter().find(|(test, time)| asks(test) && !is_loaded(time) && like(test));
            (idle.map(|(test, _)| *test), *loaded)
        });
        found.collect()
    }

    fn transaction_row(
        &self,
        of: MeasuredPoint<'r>,
        idle: Option<&PointFlow>,
        loaded: &PointFlow,
    ) -> MethodRow {
        let way = |test: &'_ PointFlow, quantity: &str| {
            let found = both(of.at, &test.flow);
            found.iter().map(|way| self.points.cell(way, quantity)).find(|cell| cell.value.is_some())
        };
        let mut cells = self.axis_cells(of.at);
        cells.extend(self.flow_cells(loaded));
        cells.push(idle.and_then(|test| way(test, "transaction_p50")).unwrap_or_default());
        let quantities = ["transaction_p50", "transaction_p99", "transaction_max", "transactions_failed"];
        cells.extend(quantities.map(|quantity| way(loaded, quantity).unwrap_or_default()));
        MethodRow { point: Some(of.at.id.clone()), cells }
    }

    fn probe_row(&self, at: &PlanPoint, test: &PointFlow) -> Option<MethodRow> {
        let ways = both(at, &test.flow);
        let way = ways.iter().find(|way| self.points.find(way, "rtt").is_some())?;
        let mut cells = self.axis_cells(at);
        cells.extend(self.flow_cells(test));
        cells.extend(
            ["rtt_idle", "rtt", "rtt_p99", "rtt_max"].map(|quantity| self.points.cell(way, quantity)),
        );
        Some(MethodRow { point: Some(at.id.clone()), cells })
    }

    /// The ports of an emulated network that were busy or dropped packets while the flows were measured.
    fn ports(&self, runs: &dyn Fn(&str) -> Option<RunRecord>) -> Option<MethodTable> {
        let mut rows = Vec::new();
        for of in self.measured.iter().copied() {
            let mut found: Vec<(String, Vec<PortLoad>)> = Vec::new();
            for (name, totals) in self.trials(of, runs).into_iter().flatten() {
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, all)) => all.push(totals),
                    None => found.push((name, vec![totals])),
                }
            }
            for (name, trials) in found {
                let of_trials =
                    |figure: fn(&PortLoad) -> f64| median(&trials.iter().map(figure).collect::<Vec<f64>>());
                let drops = trials.iter().any(|trial| trial.dropped > 0.0);
                let busy = of_trials(|trial| trial.busy);
                if !drops && busy.is_none_or(|busy| busy < BUSY_SHARE) {
                    continue;
                }
                let mut cells = self.axis_cells(of.at);
                cells.push(MethodCell::text(name));
                cells.push(MethodCell::number(busy.map(|share| share * 100.0)));
                let figures: [fn(&PortLoad) -> f64; 3] =
                    [|trial| trial.packets, |trial| trial.dropped, |trial| trial.queue_max];
                cells.extend(figures.map(|figure| MethodCell::number(of_trials(figure))));
                rows.push(MethodRow { point: Some(of.at.id.clone()), cells });
            }
        }
        if rows.is_empty() {
            return None;
        }
        let mut columns = self.axis_columns();
        columns.extend([
            text_column("port"),
            numbers("busy", "%"),
            numbers("packets", "1"),
            numbers("dropped", "1"),
            numbers("largest queue", "bytes"),
        ]);
        Some(MethodTable {
            title: "Full ports of the lab".into(),
            about:
                "Ports that sent for at least nine tenths of the time, or dropped packets. s>c is the port \
                    of s towards c. Medians of the trials."
                    .into(),
            columns,
            rows,
            notes: Vec::new(),
        })
    }

    /// The ports in every complete trial of a point.
    fn trials(
        &self,
        of: MeasuredPoint<'r>,
        runs: &dyn Fn(&str) -> Option<RunRecord>,
    ) -> Vec<Vec<(String, PortLoad)>> {
        let trials = self.record.trials.iter().filter(|trial| trial.point == of.at.id && is_complete(trial));
        let ports = trials.filter_map(|trial| {
            // Every flow saw the same ports. The one that ran the longest saw most of the load.
            let streams = trial.runs.iter().filter(|run| Self::streams(of).any(|test| run.flow == test.flow));
            let seen = streams.filter_map(|run| Some(PortLoad::of(&runs(&run.run)?)));
            seen.max_by(|one, other| {
                let seconds =
                    |all: &[(String, PortLoad)]| all.iter().map(|(_, one)| one.seconds).sum::<f64>();
                seconds(one).total_cmp(&seconds(other))
            })
        });
        ports.collect()
    }
}

/// A flow at a point, in both directions.
fn both<'p>(at: &'p PlanPoint, flow: &'p str) -> [FlowAtPoint<'p>; 2] {
    [Direction::Upload, Direction::Download].map(|direction| FlowAtPoint { point: at, flow, direction })
}

/// Whether a flow sends data, rather than requests or a series of messages.
fn carries_data(test: &PointFlow) -> bool {
    test.spec.sweep.is_none() && test.spec.transactions.workload == Workload::Stream
}

/// The class of a flow's packets.
fn class(test: &PointFlow) -> Dscp {
    Dscp::of_tos_byte(test.spec.socket.tos_byte().unwrap_or(0))
}

/// What a port did in the measured part of a run.
#[derive(Debug, Clone, Copy, Default)]
struct PortLoad {
    seconds: f64,
    /// Share of the time in which it sent.
    busy: f64,
    packets: f64,
    dropped: f64,
    /// Bytes.
    queue_max: f64,
}

impl PortLoad {
    /// All ports of a run, by name.
    fn of(run: &RunRecord) -> Vec<(String, Self)> {
        let mut found: Vec<(String, Self)> = Vec::new();
        for record in &run.ports {
            let mut totals = Self::default();
            for sample in record.samples.iter().filter(|sample| !sample.outside) {
                let (readings, seconds) = (&sample.readings, sample.span().as_secs_f64());
                let count = |metric| readings.get(metric).unwrap_or(0_u64) as f64;
                totals.seconds += seconds;
                totals.busy += readings.get(port::BUSY).map_or(0.0, linerate_units::Ratio::get) * seconds;
                totals.packets += count(port::PACKETS);
                totals.dropped += count(port::DROPPED);
                let queue = readings.get(port::QUEUE_MAX).map_or(0.0, |queue| queue.get() as f64);
                totals.queue_max = totals.queue_max.max(queue);
            }
            if totals.seconds > 0.0 {
                totals.busy /= totals.seconds;
                // Phases of a run follow each other: the fuller one counts.
                match found.iter_mut().find(|(name, _)| *name == *record.port) {
                    Some((_, known)) if known.busy >= totals.busy => {}
                    Some((_, known)) => *known = totals,
                    None => found.push((record.port.to_string(), totals)),
                }
            }
        }
        found
    }
}
