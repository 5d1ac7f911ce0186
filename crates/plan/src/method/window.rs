//! Throughput against the window, with the rate that window and RTT allow.

use linerate_model::{ForeignText, MethodCell, MethodRow, MethodTable, PlanRecord};
use linerate_theory::{conversion, sender_error};
use linerate_units::{Bitrate, Bytes, Span};

use super::points::{Points, numbers, typical};
use crate::plan::Plan;

/// Window, RTT, computed and measured rate at every point.
pub(super) fn tables(plan: &Plan, record: &PlanRecord) -> Vec<MethodTable> {
    let Some(points) = Points::of(record) else { return Vec::new() };
    let ways = points.flows_with("window_rate");
    if ways.is_empty() {
        return Vec::new();
    }
    let distance = plan.distance_km.map(|kilometres| kilometres as f64 * 1e3);
    let naming = points.naming(&ways);
    let mut columns = points.naming_columns(&naming);
    columns.extend([
        numbers("send buffer", "bytes"),
        numbers("receive buffer", "bytes"),
        numbers("announced", "bytes"),
        numbers("in flight", "bytes"),
        numbers("RTT", "ns"),
        numbers("computed", "bit/s"),
        numbers("measured", "bit/s"),
        numbers("measured/computed", "1"),
    ]);
    columns.extend(distance.map(|_| numbers("land speed", "bit m/s")));
    let rows = ways.iter().map(|way| {
        let mut cells = points.naming_cells(&naming, way);
        let quantities =
            ["snd_buf", "rcv_buf", "rwnd", "in_flight", "rtt_baseline", "window_rate", "goodput"];
        cells.extend(quantities.map(|quantity| points.cell(way, quantity)));
        let rates = points.number(way, "goodput").zip(points.number(way, "window_rate"));
        cells.push(MethodCell::number(
            rates.filter(|(_, computed)| *computed > 0.0).map(|(measured, computed)| measured / computed),
        ));
        let speed = |metres| conversion::land_speed_bit_m_per_s(points.number(way, "goodput")?, metres);
        cells.extend(distance.map(|metres| MethodCell::number(speed(metres))));
        MethodRow { point: Some(way.point.id.clone()), cells }
    });
    let about = "Computed: effective window divided by the round-trip time before the load, at most the \
                 ceiling (RFC 6349 section 3.3.1). The effective window is the mean number of bytes in \
                 flight. It is smaller than the granted buffer, because a part of the buffer is overhead \
                 and a writer that filled it sleeps until a third is free.";
    vec![MethodTable {
        title: "Throughput against the window".into(),
        about: about.into(),
        columns,
        rows: rows.collect(),
        notes: [needed(&points), distance.and_then(|metres| light(&points, metres))]
            .into_iter()
            .flatten()
            .map(ForeignText::from)
            .collect(),
    }]
}

/// The window that the path needs.
fn needed(points: &Points<'_>) -> Option<String> {
    let ways = points.flows_with("bdp");
    let of = |quantity: &'static str| typical(ways.iter().filter_map(|way| points.number(way, quantity)));
    let (window, rtt, ceiling) = (of("bdp")?, of("rtt_baseline")?, of("ceiling")?);
    let (window, rtt) = (Bytes::new(window as u64), Span::from_ns(rtt as u64));
    let ceiling = Bitrate::from_bps(ceiling)?;
    Some(format!(
        "This path needs a window of {window} ({} bytes): {ceiling} over {rtt}. A buffer of twice that size \
         is enough.",
        window.get()
    ))
}

/// Comparison of the RTT with the propagation delay of light.
fn light(points: &Points<'_>, metres: f64) -> Option<String> {
    let ways = points.flows_with("rtt_baseline");
    let rtt_s = typical(ways.iter().filter_map(|way| points.number(way, "rtt_baseline")))? / 1e9;
    let speed = sender_error::signal_speed_m_per_s(sender_error::FIBRE_INDEX)?;
    let floor = Span::from_secs_f64(sender_error::round_trip_floor_s(metres, speed)?)?;
    let stretch = sender_error::path_stretch(rtt_s, speed, metres)?;
    let impossible = if stretch < 1.0 {
        ", which is impossible: the distance or the round-trip time is wrong"
    } else {
        ""
    };
    Some(format!(
        "Land speed is rate times distance ({:.0} km), as in the Internet2 Land Speed Record. Light in \
         fibre takes {floor} for the round trip; the measured round-trip time is {stretch:.2} times \
         that{impossible}.",
        metres / 1e3
    ))
}
