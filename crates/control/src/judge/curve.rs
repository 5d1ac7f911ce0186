//! Evaluates the sizes of a sweep.

use linerate_model::flow::FlowId;
use linerate_model::{Ceiling, Limit, MessageMode, RunRecord, SizeCurve, SizeFit, SizePoint, Sweep};
use linerate_theory::block_size::{fit_line, half_performance_bytes, saturation};
use linerate_theory::evidence::Evidence;
use linerate_theory::{ceilings, framing};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// A size that exceeds the rate of the largest ones by more than this factor was absorbed by a buffer or cache
/// on the path: medians of the same rate differ by less.
const BUFFERED_RATIO: f64 = 1.02;

/// Sizes of at least this part of the largest determine the sustained rate; a single one may have been
/// disturbed.
const LARGE_SIZE_DIVISOR: u64 = 4;

/// The ceiling of a sweep over all directions that are used at once: the link, or the qdisc of either end if it
/// was read. Absent if neither is known.
///
/// The slack of the ceiling is what the token bucket of such a qdisc adds to the largest messages.
pub(super) fn ceiling(record: &RunRecord, flow: FlowId) -> Option<Ceiling> {
    let largest = record.flow(flow)?.sizes.last()?.message_bytes.get() as f64;
    let there = super::evidence(record, flow).and_then(|evidence| wall(&evidence, largest));
    let back = || super::gather::evidence_back(record, flow).and_then(|evidence| wall(&evidence, largest));
    match mode(record)? {
        MessageMode::Stream => there,
        // The slower direction determines the rate.
        MessageMode::PingPong => {
            there.into_iter().chain(back()).min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
        }
        MessageMode::Both => both_ways(there?, &back()?),
    }
}

fn both_ways(there: Ceiling, back: &Ceiling) -> Option<Ceiling> {
    let because = if there.because == back.because {
        format!("{}, both directions together", there.because)
    } else {
        format!("{}, and {} in the other direction", there.because, back.because)
    };
    let (bitrate_bps, slack_bps) = (there.bitrate_bps + back.bitrate_bps, there.slack_bps + back.slack_bps);
    Some(Ceiling { bitrate_bps, slack_bps, because: because.into(), ..there })
}

/// The lowest hard limit of one direction.
fn wall(evidence: &Evidence, largest: f64) -> Option<Ceiling> {
    let link = ceilings::of(&ceilings::all(evidence), &Limit::Link).cloned();
    link.into_iter()
        .chain(ceilings::qdisc_of_messages(evidence, largest))
        .min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
}

fn mode(record: &RunRecord) -> Option<MessageMode> {
    record.start.as_ref()?.spec.sweep.as_ref().map(Sweep::mode)
}

/// The curve of a sweep over message sizes; absent for other flows, and if no size has a rate.
pub(super) fn of(record: &RunRecord, flow: FlowId, ceiling: Option<&Ceiling>) -> Option<SizeCurve> {
    curve(
        &record.flow(flow)?.sizes,
        mode(record) == Some(MessageMode::Both),
        ceiling.map(|ceiling| ceiling.bitrate_bps + ceiling.slack_bps),
    )
}

/// Computes the curve from points in ascending order of size. `both` means that two messages are in transit at
/// once.
fn curve(points: &[SizePoint], both: bool, ceiling_bps: Option<f64>) -> Option<SizeCurve> {
    let rated: Vec<(&SizePoint, f64)> =
        points.iter().filter_map(|point| Some((point, point.bitrate?.bps()))).collect();
    let sustained = sustained_bps(&rated, ceiling_bps)?;
    let kept: Vec<(&SizePoint, f64)> = rated.iter().copied().filter(|(_, rate)| *rate <= sustained).collect();
    let (smallest, _) = rated.first()?;
    let (highest, peak) = kept.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // A size that was absorbed by a buffer is not slower than the path.
    let rates: Vec<f64> = rated.iter().map(|(_, rate)| rate.min(*peak)).collect();
    let saturated = saturation(&rates).and_then(|at| rated.get(at));
    let fit = fit(&kept, if both { 2.0 } else { 1.0 });
    Some(SizeCurve {
        smallest_bytes: smallest.message_bytes,
        smallest_one_way: smallest.one_way(),
        peak_bytes: highest.message_bytes,
        peak: Bitrate::from_bps(*peak)?,
        saturation_bytes: saturated.map(|(point, _)| point.message_bytes),
        sustained: Bitrate::from_bps(sustained),
        // A fit must not exceed the link's rate.
        fit: fit.filter(|fit| ceiling_bps.is_none_or(|ceiling| fit.asymptotic.bps() <= possible(ceiling))),
    })
}

/// The highest rate of a size without the help of a buffer: slightly above that of the largest sizes, and at
/// most that of the link. A link rate that all of the largest sizes exceed is ignored.
fn sustained_bps(rated: &[(&SizePoint, f64)], ceiling_bps: Option<f64>) -> Option<f64> {
    let (largest, _) = rated.last()?;
    let from = largest.message_bytes.get() / LARGE_SIZE_DIVISOR;
    let large = || rated.iter().filter(|(point, _)| point.message_bytes.get() >= from).map(|(_, rate)| *rate);
    let reached = BUFFERED_RATIO * large().fold(0.0, f64::max);
    let possible = ceiling_bps.map(possible).filter(|possible| large().any(|rate| rate <= *possible));
    Some(possible.map_or(reached, |possible| reached.min(possible)))
}

/// The highest rate that clocks within their tolerance can measure at a ceiling.
fn possible(ceiling_bps: f64) -> f64 {
    framing::acceptable_ceiling_bps(ceiling_bps, framing::CLOCK_TOLERANCE_PPM).unwrap_or(ceiling_bps)
}

/// Fits a line through the message times that correspond to the rates; for unequal directions these are of the
/// slower one.
fn fit(rated: &[(&SizePoint, f64)], messages: f64) -> Option<SizeFit> {
    let times: Vec<(f64, f64)> = rated
        .iter()
        .map(|(point, rate)| {
            let bytes = point.message_bytes.get() as f64;
            (bytes, messages * bytes * 8.0 / rate)
        })
        .collect();
    let line = fit_line(&times)?;
    // Half of the asymptotic rate is reached where the bytes take as long as the start-up, also for two
    // messages at once.
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
        SizePoint {
            message_bytes,
            trials,
            repeats,
            best,
            median: None,
            interval: None,
            bitrate,
            buffered: false,
        }
    }

    #[test]
    fn messages_both_ways_count_twice_and_half_performance_stays() {
        let points: Vec<SizePoint> = (0..20).map(|k| point(1 << k, 10e-6, 1e9)).collect();
        let doubled: Vec<SizePoint> = points
            .iter()
            .map(|point| SizePoint {
                bitrate: point.bitrate.and_then(|rate| Bitrate::from_bps(2.0 * rate.bps())),
                ..point.clone()
            })
            .collect();
        let (one, two) = (curve(&points, false, None).unwrap(), curve(&doubled, true, None).unwrap());
        assert_eq!((one.smallest_bytes.get(), one.smallest_one_way.as_ns()), (1, 10_008));
        assert_eq!((one.peak_bytes.get(), one.peak), (1 << 19, points[19].bitrate.unwrap()));
        // The peak is 99.8 % of 1 Gb/s. A message needs 11.1 kB to reach nine tenths of that.
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
        let curve = curve(&points, false, None).unwrap();
        assert_eq!((curve.saturation_bytes, curve.peak_bytes.get()), (None, 1 << 18));
    }

    #[test]
    fn no_point_no_curve_and_two_points_no_line() {
        assert_eq!(curve(&[], false, None), None);
        let unrated = SizePoint { bitrate: None, ..point(1, 1e-6, 1e9) };
        assert_eq!(curve(&[unrated], false, None), None);
        assert_eq!(curve(&[point(1, 1e-6, 1e9), point(2, 1e-6, 1e9)], false, None).unwrap().fit, None);
    }

    /// 1 Gb/s after a token bucket of 64 KiB that passes bytes at 20 Gb/s: messages that fit into the bucket do
    /// not show the path's rate.
    fn shaped(bytes: u64) -> SizePoint {
        let bucket = 65_536.0_f64;
        let (fast, slow) = ((bytes as f64).min(bucket), (bytes as f64 - bucket).max(0.0));
        let seconds = 10e-6 + fast * 8.0 / 20e9 + slow * 8.0 / 1e9;
        SizePoint { bitrate: Bitrate::from_bps(bytes as f64 * 8.0 / seconds), ..point(bytes, 10e-6, 1e9) }
    }

    #[test]
    fn sizes_that_fit_into_a_buffer_are_not_the_highest_rate() {
        let points: Vec<SizePoint> = (0..24).map(|k| shaped(1 << k)).collect();
        let curve = curve(&points, false, None).unwrap();
        // Computed by hand: 2 MiB reach 1.030 Gb/s, so up to 1.0506 is sustained; 1 KiB reaches 787 Mb/s, 2 KiB
        // 1.51 Gb/s, 1 MiB 1.062.
        assert!((1.0e9..1.04e9).contains(&curve.peak.bps()), "{curve:?}");
        let buffered: Vec<u64> =
            points.iter().filter(|p| curve.is_buffered(p)).map(|p| p.message_bytes.get()).collect();
        assert_eq!(
            buffered,
            [1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20]
        );
        // If the line rate is known, nothing above it counts, except for the tolerance of the clocks.
        let known = super::curve(&points[..20], false, Some(1e9));
        assert_eq!(
            known.as_ref().and_then(|c| c.sustained).map(|rate| rate.bps() > 1e9),
            Some(true),
            "{known:?}"
        );
        let steady: Vec<SizePoint> =
            (0..20).map(|k| point(1 << k, 10e-6, 1e9)).chain([shaped(1 << 16)]).collect();
        let mut steady = steady;
        steady.sort_by_key(|point| point.message_bytes);
        let known = super::curve(&steady, false, Some(1e9)).unwrap();
        assert!(known.peak.bps() <= 1e9 && known.sustained.unwrap().bps() <= 1.0002e9, "{known:?}");
        assert!(known.fit.is_none_or(|fit| fit.asymptotic.bps() <= 1.0002e9), "{known:?}");
    }
}
