//! Estimates the lead time for a synchronized start.

use linerate_units::Span;

/// Shortest time for an agent to process the start message and to wake its data threads in time.
const MIN_LEAD: Span = Span::from_ms(1);

/// Longest lead; used if a host is too busy for a shorter one.
const MAX_LEAD: Span = Span::from_ms(100);

/// A lead of one part in this number of the run's duration is always accepted.
const SHARE: u64 = 100;

/// Estimator of the time between the decision to start and the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    /// Time that hosts needed in addition to the transfer of the message.
    wake: Span,
    /// Longest recent round trip of a clock exchange.
    trip: Span,
}

impl Default for Lead {
    fn default() -> Self {
        Self { wake: MIN_LEAD.saturating_mul(4), trip: Span::ZERO }
    }
}

impl Lead {
    /// Notes the round trip of an exchange with an agent. A long one decays slowly.
    pub(super) fn trip(&mut self, trip: Span) {
        self.trip = trip.max(decayed(self.trip));
    }

    /// Notes the start error of a start with this lead.
    pub(super) fn late(&mut self, late: Span) {
        // A start that comes too late shows how much lead was missing. A smaller error is caused by the threads
        // themselves.
        let missing = late > self.wake;
        let wake = if missing { late.saturating_mul(2) } else { decayed(self.wake) };
        self.wake = wake.clamp(MIN_LEAD, MAX_LEAD);
    }

    /// The lead for runs of this duration.
    pub(super) fn of(&self, longest: Span) -> Span {
        let needed = self.wake + self.trip.saturating_mul(2);
        needed.max(Span::from_ns(longest.as_ns() / SHARE)).min(MAX_LEAD)
    }
}

fn decayed(span: Span) -> Span {
    Span::from_ns(span.as_ns() - span.as_ns() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_follows_round_trips_and_late_starts_and_is_at_most_a_hundredth_where_that_is_more() {
        let mut start_lead = Lead::default();
        for _ in 0..50 {
            start_lead.trip(Span::from_ns(100_000));
            start_lead.late(Span::from_ns(80_000));
        }
        let short = Span::from_ms(10);
        assert_eq!(start_lead.of(short), MIN_LEAD + Span::from_ns(200_000));
        assert_eq!(start_lead.of(Span::from_secs(2)), Span::from_ms(20));
        assert_eq!(start_lead.of(Span::from_secs(3600)), MAX_LEAD);
        // One slow message is remembered for a while.
        start_lead.trip(Span::from_ms(4));
        start_lead.trip(Span::from_ns(100_000));
        assert_eq!(start_lead.of(short), MIN_LEAD + Span::from_ms(7));
        // So is one late start.
        start_lead.late(Span::from_ms(9));
        assert_eq!(start_lead.of(short), Span::from_ms(18 + 7));
        for _ in 0..100 {
            start_lead.late(Span::from_secs(1));
        }
        assert_eq!(start_lead.of(short), MAX_LEAD);
    }
}
