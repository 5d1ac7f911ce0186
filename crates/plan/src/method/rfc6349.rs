//! TCP throughput in the terms of RFC 6349.

use linerate_model::{MethodCell, MethodRow, MethodTable, PlanRecord};
use linerate_theory::bdp;

use super::points::{FlowAtPoint, Points, numbers, text_column, typical};

/// The path, then every test on it.
pub(super) fn tables(record: &PlanRecord) -> Vec<MethodTable> {
    let Some(points) = Points::of(record) else { return Vec::new() };
    [path(&points), tests(&points)].into_iter().flatten().collect()
}

/// Results before the tests: sections 3.1 to 3.3.
fn path(points: &Points<'_>) -> Option<MethodTable> {
    let ways = points.flows_with("rtt_baseline");
    let of = |quantity: &'static str| typical(ways.iter().filter_map(|way| points.number(way, quantity)));
    let (rtt, ceiling) = (of("rtt_baseline")?, of("ceiling"));
    let (bottleneck_bandwidth, at_least, from) = bottleneck_bandwidth(points, ceiling);
    let product = bottleneck_bandwidth.and_then(|bps| bdp::bdp_bytes(bps, rtt / 1e9));
    let columns = vec![
        text_column("step"),
        text_column("what"),
        numbers("size", "bytes"),
        numbers("time", "ns"),
        numbers("rate", "bit/s"),
        text_column("from"),
    ];
    let none = MethodCell::default;
    let row = |step: &str, what: &str, size: MethodCell, time: MethodCell, rate: MethodCell, from: &str| {
        MethodRow {
            point: None,
            cells: vec![
                MethodCell::text(step),
                MethodCell::text(what),
                size,
                time,
                rate,
                MethodCell::text(from),
            ],
        }
    };
    let number = |value: Option<f64>| MethodCell { at_least, ..MethodCell::number(value) };
    let mtu = of("path_mtu").map_or_else(none, |mtu| MethodCell::text(format!("{mtu:.0} B")));
    let rows = vec![
        row("3.1", "path MTU", mtu, none(), none(), "path MTU known to the kernel for the connection"),
        row(
            "3.2",
            "baseline round-trip time",
            none(),
            MethodCell::number(rtt),
            none(),
            "probes before the load",
        ),
        row("3.2", "bottleneck bandwidth", none(), none(), number(bottleneck_bandwidth), from),
        row("3.3", "BDP, and minimum RWND", number(product), none(), none(), "product of both"),
    ];
    Some(MethodTable {
        title: "The path (RFC 6349 section 3)".into(),
        about: "Medians over all trials of the plan.".into(),
        columns,
        rows,
        notes: vec![
            "Follows RFC 6349 with deviations: the path MTU was not searched with probes of growing size \
             (section 3.1), and the times of day are those of the plan's trials (section 3.2)."
                .into(),
        ],
    })
}

/// The bottleneck bandwidth, whether the path may carry more, and its source.
///
/// A UDP host that sends no more and loses nothing has not reached the bottleneck. Then TCP may have carried
/// more.
fn bottleneck_bandwidth(points: &Points<'_>, ceiling: Option<f64>) -> (Option<f64>, bool, &'static str) {
    let datagrams = points.flows_with("loss");
    let carried = typical(datagrams.iter().filter_map(|way| points.number(way, "goodput")));
    let Some(carried) = carried else {
        let from = "TCP ceiling of the line; add a UDP flow to the plan to measure it";
        return (ceiling, false, from);
    };
    let lost = datagrams.iter().any(|way| points.number(way, "loss").is_some_and(|loss| loss > 0.0));
    let line = typical(datagrams.iter().filter_map(|way| points.number(way, "ceiling")));
    let reached = lost || line.is_none_or(|line| carried >= REACHED_SHARE * line);
    let segments = points.flows_with("segment").into_iter().filter_map(|way| points.number(&way, "goodput"));
    match segments.reduce(f64::max).filter(|most| !reached && *most > carried) {
        Some(most) => (Some(most), true, "highest TCP rate; the host sent less with UDP"),
        None if reached => (Some(carried), false, "UDP test, payload"),
        None => (Some(carried), true, "UDP test, payload; limited by the sending host, nothing was lost"),
    }
}

/// A rate with at least this share of the line's has reached it.
const REACHED_SHARE: f64 = 0.98;

/// The throughput tests: sections 3.3 and 4.
fn tests(points: &Points<'_>) -> Option<MethodTable> {
    // A test without a transfer time ratio has no ideal rate, and a UDP test has no window.
    let ways: Vec<FlowAtPoint<'_>> = points
        .flows_with("transfer_time_ratio")
        .into_iter()
        .filter(|way| points.find(way, "loss").is_none())
        .collect();
    if ways.is_empty() {
        return None;
    }
    let naming = points.naming(&ways);
    let mut columns = points.naming_columns(&naming);
    columns.extend([
        numbers("in flight", "bytes"),
        numbers("expected", "bit/s"),
        numbers("achieved", "bit/s"),
        numbers("achieved/expected", "1"),
        numbers("transfer time ratio", "1"),
        numbers("TCP efficiency", "%"),
        numbers("buffer delay", "%"),
    ]);
    let rows = ways.iter().map(|way| {
        let mut cells = points.naming_cells(&naming, way);
        cells.extend(["in_flight", "window_rate", "goodput"].map(|quantity| points.cell(way, quantity)));
        let rates = points.number(way, "goodput").zip(points.number(way, "window_rate"));
        let share =
            rates.filter(|(_, expected)| *expected > 0.0).map(|(achieved, expected)| achieved / expected);
        cells.push(MethodCell::number(share));
        cells.push(points.cell(way, "transfer_time_ratio"));
        cells.extend(["tcp_efficiency", "buffer_delay"].map(|quantity| percent(points.cell(way, quantity))));
        MethodRow { point: Some(way.point.id.clone()), cells }
    });
    Some(MethodTable {
        title: "TCP throughput tests (RFC 6349 sections 3.3 and 4)".into(),
        about: "Expected: bytes in flight of all connections divided by the baseline round-trip time, at \
                most the ceiling of the line. Transfer time ratio: actual time of a transfer divided by its \
                time at the line's TCP payload rate (section 4.1). TCP efficiency: share of the bytes that \
                were not retransmitted (4.2). Buffer delay: increase of the mean round-trip time over the \
                baseline (4.3)."
            .into(),
        columns,
        rows: rows.collect(),
        notes: vec![
            "The ideal rate accounts for TCP timestamps if they are in use. The RFC's arithmetic does not, \
             so its ideal is higher by 12 bytes per segment."
                .into(),
        ],
    })
}

/// A ratio as percent, as in the RFC.
fn percent(cell: MethodCell) -> MethodCell {
    let times = |value: Option<f64>| value.map(|value| value * 100.0);
    MethodCell { value: times(cell.value), low: times(cell.low), high: times(cell.high), ..cell }
}
