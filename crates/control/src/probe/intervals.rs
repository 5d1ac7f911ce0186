//! Round-trip times by interval, which show how long a queue lasts.

use linerate_model::LatencyInterval;
use linerate_sock::Mono;
use linerate_units::{Span, Timestamp};

use super::digest::ProbeExchange;

/// The position of the intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntervalGrid {
    /// The start of the run.
    pub(crate) epoch: Mono,
    /// Length of an interval.
    pub(crate) tick: Span,
}

/// The intervals in which answered probes were sent, sorted by time.
pub(super) fn intervals(rule: IntervalGrid, exchanges: &[ProbeExchange]) -> Vec<LatencyInterval> {
    let tick = rule.tick.as_ns().max(1);
    let place = |exchange: &ProbeExchange| exchange.sent.saturating_sub(rule.epoch.0) / tick;
    let mut sorted: Vec<(u64, u64)> = exchanges.iter().map(|one| (place(one), one.on_the_path())).collect();
    // Within an interval the largest round trip is last.
    sorted.sort_unstable();
    let interval = |probes: &[(u64, u64)]| {
        let (first, last) = (probes.first()?, probes.last()?);
        let third = probes.len().checked_sub(3).and_then(|at| probes.get(at)).unwrap_or(first);
        let median = probes.get((probes.len() - 1) / 2)?;
        Some(LatencyInterval {
            start_ns: Timestamp::from_ns(first.0.saturating_mul(tick)),
            end_ns: Timestamp::from_ns(first.0.saturating_add(1).saturating_mul(tick)),
            count: probes.len() as u64,
            min_ns: first.1,
            p50_ns: Some(median.1),
            high_ns: third.1,
            max_ns: last.1,
        })
    };
    sorted.chunk_by(|one, other| one.0 == other.0).filter_map(interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(sent_ms: u64, waited_ms: u64, rtt_ms: u64) -> ProbeExchange {
        let ns = |ms: u64| ms * 1_000_000;
        ProbeExchange {
            sent: ns(sent_ms),
            left: ns(sent_ms + waited_ms),
            reflector_in: ns(7),
            reflector_out: ns(8),
            back: ns(sent_ms + waited_ms + rtt_ms + 1),
        }
    }

    #[test]
    fn probes_fall_into_the_interval_in_which_they_were_sent() {
        let rule = IntervalGrid { epoch: Mono(1_000_000_000), tick: Span::from_ms(100) };
        // Four probes, unsorted, in the interval from 200 ms on, and one in that from 400 ms on. The queue of
        // the host itself is excluded.
        let series = [
            exchange(1_299, 0, 60),
            exchange(1_200, 30, 50),
            exchange(1_210, 0, 90),
            exchange(1_220, 0, 70),
            exchange(1_400, 5, 55),
        ];
        let ms = |ms: u64| ms * 1_000_000;
        let interval = |start: u64, count, [min, median, high, max]: [u64; 4]| LatencyInterval {
            start_ns: Timestamp::from_ns(ms(start)),
            end_ns: Timestamp::from_ns(ms(start + 100)),
            count,
            min_ns: ms(min),
            p50_ns: Some(ms(median)),
            high_ns: ms(high),
            max_ns: ms(max),
        };
        let expected = [interval(200, 4, [50, 60, 60, 90]), interval(400, 1, [55; 4])];
        assert_eq!(intervals(rule, &series), expected);
        assert_eq!(intervals(rule, &[]), []);
    }
}
