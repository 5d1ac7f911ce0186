//! Wall-clock time.

use linerate_units::Span;
use serde::{Deserialize, Serialize};

/// A moment of wall-clock time: milliseconds since 1970-01-01 00:00 UTC, without leap seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(i64);

impl UnixTime {
    /// Later than every other time.
    pub const MAX: Self = Self(i64::MAX);

    /// The time this many milliseconds after the start of 1970.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the start of 1970.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// The time after a span, to the next whole millisecond.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(milliseconds(span)))
    }

    /// The time before a span, to the millisecond before.
    #[must_use]
    pub fn before(self, span: Span) -> Self {
        Self(self.0.saturating_sub(milliseconds(span)))
    }

    /// The span since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        let ms = u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0);
        Span::from_ns(ms.saturating_mul(1_000_000))
    }
}

fn milliseconds(span: Span) -> i64 {
    i64::try_from(span.as_ns().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_away_from_the_time() {
        let at = UnixTime::from_ms(10_000);
        assert_eq!(at.after(Span::from_ns(1)), UnixTime::from_ms(10_001));
        assert_eq!(at.before(Span::from_ns(1)), UnixTime::from_ms(9_999));
        assert_eq!(at.since(UnixTime::from_ms(9_000)), Span::from_secs(1));
        assert_eq!(UnixTime::from_ms(9_000).since(at), Span::ZERO);
        assert_eq!(UnixTime::MAX.after(Span::from_secs(1)), UnixTime::MAX);
    }
}
