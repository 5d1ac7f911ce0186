//! Notices whose cause strangers can repeat.

use std::time::Duration;

use linerate_sock::Mono;

/// Interval in which the number of notices is bounded.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// A notice that is logged only a few times per [`NOTICE_INTERVAL`], however often its cause occurs.
#[derive(Debug)]
pub struct RateLimitedNotice {
    /// Most notices per interval.
    burst: u32,
    logged: u32,
    interval_end: Mono,
    /// Occurrences since the last notice.
    times: u64,
}

impl RateLimitedNotice {
    /// A notice that is logged at most `burst` times per interval.
    #[must_use]
    pub const fn new(burst: u32) -> Self {
        Self { burst, logged: 0, interval_end: Mono(0), times: 0 }
    }

    /// Counts one occurrence. Returns what to append to the notice if one may be logged: nothing, or the number
    /// of occurrences since the last one.
    pub fn is_due(&mut self, now: Mono) -> Option<String> {
        self.times += 1;
        if now >= self.interval_end {
            (self.interval_end, self.logged) = (now + NOTICE_INTERVAL, 0);
        }
        if self.logged >= self.burst {
            return None;
        }
        self.logged += 1;
        let times = std::mem::take(&mut self.times);
        Some(if times > 1 { format!(" ({times} times)") } else { String::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_the_next_notice_has_the_number() {
        let mut notice = RateLimitedNotice::new(2);
        let start = Mono(1 << 40);
        assert_eq!((notice.is_due(start), notice.is_due(start)), (Some(String::new()), Some(String::new())));
        for _ in 0..1000 {
            assert_eq!(notice.is_due(start + NOTICE_INTERVAL / 2), None);
        }
        assert_eq!(notice.is_due(start + NOTICE_INTERVAL).as_deref(), Some(" (1001 times)"));
        assert_eq!(notice.is_due(start + NOTICE_INTERVAL).as_deref(), Some(""));
    }
}
