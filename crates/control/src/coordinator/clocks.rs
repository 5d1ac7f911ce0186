//! The offset of an agent's clock, estimated from timestamped exchanges.

use linerate_proto::agent::ClockExchange;
use linerate_units::{Span, Timestamp};

use crate::DRIFT_PPM;
use crate::probe::offset_of;

/// Uncertainty from drift above which the clocks are compared again with all exchanges.
const MAX_DRIFT: Span = Span::from_ns(50_000);

/// The offset between an agent's clock and the coordinator's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AgentClockOffset {
    /// Agent's clock minus ours, nanoseconds.
    pub(super) ns: i64,
    /// Largest error at `taken`.
    error: Span,
    /// When the offset was estimated, on our clock.
    taken: Timestamp,
}

impl AgentClockOffset {
    /// Estimates the offset from exchanges; absent without any.
    pub(super) fn of(exchanges: &[ClockExchange]) -> Option<Self> {
        let taken = exchanges.iter().map(|exchange| exchange.back).max()?;
        let times =
            exchanges.iter().map(|e| [e.sent.as_ns(), e.received.as_ns(), e.replied.as_ns(), e.back.as_ns()]);
        let (ns, error_ns) = offset_of(times)?;
        Some(Self { ns, error: Span::from_ns(error_ns), taken })
    }

    /// Largest error at the time of the estimate.
    pub(super) fn error(&self) -> Span {
        self.error
    }

    /// Largest error at time `now` of our clock, including drift since the estimate.
    pub(super) fn error_at(&self, now: Timestamp) -> Span {
        self.error + self.drift_at(now)
    }

    fn drift_at(&self, now: Timestamp) -> Span {
        Span::from_ns(now.since(self.taken).as_ns() / (1_000_000 / DRIFT_PPM))
    }

    /// Whether the clocks must be compared again before a synchronized start.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        self.drift_at(now) > MAX_DRIFT
    }

    /// Adopts one more exchange if its error is not larger than the present error of the estimate.
    pub(super) fn refine(&mut self, exchange: ClockExchange) {
        let now = exchange.back;
        if let Some(fresh) = Self::of(&[exchange])
            && fresh.error <= self.error_at(now)
        {
            *self = fresh;
        }
    }

    /// Converts a time of our clock to the agent's clock.
    pub(super) fn agent_time(&self, ours: Timestamp) -> Timestamp {
        Timestamp::from_ns(ours.as_ns().saturating_add_signed(self.ns))
    }

    /// Converts a time of the agent's clock to ours.
    pub(super) fn ours(&self, theirs: Timestamp) -> Timestamp {
        Timestamp::from_ns(theirs.as_ns().saturating_add_signed(self.ns.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Timestamp {
        Timestamp::from_ns(ns)
    }

    #[test]
    fn the_quickest_answer_says_the_offset_and_bounds_its_error() {
        // The agent's clock is 1000 ahead. The second exchange took 40 there and 60 back.
        let slow = ClockExchange { sent: at(0), received: at(1900), replied: at(1900), back: at(1000) };
        let quick = ClockExchange { sent: at(2000), received: at(3040), replied: at(3050), back: at(2110) };
        let offset = AgentClockOffset::of(&[slow, quick]).unwrap();
        assert_eq!((offset.ns, offset.error_at(at(2110))), (990, Span::from_ns(50)));
        assert_eq!(offset.agent_time(at(5000)), at(5990));
        assert_eq!(offset.ours(at(5990)), at(5000));
        assert_eq!(AgentClockOffset::of(&[]), None);
        // A clock that started later than ours.
        let slow_clock = AgentClockOffset { ns: -700, ..offset };
        assert_eq!((slow_clock.agent_time(at(1000)), slow_clock.ours(at(300))), (at(300), at(1000)));
    }

    #[test]
    fn what_is_known_of_a_clock_ages_until_a_worse_answer_says_more() {
        let exchange = |sent: u64, rtt: u64| ClockExchange {
            sent: at(sent),
            received: at(sent + rtt / 2 + 7),
            replied: at(sent + rtt / 2 + 7),
            back: at(sent + rtt),
        };
        let mut offset = AgentClockOffset::of(&[exchange(0, 20_000)]).unwrap();
        let second = 1_000_000_000;
        assert_eq!(offset.error_at(at(20_000)), Span::from_ns(10_000));
        assert_eq!(offset.error_at(at(20_000 + second)), Span::from_ns(110_000), "100 us in a second");
        assert!(!offset.is_stale(at(second / 10)) && offset.is_stale(at(second)));
        // A round trip of 60 us is worse than the estimate now, but better in a second.
        offset.refine(exchange(50_000, 60_000));
        assert_eq!(offset.error_at(at(20_000)), Span::from_ns(10_000));
        offset.refine(exchange(second, 60_000));
        assert_eq!((offset.error_at(at(second + 60_000)), offset.ns), (Span::from_ns(30_000), 7));
        assert!(!offset.is_stale(at(second + 60_000)));
    }
}
