//! What the sizes of a series amount to.

use linerate_model::{MessageMode, RunRecord, SizeCurve, SizeFit, SizePoint, Sweep};
use linerate_theory::block_size::{fit_line, half_performance_bytes, saturation};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// The curve of a flow that is a series over message sizes; absent for every other, and where no size has a rate.
pub(super) fn of(record: &RunRecord, flow: u16) -> Option<SizeCurve> {
    let sweep = record.start.as_ref().and_then(|start| start.spec.sweep.as_ref());
    let both = sweep.map(Sweep::mode) == Some(MessageMode::Both);
    curve(&record.flow(flow)?.sizes, both)
}

/// From points in ascending order of size; `both` says that two messages cross at a time.
fn curve(points: &[SizePoint], both: bool) -> Option<SizeCurve> {
    let rated: Vec<(&SizePoint, Bitrate)> =
        points.iter().filter_map(|point| Some((point, point.bitrate?))).collect();
    let rates: Vec<f64> = rated.iter().map(|(_, rate)| rate.bps()).collect();
    let saturated = saturation(&rates).and_then(|at| rated.get(at));
    let (smallest, _) = rated.first()?;
    let (highest, peak) = rated.iter().max_by(|a, b| a.1.bps().total_cmp(&b.1.bps()))?;
    Some(SizeCurve {
        smallest_bytes: smallest.message_bytes,
        smallest_one_way: smallest.one_way(),
        peak_bytes: highest.message_bytes,
        peak: *peak,
        saturation_bytes: saturated.map(|(point, _)| point.message_bytes),
        fit: fit(&rated, if both { 2.0 } else { 1.0 }),
    })
}

fn fit(rated: &[(&SizePoint, Bitrate)], messages: f64) -> Option<SizeFit> {
    let times: Vec<(f64, f64)> = rated
        .iter()
        .map(|(point, _)| (point.message_bytes.get() as f64, point.one_way().as_secs_f64()))
        .collect();
    let line = fit_line(&times)?;
    // Half of the asymptotic rate is reached where the bytes take as long as the start-up, however many cross.
    let half = half_performance_bytes(line.startup_s, 8.0 / line.per_byte_s)?;
    Some(SizeFit {
        startup: Span::from_secs_f64(line.startup_s)?,
        asymptotic: Bitrate::from_bps(8.0 * messages / line.per_byte_s)?,
        half_performance_bytes: Bytes::new(half.round() as u64),
        largest_error: Ratio::new(line.largest_error)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point whose time is that of the model.
    fn point(bytes: u64, startup_s: f64, bps: f64) -> SizePoint {
        let best = Span::from_secs_f64(startup_s + bytes as f64 * 8.0 / bps).unwrap();
        let (message_bytes, trials, repeats) = (Bytes::new(bytes), Some(1), None);
        let bitrate = Bitrate::of(message_bytes, best);
        SizePoint { message_bytes, trials, repeats, best, median: None, interval: None, bitrate }
    }

    #[test]
    fn messages_both_ways_count_twice_and_half_performance_stays() {
        let points: Vec<SizePoint> = (0..20).map(|k| point(1 << k, 10e-6, 1e9)).collect();
        let (one, two) = (curve(&points, false).unwrap(), curve(&points, true).unwrap());
        assert_eq!((one.smallest_bytes.get(), one.smallest_one_way.as_ns()), (1, 10_008));
        assert_eq!((one.peak_bytes.get(), one.peak), (1 << 19, points[19].bitrate.unwrap()));
        // The peak is 99.8 % of 1 Gb/s; nine tenths of that take 11.1 kB.
        assert_eq!(one.saturation_bytes, Some(Bytes::new(1 << 14)));
        let (one, two) = (one.fit.unwrap(), two.fit.unwrap());
        // 10 us at 1 Gb/s are 1250 bytes.
        assert_eq!((one.half_performance_bytes.get(), two.half_performance_bytes.get()), (1250, 1250));
        assert!((two.asymptotic.bps() / one.asymptotic.bps() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_that_falls_at_the_end_is_a_curve_without_saturation() {
        let mut points: Vec<SizePoint> = (0..20).map(|k| point(1 << k, 10e-6, 1e9)).collect();
        points[19].bitrate = Bitrate::from_bps(1e8);
        let curve = curve(&points, false).unwrap();
        assert_eq!((curve.saturation_bytes, curve.peak_bytes.get()), (None, 1 << 18));
    }

    #[test]
    fn no_point_no_curve_and_two_points_no_line() {
        assert_eq!(curve(&[], false), None);
        let unrated = SizePoint { bitrate: None, ..point(1, 1e-6, 1e9) };
        assert_eq!(curve(&[unrated], false), None);
        assert_eq!(curve(&[point(1, 1e-6, 1e9), point(2, 1e-6, 1e9)], false).unwrap().fit, None);
    }
}
