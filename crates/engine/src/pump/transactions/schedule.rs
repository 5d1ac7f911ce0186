//! When requests at a rate are due, whatever became of the ones before them.

use std::time::Duration;

use linerate_sock::Mono;

/// How late the kernel may wake a pump that sends at a rate, ns.
pub(super) const TIMER_SLACK_NS: u64 = 1;

/// When requests of a stream are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestSchedule {
    start: Mono,
    per_second: u64,
    streams: u64,
    stream: u64,
}

impl RequestSchedule {
    /// The schedule of one of `streams` streams, which take turns.
    pub(super) fn new(start: Mono, per_second: u64, streams: usize, stream: usize) -> Self {
        Self { start, per_second: per_second.max(1), streams: streams as u64, stream: stream as u64 }
    }

    /// When the request with this number, from 0, is due.
    pub(super) fn due(&self, number: u64) -> Mono {
        let turn = u128::from(number) * u128::from(self.streams) + u128::from(self.stream);
        let ns = turn * 1_000_000_000 / u128::from(self.per_second);
        self.start + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Number of requests of this stream that are due before `until`.
    pub(super) fn due_before(&self, until: Mono) -> u64 {
        let ns = until.since(self.start).as_nanos();
        let turns = (ns * u128::from(self.per_second)).div_ceil(1_000_000_000);
        let own = turns.saturating_sub(u128::from(self.stream)).div_ceil(u128::from(self.streams.max(1)));
        u64::try_from(own).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_take_turns_and_requests_are_due_at_the_rate() {
        let start = Mono(1_000_000_000);
        let all: Vec<RequestSchedule> =
            (0..3).map(|stream| RequestSchedule::new(start, 1000, 3, stream)).collect();
        let mut due: Vec<u64> =
            all.iter().flat_map(|one| (0..4).map(|number| one.due(number).as_ns())).collect();
        due.sort_unstable();
        let expected: Vec<u64> = (0..12).map(|number| 1_000_000_000 + number * 1_000_000).collect();
        assert_eq!(due, expected);
        let before = |ms: u64| -> u64 {
            all.iter().map(|one| one.due_before(start + Duration::from_millis(ms))).sum()
        };
        assert_eq!((before(0), before(1), before(2), before(100)), (0, 1, 2, 100));
    }
}
