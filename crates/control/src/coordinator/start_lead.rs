//! How far ahead a common start is planned.

use linerate_units::Span;

/// The least time for an agent to take up a start that has reached it, and for its data threads to wake up in time.
const MIN_LEAD: Span = Span::from_ms(1);

/// The most of it, on a host that is too busy for anything better.
const MAX_LEAD: Span = Span::from_ms(100);

/// A lead of this share of a run costs nothing: one in so many.
const SHARE: u64 = 100;

/// Time between the decision to start and the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    /// What hosts have needed beside the way of the message.
    wake: Span,
    /// The longest recent round trip of a question for the time.
    trip: Span,
}

impl Default for Lead {
    fn default() -> Self {
        Self { wake: MIN_LEAD.saturating_mul(4), trip: Span::ZERO }
    }
}

impl Lead {
    /// A round trip on the way to an agent. One that took long is forgotten slowly.
    pub(super) fn trip(&mut self, trip: Span) {
        self.trip = trip.max(decayed(self.trip));
    }

    /// How late a start was that was planned by this.
    pub(super) fn late(&mut self, late: Span) {
        // A start that comes too late is late by what was missing; a smaller error is that of the threads themselves.
        let missing = late > self.wake;
        let wake = if missing { late.saturating_mul(2) } else { decayed(self.wake) };
        self.wake = wake.clamp(MIN_LEAD, MAX_LEAD);
    }

    /// The lead of a start after which runs of this length are measured.
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
        // One message that was slow is remembered for a while.
        start_lead.trip(Span::from_ms(4));
        start_lead.trip(Span::from_ns(100_000));
        assert_eq!(start_lead.of(short), MIN_LEAD + Span::from_ms(7));
        // So is a start that came too late.
        start_lead.late(Span::from_ms(9));
        assert_eq!(start_lead.of(short), Span::from_ms(18 + 7));
        for _ in 0..100 {
            start_lead.late(Span::from_secs(1));
        }
        assert_eq!(start_lead.of(short), MAX_LEAD);
    }
}
