//! A series over message sizes as curves: rate and time over size, all axes logarithmic.

mod terminal;
#[cfg(test)]
mod tests;

use linerate_model::{FlowRecord, RunRecord};
use linerate_units::{Bitrate, Bytes, Span};

pub use terminal::terminal;

/// One curve with its axes: sizes as powers of two, values as powers of ten.
struct Curve {
    /// Quantity and unit.
    title: String,
    /// Logarithms of size (base 2) and value (base 10).
    points: Vec<(f64, f64)>,
    /// Whole powers of two around all sizes.
    sizes: (i32, i32),
    /// Whole powers of ten around all values.
    values: (i32, i32),
    /// A power of ten as the text of a tick.
    tick: fn(i32) -> String,
}

/// Rate and time over size; `None` with fewer than two sizes that have a rate.
fn curves(record: &RunRecord, flow: &FlowRecord) -> Option<[Curve; 2]> {
    let rates: Vec<(f64, f64)> = flow
        .sizes
        .iter()
        .filter_map(|point| {
            let rate = point.bitrate.filter(|rate| rate.bps() > 0.0)?;
            (point.message_bytes.get() > 0).then(|| (log2(point.message_bytes), rate.bps().log10()))
        })
        .collect();
    let timed: Vec<_> = flow
        .sizes
        .iter()
        .filter(|point| point.message_bytes.get() > 0 && point.one_way() > Span::ZERO)
        .collect();
    let times: Vec<(f64, f64)> =
        timed.iter().map(|point| (log2(point.message_bytes), log10(point.one_way()))).collect();
    if rates.len() < 2 || times.len() < 2 {
        return None;
    }
    let sizes = around(rates.iter().chain(&times).map(|(x, _)| *x))?;
    let time_values = around(times.iter().map(|(_, y)| *y))?;
    let rate_values = around(rates.iter().map(|(_, y)| *y))?;
    let rate_title = "bitrate of payload (bit/s)".to_owned();
    let time_title = format!("{} (s)", crate::sizes::time_words(record));
    Some([
        Curve { title: rate_title, points: rates, sizes, values: rate_values, tick: rate_tick },
        Curve { title: time_title, points: times, sizes, values: time_values, tick: time_tick },
    ])
}

fn log2(bytes: Bytes) -> f64 {
    (bytes.get() as f64).log2()
}

/// Logarithm of nanoseconds.
fn log10(span: Span) -> f64 {
    (span.as_ns() as f64).log10()
}

/// The whole numbers below and above all values, at least one apart.
fn around(values: impl Iterator<Item = f64>) -> Option<(i32, i32)> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (f64::min(low, value), f64::max(high, value))
    });
    // A cast from a float saturates at the bounds of the integer.
    (low <= high).then(|| (low.floor() as i32, (high.ceil() as i32).max(low.floor() as i32 + 1)))
}

/// A power of two as text of a size.
fn size_tick(power: i32) -> String {
    let bytes = u32::try_from(power).ok().and_then(|power| 1_u64.checked_shl(power));
    bytes.map_or_else(String::new, |bytes| Bytes::new(bytes).to_string())
}

fn rate_tick(power: i32) -> String {
    Bitrate::from_bps(10_f64.powi(power)).map_or_else(String::new, crate::quantity::nominal)
}

/// A power of ten of nanoseconds as text of a time.
fn time_tick(power: i32) -> String {
    Span::from_secs_f64(10_f64.powi(power - 9)).map_or_else(String::new, |span| span.to_string())
}
