//! Limits the messages and bytes that a peer may send, because this end reads, stores and perhaps logs them.

use linerate_units::{Span, Timestamp};

use crate::PeerError;

/// Messages and bytes that may arrive at any moment, and their rates.
const MESSAGES: AllowanceLimit = AllowanceLimit { at_once: 4_000, per_second: 500 };
const BYTES: AllowanceLimit = AllowanceLimit { at_once: 8 << 20, per_second: 1 << 20 };

/// Size and fill rate of a token bucket.
#[derive(Debug, Clone, Copy)]
struct AllowanceLimit {
    at_once: u64,
    per_second: u64,
}

/// The token buckets of a peer's messages and bytes.
///
/// Heartbeats and progress reports arrive a few times per second. Samples of a measurement may all arrive at
/// its end, so during a measurement the buckets may exceed their size.
#[derive(Debug)]
pub(crate) struct Allowance {
    messages: AllowanceBucket,
    bytes: AllowanceBucket,
    filled: Timestamp,
    /// Number of running measurements.
    measuring: u64,
}

#[derive(Debug)]
struct AllowanceBucket {
    share: AllowanceLimit,
    left: u64,
    /// Billionths of one, which are not in `left` yet.
    rest: u128,
}

impl AllowanceBucket {
    fn new(share: AllowanceLimit) -> Self {
        Self { share, left: share.at_once, rest: 0 }
    }

    fn fill(&mut self, elapsed: Span, measuring: u64) {
        let rate = u128::from(self.share.per_second.saturating_mul(measuring.max(1)));
        let filled = self.rest + u128::from(elapsed.as_ns()) * rate;
        self.rest = filled % 1_000_000_000;
        let more = u64::try_from(filled / 1_000_000_000).unwrap_or(u64::MAX);
        self.left = self.left.saturating_add(more);
        if measuring == 0 {
            self.left = self.left.min(self.share.at_once);
        }
    }
}

impl Allowance {
    /// The allowance of a connection that begins at `now`.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            messages: AllowanceBucket::new(MESSAGES),
            bytes: AllowanceBucket::new(BYTES),
            filled: now,
            measuring: 0,
        }
    }

    /// Sets the number of running measurements.
    pub(crate) fn measuring(&mut self, now: Timestamp, measurements: usize) {
        self.fill(now);
        self.measuring = measurements as u64;
    }

    /// Takes received bytes from the bucket.
    ///
    /// # Errors
    /// They exceed the allowance.
    pub(crate) fn bytes(&mut self, now: Timestamp, count: usize) -> Result<(), PeerError> {
        self.fill(now);
        take(&mut self.bytes, count as u64)
    }

    /// Takes one received message from the bucket.
    ///
    /// # Errors
    /// It exceeds the allowance.
    pub(crate) fn message(&mut self) -> Result<(), PeerError> {
        take(&mut self.messages, 1)
    }

    /// Returns a message and its bytes to the buckets. This end has requested it, or answers it before the next
    /// one may come, and so limits its rate itself.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.messages.left = self.messages.left.saturating_add(1);
        self.bytes.left = self.bytes.left.saturating_add(bytes as u64);
    }

    fn fill(&mut self, now: Timestamp) {
        let elapsed = now.since(self.filled);
        self.filled = self.filled.max(now);
        self.messages.fill(elapsed, self.measuring);
        self.bytes.fill(elapsed, self.measuring);
    }
}

fn take(bucket: &mut AllowanceBucket, count: u64) -> Result<(), PeerError> {
    let left = bucket.left.checked_sub(count);
    let too_much = || PeerError::Misbehaved { what: "it sends more than a measurement can contain".into() };
    bucket.left = left.ok_or_else(too_much)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::START;

    /// The number of messages of `bytes` bytes, `every` apart, that pass. The limit of one million means
    /// unlimited.
    fn pass(allowance: &mut Allowance, from: Timestamp, bytes: usize, every: Span) -> u32 {
        let mut now = from;
        let mut passed = 0;
        while passed < 1_000_000 && allowance.bytes(now, bytes).and_then(|()| allowance.message()).is_ok() {
            now = now + every;
            passed += 1;
        }
        passed
    }

    #[test]
    fn a_flood_ends_and_what_an_honest_end_says_does_not() {
        assert_eq!(pass(&mut Allowance::new(START), START, 20, Span::ZERO), 4_000);
        assert_eq!(pass(&mut Allowance::new(START), START, 1 << 20, Span::ZERO), 8);
        // Two heartbeats per second and four progress reports for each of two flows, for more than a day.
        assert_eq!(pass(&mut Allowance::new(START), START, 200, Span::from_ms(100)), 1_000_000);
    }

    #[test]
    fn what_comes_in_small_pieces_below_the_rate_passes() {
        for pause in [Span::from_us(100), Span::from_us(1_500), Span::from_us(1_999)] {
            let (mut allowance, mut now) = (Allowance::new(START), START);
            let pieces = 1 + Span::from_us(2_100).as_ns() / pause.as_ns();
            for _ in 0..20_000 {
                for _ in 0..pieces {
                    allowance.bytes(now, 10).unwrap();
                    now = now + pause;
                }
                allowance.message().unwrap();
            }
        }
    }

    #[test]
    fn the_samples_of_a_day_may_come_at_its_end_and_those_of_an_hour_in_a_queue_may_not() {
        let end = START + Span::from_secs(86_400);
        let mut measured = Allowance::new(START);
        measured.measuring(START, 1);
        // Two flows with 100 samples per second each, 64 in a message of 64 KiB.
        let messages = 2 * 100 * 86_400 / 64;
        for _ in 0..messages {
            measured.bytes(end, 64 << 10).unwrap();
            measured.message().unwrap();
        }
        measured.measuring(end, 0);
        assert_eq!(pass(&mut measured, end + Span::from_secs(1), 1 << 20, Span::ZERO), 8, "nothing is kept");
        let mut queued = Allowance::new(START);
        assert_eq!(pass(&mut queued, START + Span::from_secs(3_600), 20, Span::ZERO), 4_000);
    }

    #[test]
    fn messages_that_come_every_microsecond_fill_it_as_those_that_come_every_second() {
        let mut allowance = Allowance::new(START);
        let passed = pass(&mut allowance, START, 1, Span::from_ns(1_000));
        // 4,000 at once and 500 per second, during some milliseconds.
        assert!((4_000..4_010).contains(&passed), "{passed}");
    }
}
