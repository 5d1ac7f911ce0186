//! Evaluates the probes of a phase.

use hdrhistogram::Histogram;
use linerate_model::{DelayBucket, Digest, LatencyReport, ProbePhase, ProbeTransport};

use linerate_sock::Mono;
use linerate_units::Span;

use super::clock_offset::OffsetHistory;
use super::intervals::{IntervalGrid, intervals};

/// One answered probe: T1 to T4 of RFC 5357, with T2 and T3 on the reflector's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeExchange {
    pub(super) sent: u64,
    /// When the driver took it; T1 if the kernel did not report it.
    pub(super) left: u64,
    pub(super) reflector_in: u64,
    pub(super) reflector_out: u64,
    pub(super) back: u64,
}

impl ProbeExchange {
    /// Round-trip time without the reflector's processing time: (T4-T1)-(T3-T2).
    fn rtt(&self) -> u64 {
        self.since(self.sent)
    }

    /// The same, measured from the driver.
    pub(super) fn on_the_path(&self) -> u64 {
        self.since(self.left)
    }

    fn since(&self, start: u64) -> u64 {
        let whole = self.back.saturating_sub(start);
        whole.saturating_sub(self.reflector_out.saturating_sub(self.reflector_in))
    }

    /// Reflector's clock minus ours, assuming equal delays in both directions.
    fn offset(&self) -> i64 {
        let there = i128::from(self.reflector_in) - i128::from(self.sent);
        let here = i128::from(self.reflector_out) - i128::from(self.back);
        ((there + here) / 2) as i64
    }
}

/// Offset of the peer's clock and its largest error, nanoseconds, from T1 to T4 of some exchanges; absent
/// without any.
pub(crate) fn offset_of(times: impl Iterator<Item = [u64; 4]>) -> Option<(i64, u64)> {
    let exchange = |[sent, reflector_in, reflector_out, back]: [u64; 4]| ProbeExchange {
        sent,
        left: sent,
        reflector_in,
        reflector_out,
        back,
    };
    let best = times.map(exchange).min_by_key(ProbeExchange::rtt)?;
    Some((best.offset(), best.rtt().div_ceil(2)))
}

/// How many probes a phase had. Of very many answered ones not all are evaluated.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeCounts {
    pub(super) sent: u64,
    pub(super) answered: u64,
}

/// Evaluates a phase; absent if no probe was answered. `known` has the clock bounds of earlier phases.
pub(super) fn evaluate(
    phase: ProbePhase,
    transport: ProbeTransport,
    counts: ProbeCounts,
    exchanges: &[ProbeExchange],
    kernel_timestamps: bool,
    known: &OffsetHistory,
    rule: IntervalGrid,
) -> Option<LatencyReport> {
    let rtt = digest(exchanges.iter().map(ProbeExchange::rtt))?;
    let offsets = known.offsets(exchanges);
    let best = offsets.iter().min_by_key(|offset| offset.error)?;
    let error = offsets.iter().map(|offset| offset.error).max()?;
    let one_way = |from: u64, to: u64, offset: i64| {
        let delay = i128::from(to) - i128::from(from) - i128::from(offset);
        u64::try_from(delay.max(0)).unwrap_or(u64::MAX)
    };
    let both = || exchanges.iter().zip(&offsets);
    Some(LatencyReport {
        phase,
        transport,
        sent: counts.sent,
        lost: counts.sent.saturating_sub(counts.answered),
        rtt,
        upload: digest(both().map(|(e, offset)| one_way(e.sent, e.reflector_in, offset.ns))),
        download: digest(both().map(|(e, offset)| one_way(e.reflector_out, e.back, -offset.ns))),
        offset_ns: Some(best.ns),
        offset_error_ns: Some(error),
        kernel_timestamps,
        intervals: intervals(rule, exchanges),
        histogram: distribution(exchanges.iter().map(ProbeExchange::rtt)),
    })
}

/// Evaluates round trips over a TCP connection that a program at the other end answers, from the time of each
/// probe and its round-trip time, absent if it was never answered; absent if none was.
pub(crate) fn round_trips(
    phase: ProbePhase,
    probes: &[(Mono, Option<Span>)],
    rule: IntervalGrid,
) -> Option<LatencyReport> {
    let answered: Vec<ProbeExchange> = probes
        .iter()
        .filter_map(|(sent, rtt)| {
            let (sent, back) = (sent.as_ns(), (*sent + (*rtt)?.as_duration()).as_ns());
            Some(ProbeExchange { sent, left: sent, reflector_in: sent, reflector_out: sent, back })
        })
        .collect();
    let rtt = digest(answered.iter().map(ProbeExchange::rtt))?;
    Some(LatencyReport {
        phase,
        transport: ProbeTransport::Tcp,
        sent: probes.len() as u64,
        lost: probes.len().saturating_sub(answered.len()) as u64,
        rtt,
        upload: None,
        download: None,
        offset_ns: None,
        offset_error_ns: None,
        kernel_timestamps: false,
        intervals: intervals(rule, &answered),
        histogram: distribution(answered.iter().map(ProbeExchange::rtt)),
    })
}

/// Values above one minute count as one minute.
const LARGEST: u64 = 60_000_000_000;

/// The buckets of the log: two significant digits, so that their number is bounded and a drawing shows no
/// difference.
fn distribution(values: impl Iterator<Item = u64>) -> Vec<DelayBucket> {
    let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, LARGEST, 2) else { return Vec::new() };
    values.for_each(|value| histogram.saturating_record(value.max(1)));
    let recorded = histogram.iter_recorded();
    recorded
        .map(|bucket| DelayBucket {
            up_to_ns: bucket.value_iterated_to(),
            count: bucket.count_since_last_iteration(),
        })
        .collect()
}

/// Quantiles with three significant digits.
fn digest(values: impl Iterator<Item = u64>) -> Option<Digest> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LARGEST, 3).ok()?;
    let (mut min, mut max, mut sum) = (u64::MAX, 0, 0_u128);
    for value in values {
        histogram.saturating_record(value.max(1));
        (min, max) = (min.min(value), max.max(value));
        sum += u128::from(value);
    }
    let count = histogram.len();
    if count == 0 {
        return None;
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile).clamp(min, max);
    Some(Digest {
        count,
        min_ns: min,
        mean_ns: u64::try_from(sum / u128::from(count)).unwrap_or(u64::MAX),
        p50_ns: at(0.50),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        max_ns: max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::Mono;
    use linerate_units::Span;

    const GRID: IntervalGrid = IntervalGrid { epoch: Mono(0), tick: Span::from_ms(100) };

    /// An exchange with a reflector whose clock is 100 s ahead and which takes 150 us; delays in microseconds.
    fn exchange(at_us: u64, there_us: u64, back_us: u64) -> ProbeExchange {
        let offset_us = 100_000_000;
        ProbeExchange {
            sent: at_us * 1000,
            left: at_us * 1000,
            reflector_in: (at_us + there_us + offset_us) * 1000,
            reflector_out: (at_us + there_us + 150 + offset_us) * 1000,
            back: (at_us + there_us + 150 + back_us) * 1000,
        }
    }

    #[test]
    fn the_reflectors_clock_and_time_cancel() {
        assert_eq!(exchange(10_000_000, 10_200, 10_450).rtt(), 20_650_000);
    }

    #[test]
    fn one_way_delays_hold_within_their_error() {
        let series: Vec<ProbeExchange> =
            (0..200).map(|i| exchange(i * 10_000, 1_000 + (i % 20) * 500, 1_000)).collect();
        let report = evaluate(
            ProbePhase::Loaded,
            ProbeTransport::Udp,
            ProbeCounts { sent: 210, answered: 200 },
            &series,
            true,
            &OffsetHistory::default(),
            GRID,
        )
        .unwrap();
        assert_eq!((report.sent, report.lost, report.rtt.count), (210, 10, 200));
        assert_eq!(report.rtt.min_ns, 2_000_000);
        assert_eq!(report.offset_ns, Some(100_000_000_000));
        // One millisecond, plus the drift at 100 ppm in the 190 ms since the last probe without queueing.
        assert!((1_019_000..=1_019_100).contains(&report.offset_error_ns.unwrap()), "{report:?}");
        let upload = report.upload.unwrap();
        let download = report.download.unwrap();
        assert_eq!((download.min_ns, download.max_ns), (1_000_000, 1_000_000));
        assert_eq!((upload.min_ns, upload.max_ns), (1_000_000, 10_500_000));
        // The 190th of 200 values: queue step 18 of 0..=19.
        assert!(upload.p95_ns.abs_diff(10_000_000) <= 10_000, "{}", upload.p95_ns);
    }

    #[test]
    fn nothing_back_is_no_report() {
        let (counts, known) = (ProbeCounts { sent: 9, answered: 0 }, OffsetHistory::default());
        assert_eq!(evaluate(ProbePhase::Idle, ProbeTransport::Udp, counts, &[], true, &known, GRID), None);
    }

    #[test]
    fn every_value_is_in_a_bucket_of_at_most_one_percent() {
        // From 1 ns to beyond the largest that is distinguished, each more often than the one before.
        let times: Vec<u64> = (0..38).map(|power| 3 * (1 << power) / 2).collect();
        let values = || times.iter().zip(1..).flat_map(|(time, count)| std::iter::repeat_n(*time, count));
        let buckets = distribution(values());
        assert!(buckets.is_sorted_by(|a, b| a.up_to_ns < b.up_to_ns), "{buckets:?}");
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 38 * 39 / 2);
        for (time, count) in times.iter().zip(1..).filter(|(time, _)| **time < LARGEST) {
            let found = buckets.iter().find(|bucket| bucket.up_to_ns >= *time).unwrap();
            assert!(found.count == count && (found.up_to_ns - time) * 128 <= *time, "{time}: {found:?}");
        }
        assert_eq!(distribution(std::iter::empty()), []);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        // Evenly over the range, linear and logarithmic.
        let steps = 200_000_u32;
        let linear = (0..steps).map(|at| LARGEST / u64::from(steps) * u64::from(at));
        let spread = (0..steps).map(|at| (LARGEST as f64).powf(f64::from(at) / f64::from(steps)) as u64);
        let buckets = distribution(linear.chain(spread));
        assert!(buckets.len() <= 3840, "{}", buckets.len());
    }
}
