//! Requests and responses, as text.

use linerate_model::{FlowRecord, RunRecord, TestSpec, TransactionTally, TransactionTimes, Workload};
use linerate_units::{Bytes, Span};

use crate::layout::TextRole;
use crate::quantity::ABSENT;
use crate::table::{Cell, Column, Table};
use crate::text::busy_cell;

/// Whether the run makes transactions.
pub(crate) fn are_made(record: &RunRecord) -> bool {
    record.start.as_ref().is_some_and(|start| start.spec.transactions.are_made())
}

/// Bytes of a request, in a test that makes transactions.
pub(crate) fn request_length(spec: &TestSpec) -> Option<Bytes> {
    spec.transactions.are_made().then(|| spec.transactions.request(spec.traffic.udp))
}

/// The transactions of a flow, as counted by the end that made the requests.
pub(crate) fn of(flow: &FlowRecord) -> Option<&TransactionTally> {
    flow.sender.as_ref()?.transactions.as_deref()
}

/// A rate of transactions, such as `51234/s`.
pub(crate) fn per_second(rate: f64) -> String {
    format!("{}/s", number(rate))
}

/// Transactions per second: whole ones, or some decimals of a small number.
fn number(rate: f64) -> String {
    if rate >= 100.0 { format!("{rate:.0}") } else { format!("{rate:.2}") }
}

/// The results, one row per flow. Columns without any value are left out.
pub(crate) fn table(record: &RunRecord) -> Table {
    let flows = &record.flows;
    let column = |head, cell: &dyn Fn(&TransactionTally) -> Option<Cell>| {
        let cells: Vec<Option<Cell>> = flows.iter().map(|flow| of(flow).and_then(cell)).collect();
        let known = cells.iter().any(Option::is_some);
        let filled = cells.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::plain(ABSENT))).collect();
        known.then(|| Column::numbers(head, filled))
    };
    let names = flows.iter().map(|flow| Cell::plain(flow.plan.name.to_string())).collect();
    let mut columns = vec![Column::words("", names)];
    columns.extend(column("rate", &|made| Some(Cell::new(TextRole::Result, per_second(made.per_second)))));
    let failed = |made: &TransactionTally| {
        (made.failed > 0).then(|| Cell::new(TextRole::Warning, made.failed.to_string()))
    };
    columns.extend(column("failed", &failed));
    type Quantile = fn(&TransactionTimes) -> u64;
    let quantiles: [(&str, u8, Quantile); 7] = [
        ("min", 1, |times| times.min_ns),
        ("p50", 9, |times| times.p50_ns),
        ("p90", 2, |times| times.p90_ns),
        ("p99", 9, |times| times.p99_ns),
        ("p99.9", 8, |times| times.p999_ns),
        ("p99.99", 7, |times| times.p9999_ns),
        ("max", 6, |times| times.max_ns),
    ];
    for (head, importance, quantile) in quantiles {
        let cell = |made: &TransactionTally| {
            Some(Cell::plain(Span::from_ns(quantile(made.times.as_ref()?)).to_string()))
        };
        columns.extend(column(head, &cell).map(|column| column.of_importance(importance)));
    }
    let busy: Vec<Option<Cell>> = flows.iter().map(busy_cell).collect();
    if busy.iter().any(Option::is_some) {
        let cells = busy.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::plain(ABSENT))).collect();
        columns.push(Column::numbers("cpu here/there", cells).of_importance(0));
    }
    Table::new(columns)
}

/// What the transactions were, in words.
pub(crate) fn description(record: &RunRecord) -> Option<String> {
    let spec = &record.start.as_ref()?.spec;
    let (asked, udp) = (&spec.transactions, spec.traffic.udp);
    let streams = spec.traffic.streams;
    let each = match (asked.workload, udp) {
        (Workload::Stream, _) => return None,
        (Workload::Rr, false) if streams == 1 => "one connection".to_owned(),
        (Workload::Rr, true) if streams == 1 => "one UDP socket".to_owned(),
        (Workload::Rr, false) => format!("{streams} connections"),
        (Workload::Rr, true) => format!("{streams} UDP sockets"),
        (Workload::Crr, _) if streams == 1 => "a connection for each, one at a time".to_owned(),
        (Workload::Crr, _) => format!("a connection for each, {streams} at a time"),
    };
    let mut words =
        format!("requests of {} and responses of {}, {each}", asked.request(udp), asked.response(udp));
    if asked.pipeline > 1 {
        words.push_str(&format!(", {} under way on each", asked.pipeline));
    }
    if let Some(rate) = asked.request_rate {
        words
            .push_str(&format!(", {} due; times count from when a request was due", per_second(rate as f64)));
    }
    if asked.spin {
        words.push_str(", spinning");
    }
    Some(words)
}

/// The answer for a flow, such as `rr 51234 transactions/s, p50 18 us, p99 30 us`.
pub(crate) fn answer(flow: &FlowRecord) -> String {
    let name = &flow.plan.name;
    let Some(made) = of(flow).filter(|made| made.completed > 0) else {
        return format!("{name} not measured");
    };
    let mut text = format!("{name} {} transactions/s", number(made.per_second));
    if let Some(times) = &made.times {
        for (head, ns) in [("p50", times.p50_ns), ("p99", times.p99_ns), ("p99.9", times.p999_ns)] {
            text.push_str(&format!(", {head} {}", Span::from_ns(ns)));
        }
    }
    if made.failed > 0 {
        text.push_str(&format!(", {} failed", made.failed));
    }
    text
}
