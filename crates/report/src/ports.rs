//! Traffic of the ports of an emulated network, for all formats.

use linerate_model::flow::FlowId;
use linerate_model::metrics::port;
use linerate_model::{PortRecord, PortSample, Readings, RunRecord};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use crate::intervals;
use crate::quantity::{ABSENT, or_absent};
use crate::table::{Cell, Column, Table};

/// The totals of a port during one phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PortTotals {
    /// Names of the flows that ran in the phase.
    pub(crate) during: String,
    /// Sums and maxima over all intervals, including those outside the measured part.
    pub(crate) all: Readings,
    /// Length of the measured part.
    pub(crate) measured: Span,
    /// Mean rate of the measured part.
    pub(crate) rate: Option<Bitrate>,
    /// Busy share of the measured part.
    pub(crate) busy: Option<Ratio>,
}

impl PortTotals {
    /// The totals; `None` for a port without intervals.
    pub(crate) fn of(record: &RunRecord, ports: &PortRecord) -> Option<Self> {
        let all = intervals::whole_port(ports.samples.iter())?.readings;
        let inside: Vec<&PortSample> = ports.samples.iter().filter(|sample| !sample.outside).collect();
        // If a flow ends within an interval, that interval is outside. Then all intervals are used.
        let measured = if inside.is_empty() { ports.samples.iter().collect() } else { inside };
        let span = measured.iter().fold(Span::ZERO, |sum, sample| sum + sample.span());
        let whole = intervals::whole_port(measured.into_iter())?.readings;
        Some(Self {
            during: during(record, &ports.flows),
            all,
            measured: span,
            rate: whole.get(port::RATE),
            busy: whole.get(port::BUSY),
        })
    }

    fn carried_something(&self) -> bool {
        [port::PACKETS, port::DROPPED].iter().any(|metric| self.all.get(*metric).is_some_and(|n| n > 0))
    }
}

/// Names of the flows with these numbers.
pub(crate) fn during(record: &RunRecord, flows: &[FlowId]) -> String {
    let names = flows.iter().map(|number| {
        record.flow(*number).map_or_else(|| format!("flow {number}"), |flow| flow.plan.name.to_string())
    });
    names.collect::<Vec<_>>().join("+")
}

/// The ports that carried traffic, one row per phase and port; `None` if there are none.
pub(crate) fn table(record: &RunRecord) -> Option<Table> {
    let rows: Vec<(&PortRecord, PortTotals)> = record
        .ports
        .iter()
        .filter_map(|ports| Some((ports, PortTotals::of(record, ports)?)))
        .filter(|(_, totals)| totals.carried_something())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let cells = |cell: &dyn Fn(&PortTotals) -> Option<String>| -> Option<Vec<Cell>> {
        let texts: Vec<Option<String>> = rows.iter().map(|(_, totals)| cell(totals)).collect();
        let known = texts.iter().any(Option::is_some);
        known.then(|| texts.into_iter().map(|text| Cell::plain(text.as_deref().unwrap_or(ABSENT))).collect())
    };
    let column = |head, cell: &dyn Fn(&PortTotals) -> Option<String>| {
        cells(cell).map(|cells| Column::numbers(head, cells))
    };
    let count = |metric| move |totals: &PortTotals| totals.all.get(metric).map(|n: u64| n.to_string());
    let marks = rows.iter().any(|(_, totals)| totals.all.get(port::MARKED).is_some_and(|n| n > 0));
    let names = rows.iter().map(|(ports, _)| Cell::plain(ports.port.to_string())).collect();
    let flows = rows.iter().map(|(_, totals)| Cell::plain(totals.during.clone())).collect();
    let mut columns = vec![Column::words("port", names), Column::words("during", flows)];
    columns.push(Column::numbers("rate", rows.iter().map(|(_, t)| Cell::plain(or_absent(t.rate))).collect()));
    columns.extend(column("busy", &|totals| totals.busy.map(|busy| busy.to_string())));
    columns.extend(column("packets", &count(port::PACKETS)));
    columns.extend(column("dropped", &count(port::DROPPED)));
    columns.extend(column("marked", &count(port::MARKED)).filter(|_| marks));
    let largest = |totals: &PortTotals| totals.all.get(port::QUEUE_MAX).map(|queue: Bytes| queue.to_string());
    columns.extend(column("largest queue", &largest));
    Some(Table::new(columns))
}
