//! The offset of an agent's clock, from questions and answers.

use linerate_proto::agent::Exchange;
use linerate_units::{Span, Timestamp};

use crate::probe::offset_of;

/// An agent's clock against the coordinator's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offset {
    /// Agent's clock minus ours.
    pub(super) ns: i64,
    /// Largest error.
    pub(super) error: Span,
    /// Smallest round trip seen.
    pub(super) rtt: Span,
}

impl Offset {
    /// From some exchanges; absent without any.
    pub(super) fn of(exchanges: &[Exchange]) -> Option<Self> {
        let times =
            exchanges.iter().map(|e| [e.sent.as_ns(), e.received.as_ns(), e.replied.as_ns(), e.back.as_ns()]);
        let (ns, error_ns) = offset_of(times)?;
        Some(Self { ns, error: Span::from_ns(error_ns), rtt: Span::from_ns(error_ns.saturating_mul(2)) })
    }

    /// A time of ours on the agent's clock.
    pub(super) fn theirs(&self, ours: Timestamp) -> Timestamp {
        Timestamp::from_ns(ours.as_ns().saturating_add_signed(self.ns))
    }

    /// A time of the agent's on our clock.
    pub(super) fn ours(&self, theirs: Timestamp) -> Timestamp {
        Timestamp::from_ns(theirs.as_ns().saturating_add_signed(self.ns.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_says_the_offset_and_bounds_its_error() {
        let at = Timestamp::from_ns;
        // The agent's clock is 1000 ahead; the second answer took 40 there and 60 back.
        let slow = Exchange { sent: at(0), received: at(1900), replied: at(1900), back: at(1000) };
        let quick = Exchange { sent: at(2000), received: at(3040), replied: at(3050), back: at(2110) };
        let offset = Offset::of(&[slow, quick]).unwrap();
        assert_eq!((offset.ns, offset.error), (990, Span::from_ns(50)));
        assert_eq!(offset.theirs(at(5000)), at(5990));
        assert_eq!(offset.ours(at(5990)), at(5000));
        assert_eq!(Offset::of(&[]), None);
        // A clock that began later than ours.
        let behind = Offset { ns: -700, ..offset };
        assert_eq!((behind.theirs(at(1000)), behind.ours(at(300))), (at(300), at(1000)));
    }
}
